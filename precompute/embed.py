"""The step ``embed``: documents in, parts of head vectors out; what is there already is not made again."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from core.draft import Draft
from core.embedder import EmbedderConfig, ModelInfo
from core.errors import Mistake
from core.files import remove_leftovers
from core.manifest import Manifest, Step, model_record
from core.store import Run
from core.stored import stored
from core.versions import versions
from precompute.corpus import Columns, Corpus, Filters
from precompute.engines import ENGINES, Task
from precompute.fingerprint import fingerprint
from precompute.finishing import finish
from precompute.part import Batch, Event, PartDone, PartSpec
from precompute.progress import Meter, Progress, Quiet
from precompute.reading import Reader
from precompute.sources import open_source
from precompute.staging import finished_paths
from precompute.step import now
from precompute.storage import Storage
from precompute.work import working_on

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
    engine: str = "local"
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
    gone: tuple[str, ...] = ()
    """Steps that the replaced run had, and this one has not yet."""


def run(config: EmbedConfig, progress: Progress | None = None) -> EmbedResult:
    """Embeds a corpus into a run; after an interruption, only what is missing."""
    if config.part_size < 1:
        raise Mistake(f"--part-size {config.part_size} makes no sense. Give 1 or more.")
    progress = progress or Quiet()
    target = Run(config.cache, config.run)
    source = open_source(config.source)
    model, corpus = config.embedder.locate(), source.fingerprint()
    inputs = _inputs(config, corpus, model.revision)
    with working_on(target, "embed") as work:
        target, before = work.at, _before(work.at, config.replace, inputs)
        beside = config.replace and before is not None and before.is_done("embed")
        earlier = tuple(before.steps) if beside and before is not None else ()
        if beside:  # people read it: it stays until the new one is finished
            target = work.anew()
            before = _before(target, config.replace, inputs)
        if before is not None and before.is_done("embed", inputs) and (beside or not config.replace):
            shutil.rmtree(target.staging, ignore_errors=True)
            manifest = _with_query_prompt(target, before, config.embedder.query_prompt)
            return EmbedResult(manifest, True, bytes=target.bytes(), gone=_gone(earlier, manifest))
        step = before.steps.get("embed") if before is not None else None
        going_on = step is not None and step.state != "done" and step.fingerprint == inputs
        if before is not None and not going_on and not config.replace:
            raise _other_inputs(before, target.name)
        try:
            meter = Meter("embed", progress)
            meter.say("loading the model")
            spec = PartSpec(
                config.cache,
                config.run,
                target.kind if isinstance(target, Draft) else None,
                config.embedder,
                model.revision,
                inputs,
                config.storage,
            )
            reader = Reader(target, Corpus(source, config.columns, config.filters), inputs, config.part_size)
            job = _Job(target, config, reader, source.label, corpus, going_on, meter)
            ENGINES[config.engine].run(Task(spec, model, reader), job.tell)
            result = job.finish()
            return replace(result, gone=_gone(earlier, result.manifest))
        finally:
            progress.close()


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
        target: Run,
        config: EmbedConfig,
        reader: Reader,
        label: str,
        corpus: str,
        going_on: bool,
        meter: Meter,
    ) -> None:
        self._target, self._config, self._reader, self._meter = target, config, reader, meter
        self._label, self._corpus, self._going_on = label, corpus, going_on
        self._manifest: Manifest | None = None
        self._kept = 0
        self._told: dict[int, int] = {}
        """Of the parts that are being made, the documents that count as done; one made anew counts once."""
        self._fraction: float | None = 0.0
        self._began = time.monotonic()

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
        assert self._manifest is not None
        assert self._reader.read is not None
        self._meter.say("writing documents.parquet")
        manifest = finish(self._target, self._manifest, self._reader.read, self._began)
        return EmbedResult(manifest, skipped=False, parts_kept=self._kept, bytes=self._target.bytes())

    def _begin(self, info: ModelInfo) -> None:
        if self._manifest is not None:
            return
        self._meter.restart()
        self._began = time.monotonic()
        manifest = _begun(self._config, info, self._label, self._corpus, self._reader.inputs)
        self._reader.open(self._going_on)
        if not self._going_on:
            self._target.remove()
        remove_leftovers(self._target.folder)
        self._manifest = manifest
        self._target.write_manifest(manifest)

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
            whole = self._fraction + (after - before) * share
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
