"""One start of ``embed``: begins the run once a model is loaded, shows how far the engine is, and finishes it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from core.errors import Mistake
from core.machine import versions
from core.model.embedder import ModelInfo
from core.runs.describe import stored
from core.runs.files import remove_leftovers
from core.runs.manifest import Manifest, Step
from core.runs.run import Run
from precompute.job.progress import Meter
from precompute.job.step import now
from precompute.job.work import Work
from precompute.steps.embed.config import EmbedConfig, EmbedResult, options_of
from precompute.steps.embed.finishing import done_by_another, finish, missing
from precompute.steps.embed.part_spec import BatchDone, Event, PartDone
from precompute.steps.embed.reading import CorpusReader
from precompute.steps.embed.staging import finished_paths, is_made, read_record


@dataclass(frozen=True)
class StartState:
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


def start_state(work: Work, config: EmbedConfig, inputs: str, shared: bool) -> StartState:
    """Whether there is something to be done, where, and whether that is allowed."""
    target, before = work.at, before_in(work.at, config.replace, inputs)
    if shared and before is not None and before.is_done("embed", inputs):
        # Whoever comes after the last of many has nothing to replace.
        return StartState(target, before, False, before)
    beside = config.replace and before is not None and before.is_done("embed")
    earlier = tuple(before.steps) if beside and before is not None else ()
    if beside:  # people read it: it stays until the new one is finished
        target = work.anew()
        before = before_in(target, config.replace, inputs)
    if before is not None and before.is_done("embed", inputs) and (beside or not config.replace):
        return StartState(target, before, False, before, earlier)
    step = before.steps.get("embed") if before is not None else None
    going_on = step is not None and step.state != "done" and step.fingerprint == inputs
    if before is not None and not going_on and not config.replace:
        raise other_inputs(before, target.name)
    return StartState(target, before, going_on, None, earlier)


def before_in(target: Run, replacing: bool, inputs: str) -> Manifest | None:
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


def gone_since(earlier: Sequence[str], manifest: Manifest) -> tuple[str, ...]:
    return tuple(step for step in earlier if step not in manifest.steps)


def other_inputs(before: Manifest, name: str) -> Mistake:
    return Mistake(
        f"The run '{name}' has vectors from different inputs (model {before.model['name']}, layer "
        f"{before.model['layer']}, "
        f"corpus {before.corpus['source']}, {stored(before)}, or other settings). Choose another run name, or pass "
        "--replace to rebuild it."
    )


def _begun(config: EmbedConfig, info: ModelInfo, label: str, corpus: str, inputs: str) -> Manifest:
    """The manifest of a run at its beginning."""
    return Manifest(
        model=info.record(),
        vectors={
            "dtype": config.storage.dtype,
            "stages": list(config.storage.kept(info)),
            "part_size": config.part_size,
        },
        corpus={"source": label, "fingerprint": corpus, "documents": 0, "extra": {}},
        versions=versions(),
        steps={"embed": Step(inputs, "running", now(), options=options_of(config))},
    )


class EmbedJob:
    """One start of the step, from the first event to the finished run."""

    def __init__(
        self,
        config: EmbedConfig,
        found: StartState,
        reader: CorpusReader,
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
        self._documents_done: dict[int, int] = {}
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

    def on_event(self, event: Event) -> None:
        """Shows how far the engine is."""
        if isinstance(event, BatchDone):
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

    def begin(self, info: ModelInfo) -> None:
        """The model is loaded: begins the run, in place of one that is to be replaced."""
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
        assert self._manifest is not None
        with Run(target.cache, target.name).turn("beginning", wait=True):
            before = before_in(target, True, inputs)
            step = before.steps.get("embed") if before is not None else None
            if before is not None and step is not None and step.fingerprint == inputs:
                if before.stages != self._manifest.stages:  # stage 4 alone is not in the fingerprint
                    raise other_inputs(before, target.name)
                self._manifest = before
                return
            self._reader.open(False)
            target.remove()
            target.write_manifest(self._manifest)

    def _end(self, part: PartDone) -> None:
        if part.kept:
            self._kept += 1
            self._add(part.part, 1.0)
            self._meter.skip(part.documents, self._fraction, f"part {part.part + 1} was finished before")
        else:
            batches = part.part in self._documents_done
            self._advance(part.part, part.documents, part.documents, 0 if batches else part.tokens)
            self._documents_done.pop(part.part)

    def _advance(self, part: int, done: int, of: int, tokens: int) -> None:
        before = self._documents_done.get(part, 0)
        self._documents_done[part] = max(before, done)
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
