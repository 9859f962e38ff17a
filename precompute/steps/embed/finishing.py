"""All parts are there: the documents in one table, one precision for all vectors, the manifest's last word."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.errors import Mistake
from core.model.stages import SHARE
from core.runs.checksums import checksums
from core.runs.files import remove_file, remove_folder, remove_leftovers
from core.runs.manifest import Manifest
from core.runs.parts import digest_of, write_table
from core.runs.run import Run
from core.runs.schema import FAILED
from precompute.job.documents import finish_documents
from precompute.job.fingerprint import part_digest
from precompute.job.step import now
from precompute.steps.embed.staging import Read, documents_path, finished_paths, mark_made, read_done, staged


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


def finish(run: Run, manifest: Manifest, read: Read, began: float, max_failures: int) -> Manifest:
    """Makes a run of finished parts; ``began`` is the clock's time (time.monotonic) at which the step did.

    May be interrupted, and repeated.
    """
    left_out = failed(run, read)
    _refuse(left_out, read, max_failures)
    mark_made(run, read.inputs)  # from here on parts may be others than those that were embedded
    remove_leftovers(run.folder)
    _remove_parts_from(run, manifest, read.parts)
    manifest = _one_precision(run, manifest)
    parts = read.parts
    if left_out:
        parts = leave_out(run, manifest.stages, read, int(manifest.vectors["part_size"]), left_out)
    step = manifest.steps["embed"]
    extra = finish_documents(run, read.parts, step.fingerprint)
    counts = {**read.counts, **_learned(run, read), "parts": parts}
    if left_out:
        counts["failed"] = len(left_out)
    seconds = round(time.monotonic() - began, 3)
    step = replace(step, state="done", finished=now(), seconds=seconds, counts=counts)
    corpus = {**manifest.corpus, "documents": read.documents - len(left_out), "extra": extra}
    manifest = replace(manifest, corpus=corpus, files=checksums(run, {})).with_step("embed", step)
    run.write_manifest(manifest)
    remove_folder(run.staging)
    return manifest


def done_by_another(run: Run, inputs: str) -> Manifest | None:
    """The manifest, if somebody else has finished the run meanwhile, and put it in its place."""
    for place in (run, Run(run.cache, run.name)):
        with contextlib.suppress(Mistake):
            manifest = place.manifest()
            if manifest.is_done("embed", inputs):
                return manifest
    return None


def missing(run: Run, read: Read) -> int:
    """How many parts are not finished."""
    return read.parts - len(finished_paths(run)[: read.parts])


def _refuse(left_out: list[Failed], read: Read, max_failures: int) -> None:
    """What could not be embedded is left out only if that was said to be right; all else is done by now, and kept."""
    if not left_out:
        return
    first = f"number {left_out[0].place + 1:,}, '{left_out[0].id[:80]}' ({left_out[0].reason})"
    if len(left_out) == read.documents:
        raise Mistake(f"No document could be embedded. The first: {first}. Fix the corpus, or try another --dtype.")
    if len(left_out) > max_failures:
        count = f"{len(left_out):,} documents" if len(left_out) > 1 else "1 document"
        raise Mistake(
            f"{count} could not be embedded: {'among them ' if len(left_out) > 1 else ''}{first}. All others are "
            f"embedded and kept: start the same command with --max-failures {len(left_out)} to leave these out."
        )


def _learned(run: Run, read: Read) -> dict[str, int]:
    tokens = truncated = 0
    for number in range(read.parts):
        table = read_done(run, number)
        tokens += sum(table["tokens"].to_pylist())
        truncated += sum(table["truncated"].to_pylist())
    return {"tokens": tokens, "truncated": truncated}


def _one_precision(run: Run, manifest: Manifest) -> Manifest:
    """Where float16 did not hold one part, all are float32."""
    footers = (run.backend.footer(path) for path in run.parts(manifest.stages[0]))
    wide = any(
        found is not None and found.schema.to_arrow_schema().field("vector").type.value_type == pa.float32()
        for found in footers
    )
    if not wide:
        return manifest
    manifest = replace(manifest, vectors={**manifest.vectors, "dtype": "float32"})
    run.write_manifest(manifest)
    run.to_float32(manifest.shape)
    return manifest


def _remove_parts_from(run: Run, manifest: Manifest, number: int) -> None:
    """Parts beyond the last, left over from a longer corpus; and a stage that only an earlier start was asked for."""
    for stage in set(manifest.shape.possible_stages) - set(manifest.stages):
        remove_folder(run.part_path(stage, 0).parent)
    if SHARE not in manifest.stages:
        remove_file(run.share_basis_path)
    for stage in manifest.stages:
        for path in run.parts(stage)[number:]:
            remove_file(path)
