"""What the steps after ``embed`` have in common: the run they work on, their record in the manifest, their tables."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import Mistake
from core.runs.checksums import begun, checksums
from core.runs.describe import sampled
from core.runs.files import remove_leftovers
from core.runs.manifest import Manifest, Step
from core.runs.parts import write_table
from core.runs.run import Run

Rows = dict[str, Any]
"""A table's columns: lists while its rows are being collected one by one, or arrays."""


@dataclass(frozen=True)
class StepResult:
    manifest: Manifest
    skipped: bool
    """Nothing had changed since the last time."""


class StepRecord:
    """A step that is under way; ``finish`` makes it a finished one."""

    def __init__(
        self,
        run: Run,
        name: str,
        manifest: Manifest,
        fingerprint: str,
        options: Mapping[str, Any],
        seconds: float = 0.0,
    ) -> None:
        """``seconds`` is how long the step has been at work already."""
        self._run, self._name, self._began = run, name, time.monotonic() - seconds
        step = Step(fingerprint, "running", now(), options=options)
        self._manifest = replace(manifest, files=begun(manifest.files, name)).with_step(name, step)
        remove_leftovers(run.folder)
        run.write_manifest(self._manifest)

    def finish(self, counts: Mapping[str, int], whole: bool = True, **changed: Any) -> StepResult:
        """``whole=False`` leaves it as one that was stopped: the same command goes on with it.

        ``changed`` are the manifest's other fields that the step has changed.
        """
        seconds = round(time.monotonic() - self._began, 3)
        ended: dict[str, Any] = {"state": "done", "finished": now()} if whole else {}
        step = replace(self._manifest.steps[self._name], seconds=seconds, counts=dict(counts), **ended)
        files = checksums(self._run, self._manifest.files)
        manifest = replace(self._manifest, files=files, **changed).with_step(self._name, step)
        self._run.write_manifest(manifest)
        return StepResult(manifest, skipped=False)


def embedded(run: Run) -> Manifest:
    """The manifest of a run whose vectors are all there."""
    manifest = run.manifest()
    if not manifest.is_done("embed"):
        raise Mistake(
            f"The run '{run.name}' has not all its vectors yet. Start its 'embed' command again first, and let it end."
        )
    return manifest


def all_vectors(run: Run, manifest: Manifest, step: str) -> None:
    """Refuses a run that keeps the vectors of a sample, for a step that must see all, or would ask for new figures."""
    if manifest.is_sampled:
        raise Mistake(
            f"The run '{run.name}' keeps the vectors of {sampled(manifest)}, and '{step}' needs those of all. Embed it "
            f"anew with 'python -m precompute all {run.name} --source … --replace'."
        )


def outdated(manifest: Manifest, step: str) -> Manifest:
    """``step`` was made from what has changed since; if it was done at all."""
    if not manifest.is_done(step):
        return manifest
    return manifest.with_step(step, replace(manifest.steps[step], state="outdated"))


def up_to_date(run: Run, manifest: Manifest, step: str, inputs: str, paths: Iterable[Path]) -> bool:
    """Whether ``step`` was done from these inputs, and none of its files has gone since."""
    return manifest.is_done(step, inputs) and all(run.has(path) for path in paths)


def add(rows: Rows, **columns: Any) -> None:
    """One more row."""
    for name, value in columns.items():
        rows.setdefault(name, []).append(value)


def as_table(rows: Rows, schema: pa.Schema) -> pa.Table:
    """The rows in the schema's columns; a table without rows has its columns nevertheless."""
    return pa.table({name: rows.get(name, []) for name in schema.names}, schema=schema)


def write_joined(path: Path, fragments: list[Path], schema: pa.Schema, digest: str) -> None:
    """The tables of all stages, one after the other."""
    tables = [pq.read_table(fragment, schema=schema) for fragment in fragments]
    write_table(path, pa.concat_tables(tables) if tables else schema.empty_table(), digest)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
