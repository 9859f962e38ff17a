"""How far two labellings agree: against values worked out by hand, against scikit-learn, and for meaning."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, confusion_matrix

from core.analysis.agreement import agreement


def labels(*names: int) -> np.ndarray:
    return np.array(names, dtype=np.int64)


def test_worked_out_by_hand() -> None:
    """Ten documents of two topics: 4 both A, 3 both B, 1 A then B, 2 B then A.

    They agree on 7 of 10. The first says A for 5 of 10, the second for 6 of 10: by chance they would agree on
    0.5 · 0.6 + 0.5 · 0.4 = 0.5, so that kappa = (0.7 − 0.5) / (1 − 0.5) = 0.4.
    """
    found = agreement(labels(0, 0, 0, 0, 1, 1, 1, 0, 1, 1), labels(0, 0, 0, 0, 1, 1, 1, 1, 0, 0), 2)
    assert found.share == pytest.approx(0.7)
    assert found.kappa == pytest.approx(0.4)
    assert found.confusion.tolist() == [[4, 1], [2, 3]]
    assert (found.documents, found.only_first, found.only_second, found.neither) == (10, 0, 0, 0)
    assert found.low < 0.4 < found.high


def test_documents_without_a_label_count_neither_for_nor_against() -> None:
    first = labels(0, 1, 0, 1, -1, -1, 0, -1)
    second = labels(0, 1, 1, 1, 0, 1, -1, -1)
    found = agreement(first, second, 2)
    assert (found.documents, found.only_first, found.only_second, found.neither) == (4, 1, 2, 1)
    assert found.share == 0.75
    assert found.confusion.tolist() == [[1, 1], [0, 2]]


@pytest.mark.parametrize(("topics", "docs", "same"), [(2, 40, 0.5), (5, 300, 0.8), (25, 2_000, 0.3), (40, 90, 0.0)])
def test_scikit_learn_says_the_same(topics: int, docs: int, same: float) -> None:
    chance = np.random.default_rng([topics, docs])
    first = chance.integers(topics, size=docs)
    second = np.where(chance.random(docs) < same, first, chance.integers(topics, size=docs))
    found = agreement(first, second, topics)
    assert found.kappa == pytest.approx(cohen_kappa_score(first, second), abs=1e-12)
    assert (found.confusion == confusion_matrix(first, second, labels=range(topics))).all()


def test_kappa_is_not_defined_where_both_know_one_topic_only() -> None:
    found = agreement(labels(1, 1, 1), labels(1, 1, 1), 3)
    assert found.share == 1
    assert np.isnan([found.kappa, found.low, found.high]).all()


def test_kappa_is_nil_where_both_know_one_topic_but_not_the_same() -> None:
    found = agreement(labels(0, 0, 0), labels(1, 1, 1), 2)
    assert (found.share, found.kappa) == (0, 0)


def test_no_document_in_common() -> None:
    found = agreement(labels(0, -1), labels(-1, 1), 2)
    assert found.documents == 0
    assert np.isnan([found.share, found.kappa, found.low, found.high]).all()
    assert found.confusion.sum() == 0


def test_one_is_as_sure_as_the_documents_allow() -> None:
    """All of n documents agree: the share's exact bound is 0.025^(1/n), and kappa's the same beyond chance, 1/2."""
    few, many = (agreement(np.arange(n) % 2, np.arange(n) % 2, 2) for n in (10, 1_000))
    assert few.kappa == many.kappa == 1
    assert few.low == pytest.approx((0.025 ** (1 / 10) - 0.5) / 0.5)
    assert many.low == pytest.approx((0.025 ** (1 / 1_000) - 0.5) / 0.5)
    assert few.high == many.high == 1


def test_the_interval_is_that_of_documents_drawn_again() -> None:
    """Drawn again document by document, each time with its own table of who said what, it has the same ends."""
    chance = np.random.default_rng(3)
    first = chance.integers(4, size=200)
    second = np.where(chance.random(200) < 0.6, first, chance.integers(4, size=200))
    found = agreement(first, second, 4)
    drawn = []
    for _ in range(2_000):
        chosen = chance.integers(200, size=200)
        table = np.bincount(4 * first[chosen] + second[chosen], minlength=16).reshape(4, 4) / 200
        by_chance = table.sum(axis=1) @ table.sum(axis=0)
        drawn.append((np.trace(table) - by_chance) / (1 - by_chance))
    low, high = np.percentile(drawn, [2.5, 97.5])
    assert found.low == pytest.approx(low, abs=0.015)
    assert found.high == pytest.approx(high, abs=0.015)


def test_meaning_guessing_is_about_nil_and_a_noisy_copy_is_not() -> None:
    """A labeller that says the most frequent topic always looks right often, and kappa is not taken in."""
    chance = np.random.default_rng(5)
    truth = np.where(chance.random(3_000) < 0.8, 0, chance.integers(1, 6, size=3_000))
    lazy = np.zeros_like(truth)
    guessing = chance.permutation(truth)
    copy = np.where(chance.random(3_000) < 0.1, chance.integers(6, size=3_000), truth)
    assert agreement(truth, lazy, 6).share > 0.75
    assert agreement(truth, lazy, 6).kappa == pytest.approx(0)
    guessed = agreement(truth, guessing, 6)
    assert guessed.share > 0.6
    assert guessed.low < 0 < guessed.high
    assert agreement(truth, copy, 6).low > 0.7
