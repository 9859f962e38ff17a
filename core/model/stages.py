"""The stages at which a head's vector is read; how its row is cut into heads, or at random, the control."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.errors import Mistake, listed
from core.model.shape import ModelShape
from core.model.share_space import ShareSpace

HEADS, RANDOM = "heads", "random"
SLICINGS = (HEADS, RANDOM)
"""'heads' cuts where the heads are; 'random' cuts a fixed random permutation of the same dimensions.

What random slices show as well as heads do is no finding about heads.
"""
_SEED = 20_250_908


@dataclass(frozen=True)
class Stage:
    number: int
    name: str
    sentence: str
    caveat: str = ""


_NOT_HEADS = (
    "A dense projection lies between the heads and this stage, so its slices are not guaranteed to correspond to heads."
)
_DIRECT = (
    "A share is direct: what later layers compute from a head's output counts as theirs. The full embedding of this "
    "stage is the sum of the heads' shares."
)

STAGES: dict[int, Stage] = {
    1: Stage(1, "attention", "What each head read from the text, before the heads are mixed."),
    2: Stage(2, "projected", "After the attention block's output projection has mixed the heads.", _NOT_HEADS),
    3: Stage(3, "output", "The model's own embedding, cut into as many slices as there are heads.", _NOT_HEADS),
    4: Stage(4, "share", "What each head adds to the model's own embedding, exactly.", _DIRECT),
}
SHARE = 4
NO_SHARES = f"Stage {SHARE} is left out."
"""How the note begins of a model whose shares cannot be computed."""
STUDY = (1, 2, 3)
"""The study's stages: what is compared with it is of these."""


def check_stage(stage: int, available: tuple[int, ...] = STUDY) -> Stage:
    """The stage of that number, or a sentence that lists the ones there are."""
    if stage not in available:
        raise Mistake(f"Stage {stage} is not available here. Choose one of {listed(available)}.")
    return STAGES[stage]


def check_head(head: int, heads: int) -> int:
    """``head`` as people count it (from 1), if the model has it."""
    if not 1 <= head <= heads:
        raise Mistake(f"Head {head} does not exist (this model has heads 1–{heads}). Choose another head.")
    return head


def split_heads(vectors: np.ndarray, stage: int, shape: ModelShape) -> np.ndarray:
    """A stage's rows as head vectors: ``[doc, width] -> [doc, head, dim]``, a view."""
    shape.refuse_uneven(stage)
    return vectors.reshape(len(vectors), shape.heads, shape.width(stage) // shape.heads)


def permutation(width: int, slicing: str) -> np.ndarray:
    """The order of a row's ``width`` dimensions in which it is cut; always the same one."""
    if slicing not in SLICINGS:
        raise ValueError(f"There is no slicing '{slicing}'; there are {', '.join(SLICINGS)}.")
    if slicing == HEADS:
        return np.arange(width)
    return np.random.default_rng(_SEED).permutation(width)


def cut(rows: np.ndarray, heads: int, slicing: str, space: ShareSpace | None = None) -> np.ndarray:
    """``[doc, width] -> [doc, head, dim]`` in float32; with the ``space`` of shares, random slices are cut in it."""
    if space is not None and slicing == RANDOM:
        outputs = space.outputs(rows)
        return space.slices(permutation(outputs.shape[1], slicing))(outputs)
    ordered = rows if slicing == HEADS else rows[:, permutation(rows.shape[1], slicing)]
    return ordered.astype(np.float32, copy=False).reshape(len(rows), heads, -1)
