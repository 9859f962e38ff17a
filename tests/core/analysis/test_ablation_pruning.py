"""Heads off one after another: planted costs are found in order, and the verdict is of the other half."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from core.analysis.ablation_pruning import (
    BY_ANGLE,
    BY_CHANCE,
    BY_SHARE,
    CANDIDATES,
    GREEDY,
    prune_by_ablation,
    sizes_of,
)

COSTS = np.array([0.0, 0.0, 0.0, 0.0, 0.3, 0.4, 0.5, 0.2])
"""By head: four cost nothing."""


def quality(docs: int, seed: int):
    chance = np.random.default_rng(seed)
    noise = chance.normal(0, 0.01, docs)

    def measure(sets: Sequence[Sequence[int]]) -> np.ndarray:
        return np.stack([1 - COSTS[list(heads)].sum() + noise for heads in sets])

    return measure


def test_heads_that_cost_nothing_go_first_and_only_they_are_enough() -> None:
    angle = np.arange(8.0)[::-1].copy()  # the costly ones move documents least: the angle alone would be wrong
    found = prune_by_ablation({BY_ANGLE: angle}, 7, quality(50, 0), quality(60, 1))
    assert set(found.order[:1]) <= {3}  # of the five candidates 7, 6, 5, 4 and 3 the only one that is free
    assert found.enough == 4
    assert set(found.order[:4]) == {0, 1, 2, 3}
    assert found.order[4] == 7  # the cheapest of the rest
    curve = found.curves[GREEDY]
    assert curve.sizes == (0, 1, 2, 3, 4, 5, 6, 7)
    assert curve.lost.value[:6] == pytest.approx([0, 0, 0, 0, 0, -0.2], abs=1e-6)
    random = found.curves[BY_CHANCE]
    assert (random.lost.value[1:] < curve.lost.value[1:] + 1e-9).all()
    assert CANDIDATES == 5


def test_removal_by_share_takes_the_smallest_share_first() -> None:
    share = np.array([0.4, 0.1, 0.3, 0.2, -0.1, 0.5, 0.6, 0.7])  # head 5 of 8, which costs 0.3, has the smallest
    found = prune_by_ablation({BY_ANGLE: np.arange(8.0), BY_SHARE: share}, 3, quality(40, 0), quality(40, 1))
    assert list(found.curves) == [GREEDY, BY_ANGLE, BY_SHARE, BY_CHANCE]
    assert found.curves[BY_SHARE].lost.value == pytest.approx([0, -0.3, -0.3, -0.3], abs=1e-6)
    assert found.curves[BY_ANGLE].lost.value == pytest.approx([0, 0, 0, 0], abs=1e-6)
    assert BY_SHARE not in prune_by_ablation({BY_ANGLE: share}, 1, quality(40, 0), quality(40, 1)).curves


def test_what_is_told_is_of_the_other_half() -> None:
    def worse(sets: Sequence[Sequence[int]]) -> np.ndarray:
        return np.stack([np.full(30, 0.9 - 0.1 * len(heads)) for heads in sets])

    found = prune_by_ablation({BY_ANGLE: np.arange(8.0)}, 3, quality(40, 2), worse)
    assert found.enough == 3
    assert found.curves[GREEDY].value.value == pytest.approx([0.9, 0.8, 0.7, 0.6], abs=1e-6)


def test_documents_without_a_figure_are_left_out() -> None:
    def some(sets: Sequence[Sequence[int]]) -> np.ndarray:
        return np.stack([np.array([1.0, 1.0 - 0.5 * len(heads), np.nan]) for heads in sets])

    found = prune_by_ablation({BY_ANGLE: np.arange(4.0)}, 2, some, some)
    assert found.curves[GREEDY].value.value == pytest.approx([1, 0.75, 0.5])
    assert found.enough == 2 or found.enough == 0  # two documents: the error is as large as the loss


def test_a_long_curve_is_thinned_out() -> None:
    sizes = sizes_of(135)
    assert (sizes[0], sizes[-1], len(sizes)) == (0, 135, 25)
    assert sizes_of(3) == (0, 1, 2, 3)
