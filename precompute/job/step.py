"""What the steps after ``embed`` have in common: when there is something to do, their record, their tables."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import Mistake
from core.runs.checksums import begun, checksums
from core.runs.describe import sampled
from core.runs.files import remove_leftovers
from core.runs.manifest import Manifest, Step
from core.runs.parts import digest_of, write_table
from core.runs.run import Run, open_run
from core.runs.schema import ANALYSIS
from core.runs.steps import STEPS, command
from precompute.job.progress import Meter, OnProgress, Progress, Quiet
from precompute.job.work import Work, working_on

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


@dataclass(frozen=True)
class Plan:
    """What a step is about to do, decided before anything is written."""

    inputs: str
    """The fingerprint of all that decides the result."""
    files: Sequence[Path]
    """What it makes: up to date only while all of them are there."""
    make: Callable[[StepRun], StepResult]
    staging: str = ""
    """The run's folder for what is finished of it, used by the next start; empty: ``analysis/<step>-staging``."""
    changes: tuple[str, ...] = ()
    """The steps whose files it replaces, if not its own."""
    is_whole: bool = True
    """Whether what it made before can be used; for files that have no digest in their footer."""


class StepRun:
    """A step at work: on the run itself, or on a copy of it while people read the old figures."""

    def __init__(self, name: str, run: Run, plan: Plan, meter: Meter) -> None:
        self.name, self.run, self.meter, self.inputs = name, run, meter, plan.inputs
        self.manifest = run.manifest()
        self.staging = run.folder / (plan.staging or f"analysis/{name}-staging")
        self._parts: list[str] = []
        self._record: StepRecord | None = None

    def begin(self, options: Mapping[str, Any]) -> None:
        """Records the step as running: from here on its figures of before do not count."""
        self._record = StepRecord(self.run, self.name, self.manifest, self.inputs, options, self.meter.seconds)

    def finish(self, counts: Mapping[str, int], **changed: Any) -> StepResult:
        """Records the step as done; ``changed`` are other fields of the manifest."""
        assert self._record is not None, "begin comes first"
        result = self._record.finish(counts, **changed)
        shutil.rmtree(self.staging, ignore_errors=True)
        return result

    def stages(self) -> Iterator[tuple[int, OnProgress]]:
        """The run's stages, each with the callback for the fraction of it that is done."""
        count = len(self.manifest.stages)
        for number, stage in enumerate(self.manifest.stages):

            def on_progress(fraction: float, message: str, number: int = number, stage: int = stage) -> None:
                self.meter.at((number + fraction) / count, f"stage {stage}: {message}")

            yield stage, on_progress

    def stage_tables(self, part: str, make: Callable[[], dict[str, Rows]], *also: Path) -> None:
        """Stores one part's rows of the step's tables, unless an interrupted start has done so and written ``also``."""
        self._parts.append(part)
        paths = {name: self.staging / part / f"{name}.parquet" for name in STEPS[self.name].tables}
        if all(digest_of(path) == self.inputs for path in (*paths.values(), *also)):
            self.meter.restart()
            return
        rows = make()
        for name, path in paths.items():
            write_table(path, as_table(rows.get(name, {}), ANALYSIS[name]), self.inputs)

    def join_tables(
        self, finished: Callable[[dict[str, pa.Table]], dict[str, pa.Table]] = lambda tables: tables
    ) -> None:
        """Writes the step's tables, the parts one after the other; ``finished`` adds what takes all parts."""
        self.meter.at(1.0, "writing the tables")
        joined: dict[str, pa.Table] = {}
        for name in STEPS[self.name].tables:
            paths = (self.staging / part / f"{name}.parquet" for part in self._parts)
            tables = [pq.read_table(path, schema=ANALYSIS[name]) for path in paths]
            joined[name] = pa.concat_tables(tables) if tables else ANALYSIS[name].empty_table()
        for name, table in finished(joined).items():
            self._write(name, table)

    def write_tables(self, tables: Mapping[str, Rows]) -> None:
        for name, rows in tables.items():
            self._write(name, as_table(rows, ANALYSIS[name]))

    def _write(self, name: str, table: pa.Table) -> None:
        write_table(self.run.analysis_path(name), table, self.inputs)


class StepConfig(Protocol):
    """What the configs of all steps have."""

    @property
    def cache(self) -> Path: ...
    @property
    def run(self) -> str: ...


def run_step(
    name: str,
    config: StepConfig,
    plan: Callable[[Run, Manifest], Plan | None],
    progress: Progress | None,
    work: Work | None,
    again: bool = False,
) -> StepResult:
    """Runs a step after ``embed`` unless it is up to date or has nothing to do (no plan).

    With ``again`` it is run all the same, and what an interrupted start has left is not used.
    """
    progress = progress or Quiet()
    run = open_run(config.cache, config.run)
    with working_on(run, name, work) as work:
        run = work.at
        manifest = embedded(run)
        planned = plan(run, manifest)
        if planned is None:
            return StepResult(manifest, skipped=True)
        if not again and planned.is_whole:
            if up_to_date(run, manifest, name, planned.inputs, planned.files):
                return StepResult(manifest, skipped=True)
            if manifest.is_outdated(name, planned.inputs) and all(
                digest_of(path) == planned.inputs for path in planned.files
            ):  # other labels came, and went again before the step was run with them
                manifest = manifest.with_step(name, replace(manifest.steps[name], state="done"))
                run.write_manifest(manifest)
                return StepResult(manifest, skipped=True)
        refuse_missing(run, manifest, name)
        step = StepRun(name, work.begin(*(planned.changes or (name,))), planned, Meter(name, progress))
        if again:
            shutil.rmtree(step.staging, ignore_errors=True)
        try:
            return planned.make(step)
        finally:
            progress.close()


def embedded(run: Run) -> Manifest:
    """The manifest of a run whose vectors are all there."""
    manifest = run.manifest()
    if not manifest.is_done("embed"):
        raise Mistake(
            f"The run '{run.name}' is not completely embedded yet. Start its 'embed' command again and let it finish."
        )
    return manifest


def refuse_missing(run: Run, manifest: Manifest, step: str) -> None:
    """Refuses a run that lacks what ``step`` needs: other steps, or the vectors of all documents."""
    if STEPS[step].all_vectors and manifest.is_sampled:
        raise Mistake(
            f"The run '{run.name}' stores the vectors of {sampled(manifest)}, and '{step}' needs all of them. Embed "
            f"it again with 'python -m precompute all {run.name} --source … --replace'."
        )
    for needed in STEPS[step].needs:
        if not manifest.is_done(needed):
            raise Mistake(
                f"'{step}' needs the results of '{needed}', which has not been run for '{run.name}'. Run "
                f"'{command(needed, run.name)}' first."
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


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
