"""All parts are there: the documents in one table, one precision for all vectors, the manifest's last word."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace

import pyarrow as pa

from core.errors import Mistake
from core.runs.checksums import checksums
from core.runs.files import remove_file, remove_folder, remove_leftovers
from core.runs.manifest import Manifest
from core.runs.run import Run
from precompute.job.documents import finish_documents
from precompute.job.step import now
from precompute.steps.embed.leaving_out import Failed, failed, leave_out
from precompute.steps.embed.staging import Read, finished_paths, mark_made, read_done


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
        raise Mistake(f"No document could be embedded, the first: {first}. Mend the corpus, or try another --dtype.")
    if len(left_out) > max_failures:
        count = f"{len(left_out):,} documents" if len(left_out) > 1 else "1 document"
        raise Mistake(
            f"{count} could not be embedded: {'among them ' if len(left_out) > 1 else ''}{first}. All others are, and "
            f"are kept: start the same command with --max-failures {len(left_out)} to leave these out."
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
    """Parts beyond the last: left over from a longer corpus."""
    for stage in manifest.stages:
        for path in run.parts(stage)[number:]:
            remove_file(path)
