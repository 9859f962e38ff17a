"""Stage 4 for a run that is finished without it: its own texts through its own model, and no other vector touched."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from core.errors import Mistake
from core.model.presets import DEFAULT_MODEL
from core.model.same_model import Whereabouts, run_model
from core.model.stages import SHARE
from core.runs.checksums import begun, checksums
from core.runs.manifest import Manifest
from core.runs.parts import digest_of, write_part
from core.runs.run import Run
from core.runs.shares import write_share_space
from precompute.job.progress import Meter
from precompute.job.storage import Storage
from precompute.job.work import Work
from precompute.steps.embed.config import EmbedConfig, EmbedResult
from precompute.steps.embed.corpus import Filters
from precompute.steps.embed.corpus_columns import Columns

MADE_OF_STAGES = ("analyse", "project", "retrieve", "aspects")
"""Steps whose figures are of every stage: they are made again."""


def is_wanted(config: EmbedConfig, before: Manifest) -> bool:
    """Whether the command names stage 4 beside the stages that a finished run has."""
    stages = config.storage.stages or ()
    own = tuple(stage for stage in stages if stage != SHARE) == before.study_stages
    return SHARE in stages and own and not config.replace and before.is_done("embed")


def is_asked_for(config: EmbedConfig, run: Run) -> bool:
    """The same for a command that says nothing of a corpus or of how it is embedded: the run's own are meant."""
    if config.source_given or config.replace or SHARE not in (config.storage.stages or ()) or not run.exists():
        return False
    embedder = config.embedder
    settings = (embedder.pooling, embedder.prompt, embedder.max_tokens, embedder.dtype, *embedder.layers)
    plain = config.filters == Filters() and config.columns == Columns() and all(one is None for one in settings)
    return plain and is_wanted(config, run.manifest())


def add_shares(config: EmbedConfig, work: Work, meter: Meter) -> EmbedResult:
    """Adds stage 4 beside the run that people read; stopped, it goes on where it was."""
    before = work.at.manifest()
    if before.is_sampled:
        raise Mistake(
            f"The run '{config.run}' stores the vectors of a sample, and figures of stage 4 need all of them. "
            f"Embed it again with 'python -m precompute all {config.run} --source … --replace'."
        )
    meter.say("loading the model")
    where = config.embedder
    named = None if where.model == DEFAULT_MODEL else where.model
    embedder = run_model(
        before.model, Whereabouts(named, where.device, where.trust_remote_code, where.models_dir), shares=True
    )
    run = work.begin("embed")
    manifest = run.manifest()
    files = {path: digest for path, digest in manifest.files.items() if not path.startswith("heads/")}
    run.write_manifest(replace(manifest, files=files))  # begun: what is made from here on stays for the next start
    docs, lookup, size = run.vector_docs(), run.document_lookup(), int(manifest.vectors["part_size"])
    storage, heads = Storage(dtype=manifest.vectors["dtype"]), manifest.shape.heads
    meter.restart()
    for number in range(manifest.parts):
        own, path = docs[number * size : (number + 1) * size], run.part_path(SHARE, number)
        digest = digest_of(run.part_path(manifest.stages[0], number))
        share = (number + 1) / manifest.parts
        if digest is not None and digest_of(path) == digest:
            meter.skip(len(own), share, f"part {number + 1} was finished before")
            continue
        embedded = embedder.embed(lookup.rows(own, ["text"])["text"].to_pylist())
        vectors = embedded.stage(SHARE)
        write_part(path, own, vectors, storage.dtype_for([vectors], heads), digest or "", heads)
        meter.work(len(own), int(embedded.tokens.sum()), share)
    step = manifest.steps["embed"]
    write_share_space(run, embedder.share_space(), step.fingerprint)
    vectors_of = {**manifest.vectors, "stages": sorted((*manifest.stages, SHARE))}
    known = dict(before.files)  # of the other stages: damage is not written down as right
    if _is_wide(run) and vectors_of["dtype"] == "float16":
        vectors_of["dtype"] = "float32"
        run.to_float32(manifest.shape)
        known = begun(known, "slim")  # all but heads/
    gone = tuple(name for name in MADE_OF_STAGES if name in manifest.steps)
    steps = {name: found for name, found in manifest.steps.items() if name not in gone}
    files = checksums(run, known) if known else {}
    manifest = replace(manifest, vectors=vectors_of, steps=steps, files=files)
    run.write_manifest(manifest)
    return EmbedResult(manifest, skipped=False, bytes=run.bytes(), gone=gone, added=SHARE)


def _is_wide(run: Run) -> bool:
    footers = (run.backend.footer(path) for path in run.parts(SHARE))
    return any(
        found is not None and found.schema.to_arrow_schema().field("vector").type.value_type == pa.float32()
        for found in footers
    )
