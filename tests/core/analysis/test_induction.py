"""Induction and duplicate-token scores on attention worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from core.analysis.induction import SCORES, random_tokens, repeated_scores


def test_scores_are_means_over_second_occurrences() -> None:
    weights = np.zeros((2, 8, 8))  # [B] a b c a b c [E]
    weights[0, 4, [1, 2, 3]] = 0.1, 0.5, 0.2
    weights[0, 5, [1, 2, 3]] = 0.3, 0.2, 0.4
    weights[0, 6, [1, 2, 3, 4]] = 0.1, 0.1, 0.3, 0.6
    weights[1, :, 0] = 1  # a head that rests on the first token
    assert SCORES == ("induction", "duplicate", "baseline")
    found = repeated_scores(weights, start=1, length=3)
    assert found == pytest.approx(np.array([[0.5, 0], [0.2, 0], [(0.2 + 0.3 + 0.1 + 0.1) / 4, 0]]))


def test_random_tokens_are_ordinary_distinct_and_seeded() -> None:
    found = random_tokens(12, {0, 3, 11, 99}, length=9, sequences=20, seed=5)
    assert {tuple(sorted(row)) for row in found.tolist()} == {(1, 2, 4, 5, 6, 7, 8, 9, 10)}
    assert np.array_equal(found, random_tokens(12, {0, 3, 11, 99}, length=9, sequences=20, seed=5))
    assert not np.array_equal(found, random_tokens(12, {0, 3, 11, 99}, length=9, sequences=20, seed=6))
