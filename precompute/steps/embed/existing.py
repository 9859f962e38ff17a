"""What is there before ``embed`` begins: whether there is something to be done, where, and whether it may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.errors import Mistake
from core.runs.describe import stored
from core.runs.manifest import Manifest
from core.runs.run import Run
from precompute.job.work import Work
from precompute.steps.embed.config import EmbedConfig
from precompute.steps.embed.staging import finished_paths


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
        f"The run '{name}' holds vectors of other inputs (model {before.model['name']}, layer {before.model['layer']}, "
        f"corpus {before.corpus['source']}, {stored(before)}, or other settings). Choose another run name, or pass "
        "--replace to make it anew."
    )
