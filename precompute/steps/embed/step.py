"""The step ``embed``: documents in, parts of head vectors out; what is there already is not made again."""

from __future__ import annotations

from dataclasses import replace

from core.errors import Mistake
from core.model.stages import SHARE
from core.runs.files import remove_folder
from core.runs.manifest import Manifest
from core.runs.replace import NewVersion
from core.runs.run import Run
from precompute.engines import EmbedTask, engine_at, store_ranks
from precompute.job.progress import Meter, Progress, Quiet, silence_transformers
from precompute.job.work import Work, working_on
from precompute.sources import open_source
from precompute.steps.embed.add_shares import add_shares, is_asked_for, is_wanted
from precompute.steps.embed.config import EmbedConfig, EmbedResult, check, inputs_of, spec_of
from precompute.steps.embed.corpus import Corpus
from precompute.steps.embed.follow import follow
from precompute.steps.embed.job import EmbedJob, gone_since, start_state
from precompute.steps.embed.reading import CorpusReader

__all__ = ["EmbedConfig", "EmbedResult", "run"]


def run(config: EmbedConfig, progress: Progress | None = None, work: Work | None = None) -> EmbedResult:
    """Embeds a corpus into a run; after an interruption, only what is missing."""
    check(config)
    progress = progress or Quiet()
    engine = engine_at(config.engine, config.cache)
    meter = Meter("embed", progress)
    run_ = Run(config.cache, config.run)
    if is_asked_for(config, run_):
        return _add(config, run_, meter, progress, work, engine.shared)
    source = open_source(config.source, meter.reading)
    model, corpus = config.embedder.locate(), source.fingerprint()
    inputs = inputs_of(config, corpus, model.revision)
    if config.engine == "ranks" and not engine.shared and store_ranks.is_follower(run_):
        silence_transformers()
        return follow(config, run_, model, inputs, progress)
    with working_on(run_, "embed", work, engine.shared) as work, engine.enter(run_, inputs):
        found = start_state(work, config, inputs, engine.shared)
        if found.done is not None and SHARE not in found.done.stages and is_wanted(config, found.done):
            return _add(config, run_, meter, progress, work, engine.shared)
        if found.done is not None:
            remove_folder(found.target.staging)
            manifest = _with_query_prompt(found.target, found.done, config.embedder.query_prompt)
            return EmbedResult(manifest, True, bytes=found.target.bytes(), gone=gone_since(found.earlier, manifest))
        silence_transformers()  # not before there is work for it: importing transformers takes seconds
        target = found.target
        spec = spec_of(config, target.kind if isinstance(target, NewVersion) else None, model.revision, inputs)

        def warn(sentence: str) -> None:
            progress.close()  # a bar ends its line
            config.warn(sentence)

        documents = Corpus(source, config.columns, config.filters, warn)
        reader = CorpusReader(target, documents, inputs, config.part_size)
        job = EmbedJob(config, found, reader, source.label, corpus, meter, engine.shared)
        try:
            if not job.is_made():
                engine.run(EmbedTask(spec, model, reader, job.begin, config.resources), job.on_event)
            result = job.finish()
        finally:
            progress.close()
        if result.left:
            work.leave_to_others()
        return replace(result, gone=gone_since(found.earlier, result.manifest))


def _add(
    config: EmbedConfig, run_: Run, meter: Meter, progress: Progress, work: Work | None, shared: bool
) -> EmbedResult:
    """Stage 4 alone."""
    if shared:
        raise Mistake("Stage 4 is added to a finished run by one job. Leave out --engine.")
    with working_on(run_, "embed", work) as work:
        if SHARE in (manifest := work.at.manifest()).stages:
            return EmbedResult(manifest, True, bytes=work.at.bytes())
        silence_transformers()
        try:
            return add_shares(config, work, meter)
        finally:
            progress.close()


def _with_query_prompt(target: Run, manifest: Manifest, asked: str | None) -> Manifest:
    """Another query prompt changes no document's vectors, so that it is only recorded."""
    if asked is None or asked == manifest.model["query_prompt"]:
        return manifest
    manifest = replace(manifest, model={**manifest.model, "query_prompt": asked})
    target.write_manifest(manifest)
    return manifest
