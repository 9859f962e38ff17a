"""Matching heads of two runs by CKA: values by hand, and what may be claimed."""

from __future__ import annotations

import numpy as np
import pytest

from core.analysis.head_matching import LEAST_DOCS, _centred, match_heads
from core.analysis.redundancy import Moments

HEADS, DIM, DOCS = 6, 8, 120


def heads_of(seed: int, docs: int = DOCS, heads: int = HEADS) -> np.ndarray:
    """Independent heads, ``[doc, head, dim]``, some of their directions stronger than others, as real ones have."""
    strength = np.linspace(2.0, 0.3, DIM)
    return np.random.default_rng(seed).normal(size=(docs, heads, DIM)) * strength


def rotation(seed: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(DIM, DIM)))[0]


def test_u_centring_by_hand() -> None:
    # Four documents, inner products 1 between the first two and 0 elsewhere: row sums 1 1 0 0, total 2.
    gram = np.zeros((1, 4, 4))
    gram[0, 0, 1] = gram[0, 1, 0] = 1.0
    # k[0,1] = 1 - (1+1)/2 + 2/6 = 1/3; k[2,3] = 0 - 0 + 1/3 = 1/3; the four others 0 - 1/2 + 1/3 = -1/6.
    by_hand = np.array([[0, 2, -1, -1], [2, 0, -1, -1], [-1, -1, 0, 2], [-1, -1, 2, 0]]) / 6
    assert _centred(gram)[0] == pytest.approx((by_hand / np.linalg.norm(by_hand)).reshape(-1), abs=1e-6)


def test_it_is_the_cka_that_redundancy_computes() -> None:
    vectors = heads_of(1)
    vectors[:, 1] += vectors[:, 0]  # two heads that have something in common
    flat = vectors.reshape(DOCS, -1)
    moments = Moments(flat.mean(axis=0), HEADS)
    moments.add(flat, 0)
    assert match_heads(vectors, vectors, shuffles=1).cka == pytest.approx(moments.redundancy().cka, abs=2e-4)


def test_a_permuted_and_rotated_copy_of_the_heads_is_matched_exactly() -> None:
    vectors = heads_of(2)
    order = np.array([3, 0, 5, 1, 4, 2])
    copy = np.stack([vectors[:, head] @ rotation(head) * (head + 1) for head in order], axis=1)
    found = match_heads(vectors, copy)
    assert order[found.best].tolist() == list(range(HEADS))
    assert found.counterparts.all()
    assert found.cka[np.arange(HEADS), found.best] == pytest.approx(1, abs=1e-5)
    assert found.p == pytest.approx(1 / 100)


def test_random_heads_are_claimed_no_more_often_than_the_level_allows() -> None:
    trials = [match_heads(heads_of(10 + 2 * trial), heads_of(11 + 2 * trial), shuffles=99) for trial in range(40)]
    # 5 % of 40 trials is 2; six or more have a probability of 1.4 % (binomial).
    assert sum(found.claimed.any() for found in trials) < 6
    assert float(np.mean([found.cka.mean() for found in trials])) == pytest.approx(0, abs=0.01)


def test_a_head_with_two_equal_counterparts_is_related_and_not_claimed() -> None:
    vectors, others = heads_of(3), heads_of(4)
    others[:, 2], others[:, 4] = vectors[:, 0] @ rotation(1), vectors[:, 0] @ rotation(2)
    found = match_heads(vectors, others)
    assert found.related[0]
    assert not found.claimed[0]
    assert {int(found.best[0]), int(found.second[0])} == {2, 4}


def test_a_head_that_is_most_like_one_that_is_more_like_another_is_claimed_and_no_counterpart() -> None:
    vectors, others = heads_of(3), heads_of(4)
    others[:, 2] = vectors[:, 0] + 0.5 * vectors[:, 1]
    found = match_heads(vectors, others)
    assert found.best[:2].tolist() == [2, 2]
    assert found.claimed[:2].all()
    assert found.counterparts[:2].tolist() == [True, False]


def test_heads_of_other_number_and_width_are_compared_and_a_constant_one_matches_nothing() -> None:
    vectors = heads_of(5)
    wide = np.concatenate([vectors[:, :2], np.zeros((DOCS, 2, 3))], axis=2)
    vectors[:, 3] = 7.5
    found = match_heads(vectors, wide)
    assert found.cka.shape == (HEADS, 2)
    assert found.best[:2].tolist() == [0, 1]
    assert found.cka[3].tolist() == [0, 0]
    assert not found.claimed[3]


def test_one_head_on_the_other_side_has_no_runner_up() -> None:
    vectors = heads_of(6)
    found = match_heads(vectors, vectors[:, 4:5])
    assert found.second.tolist() == [-1] * HEADS
    assert found.claimed.tolist() == [False, False, False, False, True, False]


def test_too_few_documents_are_refused() -> None:
    with pytest.raises(ValueError, match=f"at least {LEAST_DOCS}"):
        match_heads(heads_of(7, LEAST_DOCS - 1), heads_of(8, LEAST_DOCS - 1))
