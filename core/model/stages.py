"""The three stages at which a head's vector is read, and how a stage's row is cut into heads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from core.errors import Mistake, listed

if TYPE_CHECKING:
    from core.model.shape import ModelShape


@dataclass(frozen=True)
class Stage:
    number: int
    name: str
    sentence: str
    caveat: str = ""


_NOT_HEADS = (
    "A dense projection lies between the heads and this stage, so its slices are not guaranteed to correspond to heads."
)

STAGES: dict[int, Stage] = {
    1: Stage(1, "attention", "What each head read from the text, before the heads are mixed."),
    2: Stage(2, "projected", "After the attention block's output projection has mixed the heads.", _NOT_HEADS),
    3: Stage(3, "output", "The model's own embedding, cut into as many slices as there are heads.", _NOT_HEADS),
}


def check_stage(stage: int, available: tuple[int, ...] = (1, 2, 3)) -> Stage:
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
