"""Random tokens that are repeated."""

from __future__ import annotations

import numpy as np

from core.model.induction import random_tokens


def test_random_tokens_are_ordinary_distinct_and_seeded() -> None:
    found = random_tokens(12, {0, 3, 11, 99}, length=9, sequences=20, seed=5)
    assert {tuple(sorted(row)) for row in found.tolist()} == {(1, 2, 4, 5, 6, 7, 8, 9, 10)}
    assert np.array_equal(found, random_tokens(12, {0, 3, 11, 99}, length=9, sequences=20, seed=5))
    assert not np.array_equal(found, random_tokens(12, {0, 3, 11, 99}, length=9, sequences=20, seed=6))
