"""Induction and duplicate-token scores: random tokens twice in a row, and what each head attends to the second time.

An induction head attends from a token's second occurrence to the token after the first one (Olsson et al., 2022), a
duplicate-token head to the first occurrence itself. In a causal model both need the text before; a model that sees both
ways may get there by comparing the two copies position by position.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

LENGTH, SEQUENCES = 50, 8
SCORES = ("induction", "duplicate", "baseline")


@dataclass(frozen=True)
class InductionScores:
    """Mean attention from tokens' second occurrences; each ``[layer, head]``."""

    induction: np.ndarray
    """To the token after the first occurrence."""
    duplicate: np.ndarray
    """To the first occurrence itself."""
    baseline: np.ndarray
    """To another token of the first copy."""


def random_tokens(vocabulary: int, special: Collection[int], length: int, sequences: int, seed: int) -> np.ndarray:
    """``[sequence, token]``: ids below ``vocabulary``, none special and none twice in a sequence."""
    ordinary = np.setdiff1d(np.arange(vocabulary), np.fromiter(special, dtype=np.int64))
    chance = np.random.default_rng(seed)
    return np.stack([chance.choice(ordinary, size=length, replace=False) for _ in range(sequences)])


def repeated_scores(weights: np.ndarray, start: int, length: int) -> np.ndarray:
    """``[score, head]`` of SCORES, from ``weights[head, from, to]`` over two copies of ``length`` tokens.

    The first copy begins at token ``start``, the second right after it. The token after the last one of the first copy
    is the first one of the second copy.
    """
    second = weights[:, start + length : start + 2 * length, start : start + length + 1].astype(np.float64)
    place = np.arange(length)
    after, itself = second[:, place, place + 1], second[:, place, place]
    others = np.ones((length, length), dtype=bool)
    others[place, place] = others[place[:-1], place[1:]] = False
    return np.stack([after.mean(axis=1), itself.mean(axis=1), second[:, :, :length][:, others].mean(axis=1)])
