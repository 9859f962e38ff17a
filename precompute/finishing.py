"""All parts are there: the documents in one table, one precision for all vectors, the manifest's last word."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from core.files import remove_leftovers
from core.manifest import Manifest
from core.store import Run
from core.widen import widen_parts
from precompute.documents import finish_documents
from precompute.staging import Read, finished_paths, read_done
from precompute.step import now


def finish(run: Run, manifest: Manifest, read: Read, began: float) -> Manifest:
    """Makes a run of finished parts; ``began`` is the clock's time (time.monotonic) at which the step did.

    May be interrupted, and repeated.
    """
    remove_leftovers(run.folder)
    _remove_parts_from(run, manifest, read.parts)
    manifest = _one_precision(run, manifest)
    tokens = truncated = 0
    for number in range(read.parts):
        table = read_done(run, number)
        tokens += sum(table["tokens"].to_pylist())
        truncated += sum(table["truncated"].to_pylist())
    step = manifest.steps["embed"]
    extra = finish_documents(run, read.parts, step.fingerprint)
    counts = {**read.counts, "tokens": tokens, "truncated": truncated, "parts": read.parts}
    seconds = round(time.monotonic() - began, 3)
    step = replace(step, state="done", finished=now(), seconds=seconds, counts=counts)
    corpus = {**manifest.corpus, "documents": read.documents, "extra": extra}
    manifest = replace(manifest, corpus=corpus).with_step("embed", step)
    run.write_manifest(manifest)
    shutil.rmtree(run.staging, ignore_errors=True)
    return manifest


def missing(run: Run, read: Read) -> int:
    """How many parts are not finished."""
    return read.parts - len(finished_paths(run)[: read.parts])


def _one_precision(run: Run, manifest: Manifest) -> Manifest:
    """Where float16 did not hold one part, all are float32."""
    wide = any(
        pq.read_schema(run.inside(path)).field("vector").type.value_type == pa.float32()
        for path in run.parts(manifest.stages[0])
    )
    if not wide:
        return manifest
    manifest = replace(manifest, vectors={**manifest.vectors, "dtype": "float32"})
    run.write_manifest(manifest)
    widen_parts(run, manifest.shape)
    return manifest


def _remove_parts_from(run: Run, manifest: Manifest, number: int) -> None:
    """Parts beyond the last: left over from a longer corpus."""
    for stage in manifest.stages:
        for path in run.parts(stage)[number:]:
            path.unlink()
