"""A head's topics: gaps and intervals worked out by hand, and by another road."""

from __future__ import annotations

import numpy as np
import pytest

from core.analysis.by_topic import by_topic


def column(*values: float) -> np.ndarray:
    """``own[doc, row]`` whose row 1 has these values; row 0 must not matter."""
    return np.stack([np.full(len(values), 9.0), np.array(values)], axis=1).astype(np.float32)


def test_a_gap_and_its_interval_by_hand() -> None:
    found = by_topic(column(0.1, 0.3, 0.5, 0.7), np.array([0, 0, 1, 1]), 1, least=2)
    assert found.topic.tolist() == [1, 0]
    assert found.documents.tolist() == [2, 2]
    assert found.gap == pytest.approx([0.4, -0.4], abs=1e-6)
    # Both sides: variance 0.02 of 2 documents, so 0.01 + 0.01; two degrees of freedom, for which t is 4.3027.
    margin = 4.302653 * 0.02**0.5
    assert found.low == pytest.approx([0.4 - margin, -0.4 - margin], abs=1e-5)
    assert found.high == pytest.approx([0.4 + margin, -0.4 + margin], abs=1e-5)
    assert found.side.tolist() == [0, 0]


def test_sides_of_unequal_size_and_spread_as_scipy_has_them() -> None:
    from scipy.stats import ttest_ind

    chance = np.random.default_rng(3)
    labels = np.repeat([0, 1, 2], [7, 40, 90])
    own = np.stack([chance.normal(0.1 * labels, 0.05 + 0.1 * labels), chance.normal(size=137)], axis=1)
    found = by_topic(own, labels, 0)
    for at, topic in enumerate(found.topic):
        theirs = ttest_ind(own[labels == topic, 0], own[labels != topic, 0], equal_var=False).confidence_interval(0.95)
        assert (found.low[at], found.high[at]) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_documents_without_a_label_or_a_value_do_not_count() -> None:
    own = column(0.2, 0.4, 0.6, 0.8, 50.0, np.nan)
    found = by_topic(own, np.array([0, 0, 2, 2, -1, 0]), 1, least=2)
    assert found.topic.tolist() == [2, 0]
    assert found.gap == pytest.approx([0.4, -0.4], abs=1e-6)
    assert found.documents.tolist() == [2, 2]


def test_small_topics_are_left_out_but_belong_to_the_rest() -> None:
    found = by_topic(column(0.0, 0.0, 1.0, 1.0, 0.5), np.array([0, 0, 1, 1, 2]), 1, least=2)
    assert found.topic.tolist() == [1, 0]
    assert found.left_out == 1
    assert found.gap == pytest.approx([1 - 0.5 / 3, 0 - 2.5 / 3], abs=1e-6)


def test_a_single_document_has_a_gap_but_no_interval() -> None:
    found = by_topic(column(0.9, 0.1, 0.3), np.array([0, 1, 1]), 1, least=1)
    assert found.gap == pytest.approx([0.7, -0.7], abs=1e-6)
    assert np.isnan(found.low).all()
    assert np.isnan(found.high).all()
    assert found.side.tolist() == [0, 0]


@pytest.mark.parametrize("labels", [[], [-1, -1], [0, 0]])
def test_with_nothing_to_compare_there_is_no_topic(labels: list[int]) -> None:
    found = by_topic(column(*[0.5] * len(labels)), np.array(labels, dtype=np.int64), 1, least=1)
    assert len(found.topic) == len(found.gap) == len(found.low) == len(found.side) == 0


def test_what_does_not_vary_has_an_interval_without_width() -> None:
    found = by_topic(column(0.5, 0.5, 0.5, 0.5, 0.1, 0.1), np.array([0, 0, 1, 1, 2, 2]), 1, least=2)
    assert found.topic.tolist() == [0, 1, 2]
    assert found.low[-1] == pytest.approx(-0.4, abs=1e-6)
    assert found.high[-1] == pytest.approx(-0.4, abs=1e-6)
    assert found.side[-1] == -1


def test_planted_topics_are_followed_and_avoided_and_the_others_are_not() -> None:
    chance = np.random.default_rng(11)
    labels = np.tile(np.arange(6), 30)
    own = chance.normal(0, 0.1, size=(180, 3))
    own[labels == 4, 2] += 0.3
    own[labels == 1, 2] -= 0.3
    found = by_topic(own, labels, 2)
    assert (found.topic[0], found.topic[-1]) == (4, 1)
    assert (found.side[0], found.side[-1]) == (1, -1)
    assert not by_topic(own, labels, 0).side[1:-1].any()


def test_the_interval_has_the_truth_in_it_as_often_as_it_says() -> None:
    chance = np.random.default_rng(5)
    labels = np.repeat([0, 1], [6, 60])
    own = (
        np.where(labels[:, None] == 0, 0.2, 0.0) + chance.normal(size=(66, 600)) * np.where(labels == 0, 3, 1)[:, None]
    )
    inside = 0
    for row in range(600):
        found = by_topic(own, labels, row)
        at = found.topic.tolist().index(0)
        inside += bool(found.low[at] <= 0.2 <= found.high[at])
    assert 0.92 <= inside / 600 <= 0.98
