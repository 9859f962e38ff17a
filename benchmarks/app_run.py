"""The run that the app is measured on: 10,000 documents × 32 heads at three stages, as large as the study's.

Vectors, topics and figures are those of ``benchmarks.analyse``; the maps are planted, for fitting them would take an
hour and a browser cannot tell. Every head has an island of its own, so that a lasso's points can be counted by hand.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.analyse import SHAPE, build
from core.runs.manifest import Step
from core.runs.parts import write_table
from core.runs.run import Run
from core.runs.schema import ANALYSIS, MAP

NAME = "big"
DOCUMENTS, HEADS = 10_000, SHAPE.heads
ACROSS, APART, RADIUS = 8, 10.0, 4.5
"""Islands in a row, from one's middle to the next one's, and how far an island's points lie from its middle at most."""
_WORDS = ("harbour", "violin", "enzyme", "glacier", "verdict", "orchard", "satellite", "loom", "ferment", "quarry")
_TITLE, _TEXT = 9, 350
"""Words: a title of some 60 letters, a text of some 2,500."""


def add_cache(parser: argparse.ArgumentParser) -> None:
    """The option that says where runs like ``big_run`` are kept, up to 1.2 GB each."""
    kept = Path(tempfile.gettempdir()) / "headscope-benchmark"
    parser.add_argument("--cache", type=Path, default=kept, help="where runs are kept (default: a temporary folder)")


def big_run(cache: Path) -> Run:
    """The run, made where it is not there or not whole: two minutes, then it is kept."""
    run = Run(cache, NAME)
    if run.exists() and run.manifest().is_done("search"):
        return run
    from precompute.steps.analyse.step import AnalyseConfig
    from precompute.steps.analyse.step import run as analyse
    from precompute.steps.search import step as search

    if run.folder.exists():
        run.remove()
    model = build(cache, DOCUMENTS, (1, 2, 3))
    analyse(AnalyseConfig(cache, NAME, model=model))
    _write_texts(run)
    write_maps(run)
    search.run(search.SearchConfig(cache, NAME))
    return run


def island(head: int, stage: int) -> tuple[float, float]:
    """The middle of a head's island; ``head`` from 1. Another stage has the same islands, in another order."""
    place = (head - 1) * (1, 5, 11)[stage - 1] % HEADS
    return place % ACROSS * APART, place // ACROSS * APART


def around_six() -> list[tuple[float, float]]:
    """A polygon around the 3 × 2 islands in a corner of any stage's map: six heads' points."""
    edge, right, top = -0.5 * APART, 2.5 * APART, 1.5 * APART
    return [(edge, edge), (right, edge), (right, top), (edge, top)]


def _places(stage: int, documents: int) -> np.ndarray:
    """``[doc, head, axis]``: on each island documents of a topic lie together."""
    chance = np.random.default_rng([4, stage])
    topics = np.random.default_rng(0).integers(25, size=documents)  # as benchmarks.analyse draws them
    turn = 2 * np.pi * (topics[:, None] / 25 + chance.random(HEADS))
    offset = 0.6 * RADIUS * np.stack([np.cos(turn), np.sin(turn)], axis=-1)
    offset += 0.35 * chance.normal(size=offset.shape)
    far = np.linalg.norm(offset, axis=-1, keepdims=True)
    offset *= np.minimum(1.0, RADIUS / far)
    return np.array([island(head, stage) for head in range(1, HEADS + 1)]) + offset


def write_maps(run: Run, documents: int = DOCUMENTS) -> None:
    docs, heads = np.repeat(np.arange(documents), HEADS), np.tile(np.arange(1, HEADS + 1), documents)
    rows: list[dict[str, object]] = []
    for stage in (1, 2, 3):
        x, y = _places(stage, documents).reshape(-1, 2).T
        activation = np.random.default_rng([5, stage]).gamma(4.0, size=len(docs))
        columns = [docs, heads, x, y, activation, np.ones(len(docs), dtype=bool)]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, MAP, strict=True)]
        write_table(run.map_path(stage), pa.Table.from_arrays(arrays, schema=MAP), "planted")
        rows.append({"stage": stage, "head": 0, "points": len(docs), "fitted": len(docs), "method": "planted"})
        rows[-1] |= {"perplexity": 30.0, "iterations": 0, "kl": 1.0, "kept": 0.5, "kept_by_chance": 0.001}
        rows[-1] |= {"follows_before": None, "follows": None}
    write_table(run.analysis_path("maps"), pa.Table.from_pylist(rows, schema=ANALYSIS["maps"]), "planted")
    counts = {"points": len(docs), "fitted": len(docs), "placed": 0}
    step = Step("planted", "done", "2026-01-01T00:00:00+00:00", counts=counts)
    run.write_manifest(run.manifest().with_step("project", step))


def _write_texts(run: Run) -> None:
    """Titles and texts as long as real ones: they are sent, searched and shown."""
    table, chance = pq.read_table(run.documents_path), np.random.default_rng(6)
    words = np.array(_WORDS)[chance.integers(len(_WORDS), size=(DOCUMENTS, _TEXT))]
    texts = [f"{doc} {' '.join(row)}" for doc, row in enumerate(words.tolist())]
    titles = [f"{doc} {' '.join(row[:_TITLE])}" for doc, row in enumerate(words.tolist())]
    for name, values in (("title", titles), ("text", texts)):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), pa.array(values))
    write_table(run.documents_path, table, "planted")
