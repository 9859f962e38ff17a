"""What a run keeps while it is being made: its documents by part, what became of them, how far the corpus was read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.files import replacing
from core.schema import FINISHED_DOCUMENTS, STAGED_DOCUMENTS
from core.store import Run, digest_of, write_table
from precompute.corpus import Document


def documents_path(run: Run, number: int) -> Path:
    """A part's documents, as they were read."""
    return run.staging / "documents" / f"part-{number:05d}.parquet"


def done_path(run: Run, number: int) -> Path:
    """What became of a part's documents; with this file, written last, the part counts as finished."""
    return run.staging / "done" / f"part-{number:05d}.parquet"


def finished_paths(run: Run) -> list[Path]:
    return sorted(done_path(run, 0).parent.glob("part-*.parquet"))


@dataclass(frozen=True)
class Read:
    """The corpus was read to its end."""

    inputs: str
    parts: int
    documents: int
    counts: Mapping[str, int]


def _read_path(run: Run) -> Path:
    return run.staging / "read.json"


def read_record(run: Run, inputs: str) -> Read | None:
    """What reading these inputs has found, if it came to the end; None where it did not."""
    try:
        read = Read(**json.loads(run.inside(_read_path(run)).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return read if read.inputs == inputs else None


def write_read_record(run: Run, read: Read) -> None:
    with replacing(_read_path(run)) as temporary:
        temporary.write_text(json.dumps(asdict(read)) + "\n", encoding="utf-8")


def stage_documents(run: Run, number: int, first: int, part: Sequence[Document], digest: str) -> None:
    """Writes the documents of a part, of which ``first`` is the number of the first one."""
    columns = {
        "doc": np.arange(first, first + len(part), dtype=np.int32),
        "id": [document.id for document in part],
        "title": [document.title for document in part],
        "text": [document.text for document in part],
        "url": [document.url for document in part],
        "topic": [document.topic for document in part],
        "label_source": ["column" if document.topic is not None else None for document in part],
        "label_score": [None] * len(part),
        "extra": [json.dumps(document.extra, ensure_ascii=False) for document in part],
    }
    write_table(documents_path(run, number), pa.table(columns, schema=STAGED_DOCUMENTS), digest)


@dataclass(frozen=True)
class Staged:
    """A part's documents."""

    digest: str
    docs: np.ndarray
    ids: list[str]
    texts: list[str]


def staged(run: Run, number: int) -> Staged:
    path = run.inside(documents_path(run, number))
    table = pq.read_table(path, columns=["doc", "id", "text"])
    return Staged(digest_of(path) or "", table["doc"].to_numpy(), table["id"].to_pylist(), table["text"].to_pylist())


@dataclass(frozen=True)
class Finished:
    """What became of a part."""

    documents: int
    tokens: int
    truncated: int
    failed: int


def write_done(run: Run, number: int, table: pa.Table, digest: str) -> Finished:
    """The last thing to be written of a part."""
    write_table(done_path(run, number), table.cast(FINISHED_DOCUMENTS), digest)
    return _of(table)


def finished(run: Run, number: int, digest: str, stages: Sequence[int]) -> Finished | None:
    """What became of a part, if all its files are there and made from these inputs."""
    paths = [done_path(run, number), *(run.part_path(stage, number) for stage in stages)]
    if any(digest_of(run.inside(path)) != digest for path in paths):
        return None
    return _of(read_done(run, number))


def read_done(run: Run, number: int) -> pa.Table:
    return pq.read_table(run.inside(done_path(run, number)), schema=FINISHED_DOCUMENTS)


def _of(table: pa.Table) -> Finished:
    tokens, truncated = (pc.sum(table[name]).as_py() or 0 for name in ("tokens", "truncated"))
    return Finished(len(table), tokens, truncated, len(table) - table["failed"].null_count)
