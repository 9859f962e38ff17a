"""How often peaks over depth and pruned sets are claimed where nothing is to be found.

Peaks are the rules of core.analysis.layer_findings on the layers of a sample; pruned sets those of
core.retrieval.findings on same-topic retrieval, with what rules a claim out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from core.analysis.false_alarms import ABOUT_HEADS, BEST, CUT, PEAK, SPECIALISE
from core.analysis.layer_figures import layer_figures
from core.analysis.layer_findings import best_heads, beyond_guessing, specialising
from core.model.embedder import Embedder
from core.model.shape import ModelShape
from core.model.share_space import ShareSpace
from core.model.stages import SHARE
from core.retrieval.cautions import retrieval_cautions
from core.retrieval.findings import pruned_sentence
from core.retrieval.head_index import HeadIndex
from core.retrieval.study import Scales
from core.retrieval.tasks import SAME_TOPIC, ask, pose_same_topic, same_topic_queries
from core.runs.run import Run
from core.runs.tables import Row
from precompute.job.step import Rows
from precompute.steps.layers.rows import LayerRows, embed_layers
from precompute.steps.layers.sample import choose_sample, texts_of
from precompute.steps.layers.tables import add_layer
from precompute.steps.retrieve.stage import StageTasks, study_task


def pruned_claims(
    vectors: np.ndarray, labels: np.ndarray, shape: ModelShape, stage: int = 1, space: ShareSpace | None = None
) -> set[str]:
    """What the product would say of ``vectors[doc, width]``: CUT, and ABOUT_HEADS beside it."""
    index = HeadIndex.of([vectors], shape.heads, space=space)
    docs = same_topic_queries(labels)
    posed = pose_same_topic(docs, index.vectors[docs].astype(np.float32), labels, np.arange(len(labels)))
    given = StageTasks((SAME_TOPIC,), (), labels, ("full",), len(docs), 0)
    ones = np.ones(shape.heads)
    tables: dict[str, Rows] = {}
    asked = ask(index, posed, labels)
    study_task(tables, stage, SAME_TOPIC, posed, index, asked, Scales(ones, ones), given, lambda share, message: None)
    (row,) = _rows(tables["pruned"])
    cautions = retrieval_cautions(_rows(tables["retrieval"]))
    said = pruned_sentence(row, shape, stage, _rows(tables.get("pruning_rivals", {})), cautions)
    found = {CUT} if said.startswith(f"{row['heads']} of ") else set()
    return found | ({ABOUT_HEADS} if "Heads beat equally many" in said else set())


def depth_claims(rows: LayerRows, labels: np.ndarray, shape: ModelShape, stage: int, slicings: int = 200) -> set[str]:
    """What is claimed over depth at one stage, of ``rows`` that hold the documents and then the topics' names."""
    # Slices are dear, and of no use where the full embedding itself, as a single head, finds nothing.
    own = [(rows.at(layer, stage), rows.space(layer, stage)) for layer in range(shape.layers)]
    full = [vectors if space is None else space.full(vectors) for vectors, space in own]
    whole = ModelShape(shape.layers, 1, 1, full[0].shape[1], full[0].shape[1])
    alone = _layer_tables([(vectors, None) for vectors in full], labels, whole, stage, 0)
    if not beyond_guessing(_rows(alone["layer_curves"]), stage):
        return set()
    summary = _rows(_layer_tables(own, labels, shape, stage, slicings)["layer_null_summary"])
    differ, best = specialising(summary, stage), best_heads(summary, stage)
    found = {PEAK} | ({SPECIALISE} if differ is not None and differ.rows else set())
    return found | ({BEST} if best is not None and best.rows else set())


def _layer_tables(
    layers: Sequence[tuple[np.ndarray, ShareSpace | None]],
    labels: np.ndarray,
    shape: ModelShape,
    stage: int,
    slicings: int,
) -> dict[str, Rows]:
    """From each layer's documents and topics' names, ``[document or topic, width]``."""
    count = len(labels)
    tables: dict[str, Rows] = {name: {} for name in _LAYER_TABLES}
    for layer, (both, space) in enumerate(layers, start=1):
        figures = layer_figures(both[:count], both[count:], labels, shape, None, slicings=slicings, space=space)
        names = tuple(str(topic) for topic in range(len(both) - count))
        add_layer(tables, layer, stage, figures, labels, names, np.arange(count))
    return tables


_LAYER_TABLES = (
    *("layers", "layer_curves", "layer_profiles", "layer_topics", "layer_documents"),
    *("layer_null", "layer_null_summary"),
)


def count_depth(run: Run, folder: Path, load: Callable[[], Embedder], shuffles: Iterable[int | None]) -> list[str]:
    """A line per stage; ``shuffles`` are seeds of the labels' orders, None for the labels as they are."""
    manifest, names = run.manifest(), run.documents(["topic"])["topic"].to_pylist()
    sample = choose_sample(manifest, tuple(sorted(set(names) - {None})), names, 300, 0)
    texts = [*texts_of(run, manifest, sample.docs), *sample.topics]
    shares = SHARE in manifest.stages
    rows = embed_layers(folder, texts, manifest.shape, "false alarms", load, lambda *_: None, shares)
    seeds = list(shuffles)
    return [
        tally(
            f"over depth, stage {stage}",
            [depth_claims(rows, _shuffled(sample.labels, seed), manifest.shape, stage) for seed in seeds],
        )
        for stage in manifest.stages
    ]


def count_pruned(
    vectors: dict[int, np.ndarray],
    labels: np.ndarray,
    shape: ModelShape,
    shuffles: Iterable[int | None],
    space: ShareSpace | None = None,
) -> list[str]:
    """The same of pruned sets, from ``vectors[stage][doc, width]``; ``space`` is that of stage 4."""
    seeds = list(shuffles)
    return [
        tally(
            f"pruned sets, stage {stage}",
            [
                pruned_claims(rows, _shuffled(labels, seed), shape, stage, space if stage == SHARE else None)
                for seed in seeds
            ],
        )
        for stage, rows in vectors.items()
    ]


def count_random_slices(
    vectors: dict[int, np.ndarray], labels: np.ndarray, shape: ModelShape, slicings: int
) -> list[str]:
    """Pruned sets of random slices in place of heads, of the study's stages."""
    return [
        tally(
            f"pruned sets, stage {stage}",
            [
                pruned_claims(
                    rows[:, np.random.default_rng([99, seed]).permutation(rows.shape[1])], labels, shape, stage
                )
                for seed in range(slicings)
            ],
        )
        for stage, rows in vectors.items()
        if stage != SHARE
    ]


def tally(name: str, claims: list[set[str]]) -> str:
    counts = Counter(claim for found in claims for claim in found)
    known = (CUT, ABOUT_HEADS) if "pruned" in name else (PEAK, SPECIALISE, BEST)
    return f"{name}: " + ", ".join(f"{claim} {counts[claim]} of {len(claims)}" for claim in known)


def _shuffled(labels: np.ndarray, seed: int | None) -> np.ndarray:
    return labels if seed is None else labels[np.random.default_rng(seed).permutation(len(labels))]


def _rows(columns: Rows) -> list[Row]:
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
