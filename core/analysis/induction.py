"""Induction and duplicate-token scores: random tokens twice in a row, and what each head attends to the second time.

An induction head attends from a token's second occurrence to the token after the first one (Olsson et al., 2022), a
duplicate-token head to the first occurrence itself. In a causal model both need the text before; a model that sees both
ways may get there by comparing the two copies position by position.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class InductionScores:
    """Mean attention from tokens' second occurrences; each ``[layer, head]``."""

    induction: np.ndarray
    """To the token after the first occurrence."""
    duplicate: np.ndarray
    """To the first occurrence itself."""
    baseline: np.ndarray
    """To another token of the first copy."""


def induction_scores(attention: np.ndarray) -> InductionScores:
    """From the attention ``[layer, head, second, first]`` of the second copy's tokens to the first copy's.

    The axis ``first`` is longer by one: the token after the last one of the first copy begins the second copy.
    """
    length = attention.shape[2]
    place = np.arange(length)
    others = np.ones((length, length), dtype=bool)
    others[place, place] = others[place[:-1], place[1:]] = False
    return InductionScores(
        induction=attention[:, :, place, place + 1].mean(axis=-1),
        duplicate=attention[:, :, place, place].mean(axis=-1),
        baseline=attention[:, :, :, :length][:, :, others].mean(axis=-1),
    )
