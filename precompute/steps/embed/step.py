"""The step ``embed``: documents in, parts of head vectors out; what is there already is not made again."""

from __future__ import annotations

from dataclasses import replace

from core.runs.files import remove_folder
from core.runs.manifest import Manifest
from core.runs.replace import NewVersion
from core.runs.run import Run
from precompute.engines import Task, engine_at, led
from precompute.job.progress import Meter, Progress, Quiet
from precompute.job.work import working_on
from precompute.sources import open_source
from precompute.steps.embed.config import EmbedConfig, EmbedResult, check, inputs_of, spec_of
from precompute.steps.embed.corpus import Corpus
from precompute.steps.embed.existing import gone_since, look
from precompute.steps.embed.follow import follow
from precompute.steps.embed.job import Job
from precompute.steps.embed.reading import Reader

__all__ = ["EmbedConfig", "EmbedResult", "run"]


def run(config: EmbedConfig, progress: Progress | None = None) -> EmbedResult:
    """Embeds a corpus into a run; after an interruption, only what is missing."""
    check(config)
    progress = progress or Quiet()
    engine = engine_at(config.engine, config.cache)
    meter = Meter("embed", progress)
    source = open_source(config.source, meter.reading)
    model, corpus = config.embedder.locate(), source.fingerprint()
    inputs = inputs_of(config, corpus, model.revision)
    run_ = Run(config.cache, config.run)
    if config.engine == "ranks" and not engine.shared and led.is_follower(run_):
        return follow(config, run_, model, inputs, progress)
    with working_on(run_, "embed", engine.shared) as work, engine.enter(run_, inputs):
        found = look(work, config, inputs, engine.shared)
        if found.done is not None:
            remove_folder(found.target.staging)
            manifest = _with_query_prompt(found.target, found.done, config.embedder.query_prompt)
            return EmbedResult(manifest, True, bytes=found.target.bytes(), gone=gone_since(found.earlier, manifest))
        target = found.target
        spec = spec_of(config, target.kind if isinstance(target, NewVersion) else None, model.revision, inputs)
        reader = Reader(target, Corpus(source, config.columns, config.filters), inputs, config.part_size)
        job = Job(config, found, reader, source.label, corpus, meter, engine.shared)
        try:
            if not job.is_made():
                engine.run(Task(spec, model, reader, config.hands), job.tell)
            result = job.finish()
        finally:
            progress.close()
        if result.left:
            work.leave_to_others()
        return replace(result, gone=gone_since(found.earlier, result.manifest))


def _with_query_prompt(target: Run, manifest: Manifest, asked: str | None) -> Manifest:
    """Another query prompt changes no document's vectors, so that it is only recorded."""
    if asked is None or asked == manifest.model["query_prompt"]:
        return manifest
    manifest = replace(manifest, model={**manifest.model, "query_prompt": asked})
    target.write_manifest(manifest)
    return manifest
