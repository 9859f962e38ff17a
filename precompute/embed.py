"""The step ``embed``: documents in, parts of head vectors out; what is there already is not made again."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.embedder import Embedded, Embedder, EmbedderConfig, ModelInfo
from core.errors import Mistake
from core.files import remove_file, remove_folder, remove_leftovers
from core.manifest import Manifest, Step, model_record
from core.precision import fits_float16
from core.schema import STAGED_DOCUMENTS
from core.store import Run, digest_of, write_part, write_table
from core.versions import versions
from core.widen import widen_parts
from precompute.corpus import Columns, Corpus, Document, Filters
from precompute.documents import finish_documents
from precompute.fingerprint import fingerprint, part_digest
from precompute.progress import Meter, Progress, Quiet
from precompute.sources import Source, open_source
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
        target, before = work.at, _before(work.at, config.replace)
        beside = config.replace and before is not None and before.is_done("embed")
        earlier = tuple(before.steps) if beside and before is not None else ()
        if beside:  # people read it: it stays until the new one is finished
            target = work.anew()
            before = _before(target, config.replace)
        if before is not None and before.is_done("embed", inputs) and (beside or not config.replace):
            remove_folder(target.staging)
            manifest = _with_query_prompt(target, before, config.embedder.query_prompt)
            return EmbedResult(manifest, True, bytes=target.bytes(), gone=_gone(earlier, manifest))
        step = before.steps.get("embed") if before is not None else None
        going_on = step is not None and step.state != "done" and step.fingerprint == inputs
        if before is not None and not going_on and not config.replace:
            raise _other_inputs(before, target.name)
        try:
            meter = Meter("embed", progress)
            meter.say("loading the model")
            embedder = Embedder.load(config.embedder, model)
            meter.restart()
            manifest = _begun(config, embedder.info, source.label, corpus, inputs)
            if before is not None and going_on:
                manifest = replace(manifest, vectors={**manifest.vectors, "dtype": before.vectors["dtype"]})
            result = _Embedding(target, config, source, embedder, manifest, going_on, meter).run()
            return replace(result, gone=_gone(earlier, result.manifest))
        finally:
            progress.close()


def _begun(config: EmbedConfig, info: ModelInfo, label: str, corpus: str, inputs: str) -> Manifest:
    """The manifest of a run at its beginning."""
    return Manifest(
        model=model_record(info),
        vectors={"dtype": "float16", "stages": list(info.shape.stages), "part_size": config.part_size},
        corpus={"source": label, "fingerprint": corpus, "documents": 0, "extra": {}},
        versions=versions(),
        steps={"embed": Step(inputs, "running", _now(), options=_options(config))},
    )


@dataclass(frozen=True)
class _Counts:
    tokens: int
    truncated: int


class _Embedding:
    """One pass over a corpus; holds what the parts have in common."""

    def __init__(
        self,
        target: Run,
        config: EmbedConfig,
        source: Source,
        embedder: Embedder,
        manifest: Manifest,
        going_on: bool,
        meter: Meter,
    ) -> None:
        self.target, self.config, self.embedder, self.meter = target, config, embedder, meter
        self.manifest, self.going_on = manifest, going_on
        self.inputs = manifest.steps["embed"].fingerprint
        self.corpus = Corpus(source, config.columns, config.filters)
        self.shape = embedder.info.shape
        self.kept = 0
        self.began = time.monotonic()

    def run(self) -> EmbedResult:
        documents = self.corpus.documents()
        first = next(documents)  # a corpus that gives no document is refused here, before an older run is touched
        if not self.going_on:
            self.target.remove()
        remove_leftovers(self.target.folder)
        self.target.write_manifest(self.manifest)
        if self.dtype == "float32":
            widen_parts(self.target, self.shape)
        start = tokens = truncated = parts = 0
        fraction: float | None = 0.0
        for number, part in enumerate(_parts(itertools.chain([first], documents), self.config.part_size)):
            done = self._fraction(part[-1], start + len(part))
            counts = self._part(number, start, part, fraction, done)
            tokens, truncated = tokens + counts.tokens, truncated + counts.truncated
            start, fraction, parts = start + len(part), done, number + 1
        self._remove_parts_from(parts)
        self.meter.say("writing documents.parquet")
        extra = finish_documents(self.target, parts, self.inputs)
        self._finish(
            {**self.manifest.corpus, "documents": start, "extra": extra},
            {**asdict(self.corpus.counts), "tokens": tokens, "truncated": truncated, "parts": parts},
        )
        return EmbedResult(self.manifest, skipped=False, parts_kept=self.kept, bytes=self.target.bytes())

    @property
    def dtype(self) -> str:
        return str(self.manifest.vectors["dtype"])

    def _part(
        self, number: int, start: int, part: Sequence[Document], before: float | None, after: float | None
    ) -> _Counts:
        digest = part_digest(self.inputs, ((document.id, document.text) for document in part))
        if counts := self._finished(number, digest):
            self.kept += 1
            self.meter.skip(len(part), after, f"part {number + 1} was there already")
            return counts
        done = 0

        def on_batch(documents: int, tokens: int) -> None:
            nonlocal done
            done += documents
            within = None if before is None or after is None else before + (after - before) * done / len(part)
            self.meter.work(documents, tokens, within)

        embedded = self.embedder.embed([document.text for document in part], on_batch=on_batch)
        self._choose_dtype(embedded)
        docs = np.arange(start, start + len(part), dtype=np.int32)
        for stage in self.shape.stages:
            write_part(self.target.part_path(stage, number), docs, embedded.stage(stage), self.dtype, digest)
        # The documents last: a part counts as finished when they are there.
        write_table(self._staged_path(number), _staged(docs, part, embedded), digest)
        return _Counts(int(embedded.tokens.sum()), int(embedded.truncated.sum()))

    def _finished(self, number: int, digest: str) -> _Counts | None:
        paths = [self._staged_path(number), *(self.target.part_path(stage, number) for stage in self.shape.stages)]
        if any(digest_of(path) != digest for path in paths):
            return None
        table = pq.read_table(self.target.inside(paths[0]), columns=["tokens", "truncated"])
        return _Counts(sum(table["tokens"].to_pylist()), sum(table["truncated"].to_pylist()))

    def _staged_path(self, number: int) -> Path:
        return self.target.staging / f"part-{number:05d}.parquet"

    def _fraction(self, last: Document, count: int) -> float | None:
        wanted = self.config.filters.sample or self.config.filters.limit
        known = [value for value in (last.progress, count / wanted if wanted else None) if value is not None]
        return min(1.0, max(known)) if known else None

    def _choose_dtype(self, embedded: Embedded) -> None:
        """Where float16 does not hold these vectors, the run goes over to float32."""
        if self.dtype == "float32" or all(
            fits_float16(embedded.stage(stage), self.shape.heads) for stage in self.shape.stages
        ):
            return
        self.manifest = replace(self.manifest, vectors={**self.manifest.vectors, "dtype": "float32"})
        self.target.write_manifest(self.manifest)  # first: whoever resumes knows that all parts are to be widened
        widen_parts(self.target, self.shape)

    def _remove_parts_from(self, number: int) -> None:
        """Parts beyond the last: left over from a longer corpus."""
        for stage in self.shape.stages:
            for path in self.target.parts(stage)[number:]:
                remove_file(path)

    def _finish(self, corpus: dict[str, Any], counts: dict[str, int]) -> None:
        seconds = round(time.monotonic() - self.began, 3)
        step = replace(self.manifest.steps["embed"], state="done", finished=_now(), seconds=seconds, counts=counts)
        self.manifest = replace(self.manifest, corpus=corpus).with_step("embed", step)
        self.target.write_manifest(self.manifest)
        remove_folder(self.target.staging)


def _parts(documents: Iterable[Document], size: int) -> Iterator[list[Document]]:
    iterator = iter(documents)
    while part := list(itertools.islice(iterator, size)):
        yield part


def _staged(docs: np.ndarray, part: Sequence[Document], embedded: Embedded) -> pa.Table:
    columns: dict[str, Any] = {
        "doc": docs,
        "id": [document.id for document in part],
        "title": [document.title for document in part],
        "text": [document.text for document in part],
        "url": [document.url for document in part],
        "tokens": embedded.tokens,
        "truncated": embedded.truncated,
        "topic": [document.topic for document in part],
        "label_source": ["column" if document.topic is not None else None for document in part],
        "label_score": [None] * len(part),
        "extra": [json.dumps(document.extra, ensure_ascii=False) for document in part],
    }
    return pa.table(columns, schema=STAGED_DOCUMENTS)


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
        }
    )


def _options(config: EmbedConfig) -> dict[str, Any]:
    """What was asked for, without the defaults."""
    asked = {**asdict(config.columns), **asdict(config.filters)}
    defaults = {**asdict(Columns()), **asdict(Filters())}
    return {key: value for key, value in asked.items() if value != defaults[key]}


def _before(target: Run, replacing: bool) -> Manifest | None:
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
    nothing_finished = step is not None and step.state != "done" and not target.staged()
    return None if nothing_finished else before


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
        f"corpus {before.corpus['source']}, or other settings). Choose another run name, or pass --replace to make it "
        "anew."
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
