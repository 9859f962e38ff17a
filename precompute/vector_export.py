"""``export --vectors``: vectors of kept heads, for FAISS and for stores with several vectors per document."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.analysis.similarity import unit
from core.errors import Mistake
from core.model.stages import SHARE, check_stage, split_heads
from core.retrieval.apply import Kept, prune, read_kept
from core.runs.files import replacing_here, write_mistake
from core.runs.manifest import Manifest
from core.runs.run import Run, open_run
from precompute.job.step import embedded

NOT_MAX_SIM = (
    "One vector per head: search one head at a time, and combine the scores yourself. A store's MaxSim over these "
    "vectors compares every head of the query with every head of a document; that is not head-by-head ranking."
)


@dataclass(frozen=True)
class VectorExportConfig:
    cache: Path
    run: str
    kind: str
    """A row of KINDS."""
    to: Path
    heads: Path | None = None
    """``heads.json`` of the Retrieval lab; None: all heads of ``stage``, equally."""
    stage: int = 1


@dataclass(frozen=True)
class ExportedRows:
    """Some documents: their numbers, what is known of them, and their vectors ``[doc, head * dim]``."""

    docs: np.ndarray
    about: pa.Table
    vectors: np.ndarray


def export_vectors(config: VectorExportConfig) -> str:
    """Writes the file whole or not at all; returns what to say."""
    run = open_run(config.cache, config.run)
    manifest = embedded(run)
    kept = _kept(config, manifest)
    if config.to.exists():
        raise Mistake(f"'{config.to}' exists already. Give a new file with --to.")
    try:
        with replacing_here(config.to) as temporary:
            note = KINDS[config.kind](_rows(run, kept.stage), manifest, kept, temporary)
    except OSError as error:
        raise write_mistake(config.to, error) from error
    heads, size = len(kept.weights), config.to.stat().st_size / 1e6
    what = f"{heads} of {kept.heads} heads of stage {kept.stage}, {manifest.with_vectors:,} documents, {size:,.1f} MB"
    return f"{config.to.name}: {what}.\n  {note}"


def _kept(config: VectorExportConfig, manifest: Manifest) -> Kept:
    heads, name = manifest.shape.heads, str(manifest.model["name"])
    if config.heads is None:
        check_stage(config.stage, manifest.stages)
        return Kept(name, config.stage, heads, dict.fromkeys(range(1, heads + 1), 1.0), "weighted")
    try:
        kept = read_kept(config.heads)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Mistake(
            f"'{config.heads}' is not a heads.json from the Retrieval lab ({error}). Export it there."
        ) from error
    if kept.model != name or kept.heads != heads:
        raise Mistake(
            f"'{config.heads.name}' is for {kept.model} ({kept.heads} heads), but the run's model is {name} ({heads}). "
            "Give a file for this model."
        )
    if kept.way == "embedding" or kept.stage == SHARE:
        raise Mistake("Reweighted heads at stage 4 have no vectors of their own. Export another stage.")
    check_stage(kept.stage, manifest.stages)
    return kept


def _rows(run: Run, stage: int) -> Iterator[ExportedRows]:
    docs, lookup, first = run.vector_docs(), run.document_lookup(), 0
    for part in run.finite_vectors(stage):
        own = docs[first : first + len(part)]
        yield ExportedRows(own, lookup.rows(own, ["id", "title", "topic"]), part)
        first += len(part)


def _faiss(rows: Iterator[ExportedRows], manifest: Manifest, kept: Kept, path: Path) -> str:
    """An exact index of the kept heads as one vector: its inner product is the lab's score."""
    import faiss

    index = None
    for part in rows:
        vectors = np.ascontiguousarray(prune(part.vectors, kept), dtype=np.float32)
        if index is None:
            index = faiss.IndexIDMap2(faiss.IndexFlatIP(vectors.shape[1]))
        index.add_with_ids(vectors, part.docs.astype(np.int64))
    assert index is not None  # an embedded run has documents
    faiss.write_index(index, str(path))
    return (
        "Ids are document numbers, rows of documents.parquet. Make query vectors with core/retrieval/apply.py (prune)."
    )


def _by_head(part: ExportedRows, manifest: Manifest, kept: Kept) -> dict[str, np.ndarray]:
    """``head_11`` → ``[doc, dim]`` of length 1."""
    vectors = split_heads(part.vectors, kept.stage, manifest.shape).astype(np.float32)
    return {f"head_{head}": unit(vectors[:, head - 1]) for head in sorted(kept.weights)}


def _parquet(rows: Iterator[ExportedRows], manifest: Manifest, kept: Kept, path: Path) -> str:
    """A row per document, a column per head."""
    writer = None
    for part in rows:
        columns: dict[str, pa.Array] = {"doc": pa.array(part.docs, pa.int64())}
        columns |= {name: part.about[name].combine_chunks() for name in part.about.column_names}
        for name, vectors in _by_head(part, manifest, kept).items():
            flat = pa.array(np.ascontiguousarray(vectors).reshape(-1))
            columns[name] = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
        table = pa.table(columns).replace_schema_metadata({"headscope.kept": kept.to_json()})
        writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
        writer.write_table(table)
    assert writer is not None  # an embedded run has documents
    writer.close()
    return NOT_MAX_SIM


def _jsonl(rows: Iterator[ExportedRows], manifest: Manifest, kept: Kept, path: Path) -> str:
    """A line per document: ``id``, ``payload`` and ``vector``, a named vector per head, as Qdrant's points are."""
    with path.open("w", encoding="utf-8") as file:
        for part in rows:
            heads = _by_head(part, manifest, kept)
            for row, (doc, about) in enumerate(zip(part.docs.tolist(), part.about.to_pylist(), strict=True)):
                vector = {name: [float(f"{value:.7g}") for value in values[row]] for name, values in heads.items()}
                file.write(json.dumps({"id": doc, "payload": about, "vector": vector}, ensure_ascii=False) + "\n")
    return NOT_MAX_SIM


KINDS: dict[str, Callable[[Iterator[ExportedRows], Manifest, Kept, Path], str]] = {
    "faiss": _faiss,
    "parquet": _parquet,
    "jsonl": _jsonl,
}
