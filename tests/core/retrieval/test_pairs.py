"""How alike pairs of documents are: by hand, and for meaning."""

from __future__ import annotations

import numpy as np
import pytest

from core.retrieval.head_index import HeadIndex
from core.retrieval.pairs import pair_cosines, usual_pairs


def test_two_documents_by_hand() -> None:
    # head 1: (1, 0) and (0, 2): cosine 0; head 2: (3, 4) and (6, 8): cosine 1. Side by side: 50 / (√26 · √104).
    one, other = np.array([[1.0, 0], [3, 4]]), np.array([[0.0, 2], [6, 8]])
    assert pair_cosines(one, other) == pytest.approx([50 / (26 * 104) ** 0.5, 0, 1], abs=1e-6)


def test_pairs_of_a_corpus_of_two_are_those_two() -> None:
    rows = np.array([[1.0, 0, 3, 4], [0, 2, 6, 8]])
    found = usual_pairs(HeadIndex.of([rows], 2), pairs=50)
    assert found is not None
    assert found.values.shape == (3, 50)
    expected = np.float16([50 / (26 * 104) ** 0.5, 0, 1])
    assert np.array_equal(found.values, np.repeat(expected[:, None], 50, axis=1))


def test_a_corpus_of_one_has_no_pairs() -> None:
    assert usual_pairs(HeadIndex.of([np.ones((1, 4))], 2)) is None


def test_documents_that_differ_in_one_planted_head_stand_out_there() -> None:
    chance = np.random.default_rng(3)
    usual = usual_pairs(HeadIndex.of([chance.normal(size=(200, 24)) + 1.0], 3))
    assert usual is not None
    one = chance.normal(size=(3, 8)) + 1.0
    other = one + 0.1 * chance.normal(size=(3, 8))
    other[1] = -one[1]
    percentiles = usual.percentile(pair_cosines(one, other))
    assert percentiles[2] == 0
    assert percentiles[1] > 95
    assert percentiles[3] > 95
