"""What a run keeps while it is being made: its documents by part, what became of them, how far the corpus was read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.runs.files import replacing
from core.runs.parts import digest_of, write_table
from core.runs.run import Run
from core.runs.schema import FINISHED_DOCUMENTS, STAGED_DOCUMENTS

if TYPE_CHECKING:
    from precompute.steps.embed.corpus import Document


def documents_path(run: Run, number: int) -> Path:
    """A part's documents, as they were read."""
    return run.staging / "documents" / f"part-{number:05d}.parquet"


def done_path(run: Run, number: int) -> Path:
    """What became of a part's documents; with this file, written last, the part counts as finished."""
    return run.staging / "done" / f"part-{number:05d}.parquet"


def is_staged(run: Run, number: int) -> bool:
    """Whether a part's documents are there."""
    return digest_of(documents_path(run, number)) is not None


def finished_paths(run: Run) -> list[Path]:
    return run.parts_in(done_path(run, 0).parent)


def mark_made(run: Run, inputs: str) -> None:
    """All parts are made, and the run is being finished."""
    _write_json(_made_path(run), {"inputs": inputs})


def is_made(run: Run, inputs: str) -> bool:
    """Whether only the finishing of these inputs' run was interrupted."""
    try:
        found = json.loads(run.inside(_made_path(run)).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(found == {"inputs": inputs})


def _made_path(run: Run) -> Path:
    return run.staging / "made.json"


def begin(run: Run, number: int, digest: str) -> int:
    """Marks a part as being made; returns how often whoever made it has died since it was staged."""
    try:
        found = json.loads(run.inside(_begun_path(run, number)).read_text(encoding="utf-8"))
        deaths = int(found["begun"]) if found["digest"] == digest else 0
    except (OSError, ValueError, KeyError, TypeError):
        deaths = 0
    _write_json(_begun_path(run, number), {"digest": digest, "begun": deaths + 1})
    return deaths


def forgive(run: Run, number: int, digest: str, deaths: int) -> None:
    """Who made the part has stopped, but is alive."""
    _write_json(_begun_path(run, number), {"digest": digest, "begun": deaths})


def _begun_path(run: Run, number: int) -> Path:
    return run.staging / "begun" / f"part-{number:05d}.json"


def _write_json(path: Path, found: Mapping[str, Any]) -> None:
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(found) + "\n", encoding="utf-8")


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
    _write_json(_read_path(run), asdict(read))


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
    if any(digest_of(path) != digest for path in paths):
        return None
    return _of(read_done(run, number))


def read_done(run: Run, number: int) -> pa.Table:
    return pq.read_table(run.inside(done_path(run, number)), schema=FINISHED_DOCUMENTS)


def _of(table: pa.Table) -> Finished:
    import pyarrow.compute as pc  # takes a while, and 'status' does without

    tokens, truncated = (pc.sum(table[name]).as_py() or 0 for name in ("tokens", "truncated"))
    return Finished(len(table), tokens, truncated, len(table) - table["failed"].null_count)
