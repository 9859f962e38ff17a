"""The parts of one rank, of a run that rank 0 begins and finishes; see precompute.engines.store_ranks."""

from __future__ import annotations

from functools import partial

from core.model.locate import ModelFiles
from core.runs.run import Run
from precompute.engines import store_ranks
from precompute.job.progress import Meter, Progress
from precompute.steps.embed.config import EmbedConfig, EmbedResult, spec_of
from precompute.steps.embed.job import before_in, other_inputs
from precompute.steps.embed.part_spec import Event, PartDone


def follow(config: EmbedConfig, run_: Run, model: ModelFiles, inputs: str, progress: Progress) -> EmbedResult:
    """Makes the parts of this rank, as rank 0 lays them down."""
    if (before := store_ranks.manifest_of(run_)) is not None and before.is_done("embed", inputs):
        return EmbedResult(before, True, bytes=run_.bytes())
    meter, kept = Meter("embed", progress), 0

    def on_event(event: Event) -> None:
        nonlocal kept
        if isinstance(event, PartDone) and event.kept:
            kept += 1
            meter.skip(event.documents, None, f"part {event.part + 1} was finished before")
        elif isinstance(event, PartDone):
            meter.work(event.documents, event.tokens, None)
        elif isinstance(event, str):
            meter.say(event)

    try:
        spec = spec_of(config, None, model.revision, inputs)
        store_ranks.follow(run_, spec, model, partial(_refuse_other, config, run_, inputs), on_event)
    finally:
        progress.close()
    manifest = run_.manifest()
    return EmbedResult(manifest, False, kept, run_.bytes(), awaits_rank_0=not manifest.is_done("embed", inputs))


def _refuse_other(config: EmbedConfig, run_: Run, inputs: str) -> None:
    """Where rank 0 refuses what is there, so do the others."""
    before = before_in(run_, config.replace, inputs)
    step = before.steps.get("embed") if before is not None else None
    if before is None or step is None or step.fingerprint == inputs:
        return
    if not config.replace:
        raise other_inputs(before, run_.name)
    if step.state == "done":
        raise store_ranks.not_beside(run_.name)
