"""Runs of any number of documents with small heads: vectors and texts are generated, not embedded, a part at a time.

The index and the figures are made by the job's own steps. The maps are planted, for fitting and placing four million
points would take hours and the app cannot tell; they have the job's schema, and its sample of fitted documents.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.analysis.stratify import stratified
from core.analysis.topics import merged
from core.maps.tsne import LIMIT
from core.model.shape import ModelShape
from core.runs.files import replacing
from core.runs.manifest import Manifest, Step
from core.runs.parquet import GROUP_ROWS
from core.runs.parts import write_part, write_table
from core.runs.run import Run
from core.runs.schema import ANALYSIS, DIGEST, DOCUMENTS
from precompute.job.fingerprint import part_digest
from precompute.steps.project.write import write_map, write_preview
from tests.support.synthetic import EMBEDDED, PlantedTopics

SHAPE = ModelShape(layers=6, heads=4, kv_heads=4, hidden=32, head_dim=8)
STAGES = (1, 2, 3)
WORDS, TITLE, TEXT = 50_000, 6, 30
"""Words of the language, by Zipf's law, and of a title and a text."""
PART = 1_000
_LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))


def name_of(documents: int) -> str:
    return f"large-{documents}"


def large_run(cache: Path, documents: int) -> Run:
    """The run of so many documents, made where it is not there or not whole, then kept."""
    run = Run(cache, name_of(documents))
    if run.exists() and run.manifest().is_done("project"):
        return run
    from precompute.steps.analyse import step as analyse
    from precompute.steps.search import step as search

    labels = np.random.default_rng(0).integers(len(merged()), size=documents)
    if not (run.exists() and run.manifest().is_done("embed")):
        _write_documents(run, labels)
    search.run(search.SearchConfig(cache, run.name))
    analyse.run(analyse.AnalyseConfig(cache, run.name, model=PlantedTopics(SHAPE, _directions())))
    _write_maps(run, labels)
    return run


def words() -> np.ndarray:
    """``[rank]``: the language's words, the commonest first."""
    chance = np.random.default_rng(1)
    lengths = chance.integers(3, 10, size=WORDS)
    letters = _LETTERS[chance.integers(26, size=(WORDS, 10))]
    return np.array(["".join(row[:length]) for row, length in zip(letters, lengths, strict=True)])


def _texts(first: int, count: int, known: np.ndarray, shares: np.ndarray) -> tuple[list[str], list[str]]:
    chance = np.random.default_rng([2, first])
    ranks = np.minimum(np.searchsorted(shares, chance.random((count, TITLE + TEXT))), WORDS - 1)
    rows = known[ranks].tolist()
    titles = [f"{first + at} {' '.join(row[:TITLE])}" for at, row in enumerate(rows)]
    return titles, [" ".join(row[TITLE:]) for row in rows]


def _directions() -> dict[int, dict[str, np.ndarray]]:
    return {
        stage: {
            topic: np.random.default_rng([stage, number]).normal(size=SHAPE.width(stage)).astype(np.float32)
            for number, topic in enumerate(merged())
        }
        for stage in STAGES
    }


def _parts(labels: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    for first in range(0, len(labels), PART):
        yield first, labels[first : first + PART]


def _write_documents(run: Run, labels: np.ndarray) -> None:
    names, known = list(merged()), words()
    zipf = 1 / np.arange(1, WORDS + 1)
    shares = np.cumsum(zipf / zipf.sum())
    towards = {stage: np.stack(list(found.values())) for stage, found in _directions().items()}
    means = {stage: np.random.default_rng([9, stage]).normal(size=SHAPE.width(stage)) for stage in STAGES}
    marked = DOCUMENTS.with_metadata({DIGEST: EMBEDDED})
    with (
        replacing(run.documents_path) as temporary,
        pq.ParquetWriter(temporary, marked, compression="zstd", write_page_checksum=True) as writer,
    ):
        for number, (first, own) in enumerate(_parts(labels)):
            docs = np.arange(first, first + len(own), dtype=np.int32)
            titles, texts = _texts(first, len(own), known, shares)
            ids = [f"d{doc}" for doc in docs]
            digest = part_digest(EMBEDDED, zip(ids, texts, strict=True))
            for stage in STAGES:
                chance = np.random.default_rng([3, stage, first])
                rows = 0.3 * means[stage] + 0.5 * towards[stage][own] + chance.normal(size=(len(own), SHAPE.hidden))
                write_part(run.part_path(stage, number), docs, rows, "float16", digest)
            columns = [
                *(docs, ids, titles, texts, [None] * len(docs), [TEXT] * len(docs), [False] * len(docs)),
                *([names[label] for label in own], ["column"] * len(docs), [None] * len(docs)),
            ]
            arrays = [pa.array(column, field.type) for column, field in zip(columns, DOCUMENTS, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=DOCUMENTS), row_group_size=GROUP_ROWS)
    counts = {"parts": number + 1, "tokens": TEXT * len(labels), "truncated": 0, "duplicate": 0}
    model = {"name": "planted", "revision": "planted", "layer": SHAPE.layers, "pooling": "mean", "prompt": ""}
    model |= {"query_prompt": "", "max_tokens": 128, "dtype": "float32", "notes": [], **asdict(SHAPE)}
    run.write_manifest(
        Manifest(
            model=model,
            vectors={"dtype": "float16", "stages": list(STAGES), "part_size": PART},
            corpus={"source": "generated", "fingerprint": "planted", "documents": len(labels), "extra": {}},
            versions={},
            steps={"embed": Step(EMBEDDED, "done", "2026-01-01T00:00:00+00:00", counts=counts)},
        )
    )


def _write_maps(run: Run, labels: np.ndarray) -> None:
    """Every head has an island, and on it every topic a place."""
    docs, heads = len(labels), SHAPE.heads
    fitted = stratified(labels, min(docs, LIMIT // heads))
    rows: list[dict[str, object]] = []
    places = {}
    for stage in STAGES:
        chance = np.random.default_rng([4, stage])
        turn = 2 * np.pi * (labels[:, None] / 25 + np.arange(heads) / 7)
        middle = 10.0 * np.stack([np.arange(heads) % 2, np.arange(heads) // 2], axis=1)
        offset = 3.0 * np.stack([np.cos(turn), np.sin(turn)], axis=-1) + 0.4 * chance.normal(size=(docs, heads, 2))
        places[stage] = (middle + offset).astype(np.float32)
        strength = chance.gamma(4.0, size=(docs, heads)).astype(np.float32)
        write_map(run.map_path(stage), places[stage], strength, fitted, "planted")
        rows.append({"stage": stage, "head": 0, "points": docs * heads, "fitted": len(fitted) * heads})
        rows[-1] |= {"method": "planted", "perplexity": 30.0, "iterations": 0, "kl": 1.0, "kept": 0.5}
        rows[-1] |= {"kept_by_chance": 0.001, "follows_before": None, "follows": None}
    write_preview(run.preview_path, places, labels, "planted")
    write_table(run.analysis_path("maps"), pa.Table.from_pylist(rows, schema=ANALYSIS["maps"]), "planted")
    counts = {"points": docs * heads, "fitted": len(fitted) * heads, "placed": (docs - len(fitted)) * heads}
    step = Step("planted", "done", "2026-01-01T00:00:00+00:00", counts=counts)
    run.write_manifest(run.manifest().with_step("project", step))
