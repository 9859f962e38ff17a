"""What the Retrieval lab shows right now."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.retrieval.ways import Heads
from pages.shared.data import RunState
from pages.use.retrieval_lab.controls import Question


@dataclass(frozen=True)
class Shown:
    """A question, two ways to rank, and heads that count."""

    state: RunState
    stage: int
    task: str | None
    """None where the heads have not been judged yet."""
    question: Question
    ways: tuple[str, str]
    weights: np.ndarray
    """``[head]``, at least one above 0."""
    scores: np.ndarray
    """``[head]``: MRAG's."""

    @property
    def heads(self) -> Heads:
        return Heads(self.weights, self.scores)
