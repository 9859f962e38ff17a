"""How a run's vectors are stored, in words; and what a slim run leaves out, with the command that would bring it."""

from __future__ import annotations

from collections.abc import Sequence

from core.errors import Mistake, listed
from core.model.shape import ModelShape
from core.model.stages import NO_SHARES, SHARE, STAGES
from core.runs.manifest import Manifest
from core.runs.schema import INT8

_PRECISION = {
    INT8: "in each head's vector the largest number is 127 steps, and all others are rounded to whole steps",
    "float32": "float16 cannot represent these numbers",
}


def stored(manifest: Manifest) -> str:
    """``stage 3 as int8``: which stages, and as what; and of how many documents, if not of all."""
    return f"{stage_names(manifest.stages)} as {manifest.vectors['dtype']}" + (
        f", of {sampled(manifest)}" if manifest.is_sampled else ""
    )


def heads_in_groups(manifest: Manifest) -> str:
    """``12 heads``, or ``9 heads in 3 key/value groups`` where heads share key/value heads."""
    shape = manifest.shape
    heads = f"{shape.heads} head{'' if shape.heads == 1 else 's'}"
    if shape.kv_heads == shape.heads:
        return heads
    return f"{heads} in {shape.kv_heads} key/value group{'' if shape.kv_heads == 1 else 's'}"


def sampled(manifest: Manifest) -> str:
    """``20,000 of 1,000,000 documents``: how many have vectors."""
    return f"{manifest.with_vectors:,} of {int(manifest.corpus['documents']):,} documents"


def precision(manifest: Manifest) -> str:
    """What the numbers are, where they are not plain float16; else empty."""
    return _PRECISION.get(manifest.vectors["dtype"], "")


def left_out(manifest: Manifest) -> tuple[int, ...]:
    """The study's stages that this model has and the run does not, since only others were asked for."""
    return tuple(stage for stage in manifest.shape.stages if stage not in manifest.stages)


def lacks_shares(manifest: Manifest) -> bool:
    """Whether stage 4 can be added: the run does not store it, and its model was not recorded as having none."""
    refused = any(str(note).startswith(NO_SHARES) for note in manifest.model["notes"])
    return SHARE not in manifest.stages and not refused and not manifest.is_sampled


def adds_shares(run: str, manifest: Manifest) -> str:
    """The command that adds stage 4 and its figures to a run without embedding the rest anew."""
    stages = " ".join(str(stage) for stage in (*manifest.study_stages, SHARE))
    return f"python -m precompute all {run} --stages {stages} --model {manifest.model['name']}"


def brings_stages(run: str, manifest: Manifest) -> str:
    """The command that makes a run with all of its model's stages, stored as it is now."""
    kept = f" --store-dtype {INT8}" if manifest.vectors["dtype"] == INT8 else ""
    return f"python -m precompute all {run} --source … --model …{kept} --replace"


def stage_names(stages: Sequence[int]) -> str:
    """``stage 3``, ``stages 1 and 3``."""
    numbers = [str(stage) for stage in stages]
    if len(numbers) == 1:
        return f"stage {numbers[0]}"
    return f"stages {listed(numbers[:-1])} and {numbers[-1]}"


def check_stages(asked: Sequence[int] | None, shape: ModelShape) -> tuple[int, ...]:
    """The stages to be stored, in order; None is all that the model has."""
    if asked is None:
        return shape.stages
    for stage in asked:
        if stage not in STAGES:
            raise Mistake(f"--stages {stage} does not exist. Choose some of {listed(STAGES)}.")
        shape.refuse_uneven(stage)
    return tuple(sorted(set(asked)))
