"""Learned weights: carriers get more, noise gets the same, and nobody less than nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from core.retrieval.head_index import HeadIndex
from core.retrieval.judge import Asked, Judge
from core.retrieval.pruning import halves
from core.retrieval.ways import Seen
from core.retrieval.weights import STRENGTHS, _fit, learn

HEADS, DOCS, QUERIES = 8, 150, 80


def judge_of(carriers: tuple[int, ...], seed: int = 0) -> Asked:
    """A query's one document is near it in the carriers, more or less; other heads are noise."""
    chance = np.random.default_rng(seed)
    vectors = chance.normal(size=(DOCS, HEADS, 6)).astype(np.float32)
    wanted = chance.integers(DOCS, size=QUERIES)
    queries = chance.normal(size=(QUERIES, HEADS, 6)).astype(np.float32)
    for head in carriers:
        queries[:, head] += 0.8 * vectors[wanted, head]
    index = HeadIndex.of([vectors.reshape(DOCS, -1)], HEADS)
    seen = tuple(Seen.of(index, query) for query in queries)
    return Asked(seen, tuple((int(doc),) for doc in wanted), np.zeros(DOCS, dtype=int), np.full(QUERIES, -1))


def test_carriers_weigh_more_and_do_better_on_queries_not_learned_from() -> None:
    asked = judge_of((1, 5))
    choose, tell = halves(QUERIES)
    learned = learn(Judge.of("weighted", asked.some(choose), np.ones(HEADS)))
    assert set(np.argsort(learned.weights)[-2:]) == {1, 5}
    assert learned.weights.mean() == pytest.approx(1)
    told = Judge.of("weighted", asked.some(tell), np.ones(HEADS))
    gained = told.verdict(told.total(learned.weights)) - told.verdict(told.total(np.ones(HEADS)))
    assert gained.mean() > 2 * gained.std(ddof=1) / np.sqrt(len(gained))


def test_on_noise_no_gain_is_shown() -> None:
    """In six draws it may look like one now and then; weights fitted to chance would do so in half of them."""
    shown = 0
    for seed in range(6):
        asked, (choose, tell) = judge_of((), seed), halves(QUERIES, seed)
        learned = learn(Judge.of("weighted", asked.some(choose), np.ones(HEADS)))
        told = Judge.of("weighted", asked.some(tell), np.ones(HEADS))
        gained = told.verdict(told.total(learned.weights)) - told.verdict(told.total(np.ones(HEADS)))
        shown += bool(gained.mean() > 2 * gained.std(ddof=1) / np.sqrt(len(gained)))
    assert shown <= 1


@given(seed=some.integers(0, 10_000), strength=some.sampled_from(STRENGTHS))
@settings(max_examples=30, deadline=None)
def test_weights_are_never_negative_and_one_on_average(seed: int, strength: float) -> None:
    pairs = np.random.default_rng(seed).normal(size=(40, 5))
    (weights,) = _fit(pairs, [strength])
    assert (weights >= 0).all()
    assert weights.mean() == pytest.approx(1)


def test_a_stronger_pull_brings_weights_together() -> None:
    pairs = np.random.default_rng(0).normal(size=(200, 4)) + np.array([1.0, 0, 0, 0])
    spreads = [np.ptp(weights) for weights in _fit(pairs, STRENGTHS)]
    assert spreads == sorted(spreads, reverse=True)
    assert spreads[-1] == 0


def test_two_heads_by_hand() -> None:
    """Head 1 is right in every pair and head 2 wrong in every one: all the weight is head 1's."""
    (weights,) = _fit(np.array([[2.0, -1.0], [1.0, -2.0]]), [0.01])
    assert weights == pytest.approx([2, 0])


def test_a_way_without_cosines_is_refused() -> None:
    with pytest.raises(ValueError, match="not for the way 'voting'"):
        learn(Judge.of("voting", judge_of(()).some(range(3)), np.ones(HEADS)))
