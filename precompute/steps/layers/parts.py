"""How much of the embedding is whose, and what random pairs have in common: the rows of ``parts`` and its like."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from core.analysis.by_topic import by_topic
from core.analysis.embedding_parts import (
    DOCUMENTS,
    Part,
    SampleParts,
    measure,
    part_figures,
    random_pairs,
    with_sums,
)
from core.analysis.stratify import stratified
from core.errors import Mistake
from core.model.embedder import Embedder
from core.runs.manifest import Manifest
from core.runs.run import Run
from precompute.job.step import Rows, add
from precompute.steps.analyse.tables import number
from precompute.steps.layers.rows import LayerRows
from precompute.steps.layers.sample import Sample, texts_of


def part_rows(
    run: Run, manifest: Manifest, load: Callable[[], Embedder], sample: Sample, rows: LayerRows, seed: int
) -> dict[str, Rows]:
    """The three tables, without rows for a model whose embedding is not known to be a sum."""
    model = load()
    try:
        model.check_exact()
    except Mistake:
        return {}
    chosen = stratified(sample.labels, DOCUMENTS, seed)
    texts = texts_of(run, manifest, sample.docs[chosen])
    swept = 3 in manifest.shape.stages  # the sweep has no rows of an output that cannot be cut into heads
    outputs = rows.at(manifest.shape.layers - 1, 3)[chosen] if swept else model.embed(texts).output
    pairs = random_pairs(len(chosen), seed=seed)
    found = measure(model.each_ledger(texts), outputs, pairs)
    tables: dict[str, Rows] = {"parts": {}, "part_topics": {}, "pair_parts": {}}
    _add_parts(tables, found, sample.labels[chosen], sample.topics, seed)
    _add_pairs(tables["pair_parts"], found)
    return tables


def _add_parts(
    tables: dict[str, Rows], found: SampleParts, labels: np.ndarray, topics: tuple[str, ...], seed: int
) -> None:
    parts, values = with_sums(found.terms, found.parts)
    figures = part_figures(values, labels, seed)
    for at, part in enumerate(parts):
        add(
            tables["parts"],
            **_place(part),
            mean=figures.mean.value[at],
            low=figures.mean.low[at],
            high=figures.mean.high[at],
            spread=number(figures.spread[at]),
            explained=number(figures.explained[at]),
            explained_by_chance=number(figures.explained_by_chance[at]),
            documents=len(values),
        )
        gaps = by_topic(values, labels, at)
        for row, topic in enumerate(gaps.topic.tolist()):
            add(
                tables["part_topics"],
                **_place(part),
                topic=topics[topic],
                mean=values[labels == topic, at].mean(),
                gap=gaps.gap[row],
                low=number(gaps.low[row]),
                high=number(gaps.high[row]),
                documents=gaps.documents[row],
            )


def _add_pairs(rows: Rows, found: SampleParts) -> None:
    if not len(found.pairs):  # a single document has no pair
        return
    parts, values = with_sums(found.terms, found.pairs)
    low, high = np.percentile(values, [2.5, 97.5], axis=0)
    for at, part in enumerate(parts):
        add(rows, **_place(part), mean=values[:, at].mean(), low=low[at], high=high[at], pairs=len(values))


def _place(part: Part) -> dict[str, object]:
    return {"kind": part.kind, "layer": part.layer, "head": part.head}
