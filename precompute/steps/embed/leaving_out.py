"""Documents that could not be embedded are left out, as if the corpus had never had them: the others close up.

What is left has whole parts again, so that nobody who reads a run must know that something was left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.runs.files import remove_file
from core.runs.parts import digest_of, write_table
from core.runs.run import Run
from core.runs.schema import FAILED
from precompute.job.fingerprint import part_digest
from precompute.steps.embed.staging import Read, documents_path, read_done, staged


@dataclass(frozen=True)
class Failed:
    """One document, by its place (from 0) among those that were read."""

    place: int
    id: str
    reason: str


def failed(run: Run, read: Read) -> list[Failed]:
    """All documents that could not be embedded, in order."""
    found = []
    for number in range(read.parts):
        done = read_done(run, number)
        if done["failed"].null_count == len(done):
            continue
        ids = pq.read_table(run.inside(documents_path(run, number)), columns=["id"])["id"].to_pylist()
        rows = zip(done["doc"].to_pylist(), ids, done["failed"].to_pylist(), strict=True)
        found += [Failed(place, id_, reason) for place, id_, reason in rows if reason is not None]
    return found


def leave_out(run: Run, stages: Iterable[int], read: Read, size: int, left_out: list[Failed]) -> int:
    """Renumbers what is left, a part at a time, and returns how many parts that makes; may be interrupted, repeated.

    A part takes its documents from its own place or from later ones. They are rewritten from the first on, so that
    those to be read still are as they were; one that has its new digest is done.
    """
    places = np.asarray([one.place for one in left_out], dtype=np.int64)
    digests = list(_digests(run, read, size))
    count = read.documents - len(places)
    for stage in stages:
        for number, digest in enumerate(digests):
            path = run.part_path(stage, number)
            if digest_of(path) == digest:
                continue
            first, last = (_place(doc, places) for doc in (number * size, min(count, (number + 1) * size) - 1))
            sources = [run.inside(run.part_path(stage, source)) for source in range(first // size, last // size + 1)]
            table = pa.concat_tables([pq.read_table(source, page_checksum_verification=True) for source in sources])
            table = table.filter(pc.and_(pc.greater_equal(table["doc"], first), pc.less_equal(table["doc"], last)))
            docs = table["doc"].to_numpy()
            closed_up = pa.array(docs - np.searchsorted(places, docs), pa.int32())
            write_table(path, table.set_column(0, table.schema.field(0), closed_up), digest, compression="none")
        for path in run.parts(stage)[len(digests) :]:
            remove_file(path)
    rows = {name: [getattr(one, name) for one in left_out] for name in FAILED.names}
    write_table(run.failed_path, pa.table(rows, schema=FAILED), read.inputs)
    return len(digests)


def _place(doc: int, places: np.ndarray) -> int:
    """Where a document stood that has the number ``doc`` once those at ``places`` are left out."""
    return doc + int(np.searchsorted(places - np.arange(len(places)), doc, side="right"))


def _digests(run: Run, read: Read, size: int) -> Iterator[str]:
    """Of the parts of what is left."""
    left = _left(run, read)
    while part := list(islice(left, size)):
        yield part_digest(read.inputs, part)


def _left(run: Run, read: Read) -> Iterator[tuple[str, str]]:
    for number in range(read.parts):
        part = staged(run, number)
        reasons = read_done(run, number)["failed"].to_pylist()
        for id_, text, reason in zip(part.ids, part.texts, reasons, strict=True):
            if reason is None:
                yield id_, text
