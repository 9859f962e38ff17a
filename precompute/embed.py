"""The step ``embed``: documents in, parts of head vectors out; what is there already is not made again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from core.draft import Draft
from core.embedder import EmbedderConfig, ModelInfo
from core.errors import Mistake, listed
from core.files import remove_folder, remove_leftovers
from core.locate import ModelFiles
from core.manifest import Manifest, Step, model_record
from core.mirrors import shown
from core.store import Run
from core.stored import stored
from core.versions import versions
from precompute.corpus import Columns, Corpus, Filters
from precompute.engines import ENGINES, Hands, Task, engine_at, led
from precompute.fingerprint import fingerprint
from precompute.finishing import done_by_another, finish, missing
from precompute.part_spec import Batch, Event, PartDone, PartSpec
from precompute.progress import Meter, Progress, Quiet
from precompute.reading import Reader
from precompute.sources import open_source
from precompute.staging import finished_paths, is_made, read_record
from precompute.step import now
from precompute.storage import Storage
from precompute.work import Work, working_on

ALGORITHM = 1
"""Raised whenever the same inputs give other vectors, so that older runs are made again."""


@dataclass(frozen=True)
class EmbedConfig:
    cache: Path
    run: str
    source: str = "demo"
    embedder: EmbedderConfig = field(default_factory=EmbedderConfig)
    columns: Columns = field(default_factory=Columns)
    filters: Filters = field(default_factory=Filters)
    part_size: int = 1_000
    storage: Storage = field(default_factory=Storage)
    max_failures: int = 0
    """Documents that may be left out because they cannot be embedded."""
    engine: str = "local"
    hands: Hands = field(default_factory=Hands)
    replace: bool = False
    """Make a finished run anew, or one that holds other inputs; an interrupted run of these inputs goes on.

    A finished run is there for its readers until the new one is finished, too.
    """


@dataclass(frozen=True)
class EmbedResult:
    manifest: Manifest
    skipped: bool
    """Nothing had changed since the last time."""
    parts_kept: int = 0
    """Parts that an earlier, interrupted start had finished."""
    bytes: int = 0
    """All that the run takes on the disk."""
    left: int = 0
    """Parts that others, who share the run, have not finished; the last of them finishes it."""
    led: bool = False
    """Rank 0 is to finish the run; this one has made its parts."""
    gone: tuple[str, ...] = ()
    """Steps that the replaced run had, and this one has not yet."""


def run(config: EmbedConfig, progress: Progress | None = None) -> EmbedResult:
    """Embeds a corpus into a run; after an interruption, only what is missing."""
    _check(config)
    progress = progress or Quiet()
    engine = engine_at(config.engine, config.cache)
    source = open_source(config.source)
    model, corpus = config.embedder.locate(), source.fingerprint()
    inputs = _inputs(config, corpus, model.revision)
    run_ = Run(config.cache, config.run)
    if config.engine == "ranks" and not engine.shared and led.is_follower(run_):
        return _follow(config, run_, model, inputs, progress)
    with working_on(run_, "embed", engine.shared) as work, engine.enter(run_, inputs):
        found = _look(work, config, inputs, engine.shared)
        if found.done is not None:
            remove_folder(found.target.staging)
            manifest = _with_query_prompt(found.target, found.done, config.embedder.query_prompt)
            return EmbedResult(manifest, True, bytes=found.target.bytes(), gone=_gone(found.earlier, manifest))
        target = found.target
        spec = _spec(config, target.kind if isinstance(target, Draft) else None, model.revision, inputs)
        reader = Reader(target, Corpus(source, config.columns, config.filters), inputs, config.part_size)
        job = _Job(config, found, reader, source.label, corpus, Meter("embed", progress), engine.shared)
        try:
            if not job.is_made():
                engine.run(Task(spec, model, reader, config.hands), job.tell)
            result = job.finish()
        finally:
            progress.close()
        if result.left:
            work.leave_to_others()
        return replace(result, gone=_gone(found.earlier, result.manifest))


def _spec(config: EmbedConfig, draft: str | None, revision: str, inputs: str) -> PartSpec:
    return PartSpec(
        shown(config.cache.absolute()),
        config.run,
        draft,
        config.embedder,
        revision,
        inputs,
        config.max_failures,
        storage=config.storage,
    )


def _follow(config: EmbedConfig, run_: Run, model: ModelFiles, inputs: str, progress: Progress) -> EmbedResult:
    """The parts of one rank, of a run that rank 0 begins and finishes."""
    if (before := led.manifest_of(run_)) is not None and before.is_done("embed", inputs):
        return EmbedResult(before, True, bytes=run_.bytes())
    meter, kept = Meter("embed", progress), 0

    def tell(event: Event) -> None:
        nonlocal kept
        if isinstance(event, PartDone) and event.kept:
            kept += 1
            meter.skip(event.documents, None, f"part {event.part + 1} was there already")
        elif isinstance(event, PartDone):
            meter.work(event.documents, event.tokens, None)
        elif isinstance(event, str):
            meter.say(event)

    try:
        spec = _spec(config, None, model.revision, inputs)
        led.follow(run_, spec, model, partial(_refuse_other, config, run_, inputs), tell)
    finally:
        progress.close()
    manifest = run_.manifest()
    return EmbedResult(manifest, False, kept, run_.bytes(), led=not manifest.is_done("embed", inputs))


def _refuse_other(config: EmbedConfig, run_: Run, inputs: str) -> None:
    """Where rank 0 refuses what is there, so do the others."""
    before = _before(run_, config.replace, inputs)
    step = before.steps.get("embed") if before is not None else None
    if before is None or step is None or step.fingerprint == inputs:
        return
    if not config.replace:
        raise _other_inputs(before, run_.name)
    if step.state == "done":
        raise led.not_beside(run_.name)


@dataclass(frozen=True)
class _Found:
    """What there is before the work begins."""

    target: Run
    """Where the run is made: in its place, or beside it."""
    before: Manifest | None
    going_on: bool
    """An interrupted start of these inputs is gone on with."""
    done: Manifest | None = None
    """There is nothing to do."""
    earlier: tuple[str, ...] = ()
    """Steps of the run that is to be replaced."""


def _look(work: Work, config: EmbedConfig, inputs: str, shared: bool) -> _Found:
    """Whether there is something to be done, where, and whether that is allowed."""
    target, before = work.at, _before(work.at, config.replace, inputs)
    if shared and before is not None and before.is_done("embed", inputs):
        # Whoever comes after the last of many has nothing to replace.
        return _Found(target, before, False, before)
    beside = config.replace and before is not None and before.is_done("embed")
    earlier = tuple(before.steps) if beside and before is not None else ()
    if beside:  # people read it: it stays until the new one is finished
        target = work.anew()
        before = _before(target, config.replace, inputs)
    if before is not None and before.is_done("embed", inputs) and (beside or not config.replace):
        return _Found(target, before, False, before, earlier)
    step = before.steps.get("embed") if before is not None else None
    going_on = step is not None and step.state != "done" and step.fingerprint == inputs
    if before is not None and not going_on and not config.replace:
        raise _other_inputs(before, target.name)
    return _Found(target, before, going_on, None, earlier)


def _check(config: EmbedConfig) -> None:
    if config.engine not in ENGINES:
        raise Mistake(f"There is no engine '{config.engine}'. Choose one of {listed(ENGINES)}.")
    for name, value, least in (
        ("--part-size", config.part_size, 1),
        ("--max-failures", config.max_failures, 0),
        ("--workers", config.hands.workers, 1),
        ("--num-gpus", config.hands.num_gpus, 0),
    ):
        if value is not None and value < least:
            raise Mistake(f"{name} {value} makes no sense. Give {least} or more.")


def _begun(config: EmbedConfig, info: ModelInfo, label: str, corpus: str, inputs: str) -> Manifest:
    """The manifest of a run at its beginning."""
    return Manifest(
        model=model_record(info),
        vectors={
            "dtype": config.storage.dtype,
            "stages": list(config.storage.kept(info.shape)),
            "part_size": config.part_size,
        },
        corpus={"source": label, "fingerprint": corpus, "documents": 0, "extra": {}},
        versions=versions(),
        steps={"embed": Step(inputs, "running", now(), options=_options(config))},
    )


class _Job:
    """Listens to an engine: begins the run when a model is loaded, shows how far it is, and finishes it."""

    def __init__(
        self,
        config: EmbedConfig,
        found: _Found,
        reader: Reader,
        label: str,
        corpus: str,
        meter: Meter,
        shared: bool,
    ) -> None:
        self._target, self._config, self._reader, self._meter = found.target, config, reader, meter
        self._label, self._corpus, self._shared = label, corpus, shared
        self._going_on, self._before = found.going_on, found.before
        self._manifest: Manifest | None = None
        self._kept = 0
        self._told: dict[int, int] = {}
        """Of the parts that are being made, the documents that count as done; one made anew counts once."""
        self._fraction: float | None = 0.0
        self._began = time.monotonic()
        meter.say("loading the model")

    def is_made(self) -> bool:
        """Whether an earlier start was interrupted only when it finished the run."""
        made = self._going_on and is_made(self._target, self._reader.inputs)
        self._reader.read = read_record(self._target, self._reader.inputs) if made else None
        if self._reader.read is not None:
            self._manifest, self._kept = self._before, self._reader.read.parts
        return self._reader.read is not None

    def tell(self, event: Event) -> None:
        if isinstance(event, ModelInfo):
            self._begin(event)
        elif isinstance(event, Batch):
            self._advance(event.part, event.done, event.of, event.tokens)
        elif isinstance(event, PartDone):
            self._end(event)
        else:
            self._meter.say(event)

    def finish(self) -> EmbedResult:
        """The run as a whole; of those who share it, by the one who finds that nobody has left anything to be done."""
        if self._shared:
            # Whoever reads for the others, too, holds this lock: nothing is laid down again while it is taken away.
            with self._target.turn("reading", wait=True):
                return self._finish_together()
        return self._finish()

    def _finish(self) -> EmbedResult:
        assert self._manifest is not None
        assert self._reader.read is not None
        self._meter.say("writing documents.parquet")
        manifest = finish(self._target, self._manifest, self._reader.read, self._began, self._config.max_failures)
        return EmbedResult(manifest, skipped=False, parts_kept=self._kept, bytes=self._target.bytes())

    def _finish_together(self) -> EmbedResult:
        assert self._manifest is not None
        if (manifest := done_by_another(self._target, self._reader.inputs)) is not None:
            return EmbedResult(manifest, False, self._kept, self._target.bytes())
        assert self._reader.read is not None
        if left := missing(self._target, self._reader.read):
            return EmbedResult(self._manifest, False, self._kept, left=left)
        return self._finish()

    def _begin(self, info: ModelInfo) -> None:
        self._meter.restart()
        self._began = time.monotonic()
        self._manifest = _begun(self._config, info, self._label, self._corpus, self._reader.inputs)
        if self._shared:
            self._begin_together()
            return
        self._reader.open(self._going_on)
        if not self._going_on:
            self._target.remove()
        remove_leftovers(self._target.folder)
        self._target.write_manifest(self._manifest)

    def _begin_together(self) -> None:
        """The first of those who share a run begins it; the others find it begun."""
        target, inputs = self._target, self._reader.inputs
        with Run(target.cache, target.name).turn("beginning", wait=True):
            before = _before(target, True, inputs)
            step = before.steps.get("embed") if before is not None else None
            if before is not None and step is not None and step.fingerprint == inputs:
                self._manifest = before
                return
            self._reader.open(False)
            target.remove()
            assert self._manifest is not None
            target.write_manifest(self._manifest)

    def _end(self, part: PartDone) -> None:
        if part.kept:
            self._kept += 1
            self._add(part.part, 1.0)
            self._meter.skip(part.documents, self._fraction, f"part {part.part + 1} was there already")
        else:
            batches = part.part in self._told
            self._advance(part.part, part.documents, part.documents, 0 if batches else part.tokens)
            self._told.pop(part.part)

    def _advance(self, part: int, done: int, of: int, tokens: int) -> None:
        before = self._told.get(part, 0)
        self._told[part] = max(before, done)
        if done > before:
            self._add(part, (done - before) / of)
            self._meter.work(done - before, tokens, self._fraction)

    def _add(self, part: int, share: float) -> None:
        """A share of a part more is done."""
        before, after = self._reader.fraction(part - 1), self._reader.fraction(part)
        if before is None or after is None or self._fraction is None:
            self._fraction = None
        else:
            whole = self._fraction + (after - before) * share * self._reader.shared_by
            self._fraction = 1.0 if whole > 1 - 1e-9 else whole


def _inputs(config: EmbedConfig, source: str, revision: str) -> str:
    """The fingerprint of all that decides which numbers come out; not of where or in which batches."""
    names = ("layers", "pooling", "prompt", "max_tokens", "dtype")
    return fingerprint(
        {
            "algorithm": ALGORITHM,
            "source": source,
            "model": [revision, *(getattr(config.embedder, name) for name in names)],
            "columns": config.columns,
            # Whether bad records are skipped is left out: where there are none it changes nothing, and where there are
            # some the refused command is to go on once --skip-bad is added.
            "filters": replace(config.filters, skip_bad=False),
            "part_size": config.part_size,
            **config.storage.asked(),
        }
    )


def _options(config: EmbedConfig) -> dict[str, Any]:
    """What was asked for, without the defaults."""
    asked = {**asdict(config.columns), **asdict(config.filters)}
    defaults = {**asdict(Columns()), **asdict(Filters())}
    return {key: value for key, value in asked.items() if value != defaults[key]} | config.storage.asked()


def _before(target: Run, replacing: bool, inputs: str) -> Manifest | None:
    """What is there that could be lost, if anything; a manifest that cannot be read is no obstacle to replacing it."""
    if not target.exists():
        return None
    try:
        before = target.manifest()
    except Mistake:
        if replacing:
            return None
        raise
    step = before.steps.get("embed")
    if step is None or step.state == "done" or step.fingerprint == inputs or finished_paths(target):
        return before
    return None


def _gone(earlier: Sequence[str], manifest: Manifest) -> tuple[str, ...]:
    return tuple(step for step in earlier if step not in manifest.steps)


def _with_query_prompt(target: Run, manifest: Manifest, asked: str | None) -> Manifest:
    """Another query prompt changes no document's vectors, so that it is only recorded."""
    if asked is None or asked == manifest.model["query_prompt"]:
        return manifest
    manifest = replace(manifest, model={**manifest.model, "query_prompt": asked})
    target.write_manifest(manifest)
    return manifest


def _other_inputs(before: Manifest, name: str) -> Mistake:
    return Mistake(
        f"The run '{name}' holds vectors of other inputs (model {before.model['name']}, layer {before.model['layer']}, "
        f"corpus {before.corpus['source']}, {stored(before)}, or other settings). Choose another run name, or pass "
        "--replace to make it anew."
    )
