"""What of a query's documents is found, worked out by hand, and what must hold for any ranking."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from core.retrieval.metrics import METRICS, Relevance, measured

NAMES = list(METRICS)


def test_by_hand() -> None:
    """Documents 0 to 5 with topics 0 0 1 1 2 -; wanted are 0, 2 and 4, ranked 1, 2, 5, 0."""
    values = measured(np.array([[1, 2, 5, 0]]), Relevance.of([[0, 2, 4]], np.array([0, 0, 1, 1, 2, -1])))
    found = dict(zip(NAMES, values[:, 0], strict=True))
    assert found["success"] == pytest.approx([0, 1 / 3, 1 / 3, 2 / 3])
    assert found["category"] == pytest.approx([1 / 3, 2 / 3, 2 / 3, 2 / 3])
    assert found["all found"].tolist() == [0, 0, 0, 0]
    assert found["weighted"] == pytest.approx([1 / 9, 4 / 9, 4 / 9, 2 / 3])
    assert found["mrr"].tolist() == [0, 0.5, 0.5, 0.5]
    second, third, fourth = (1 / math.log2(place + 1) for place in (2, 3, 4))
    assert found["ndcg"] == pytest.approx(
        [0, second / (1 + second), second / (1 + second + third), (second + fourth) / (1 + second + third)]
    )


def test_relevant_documents_without_a_topic_have_no_category_ratio() -> None:
    values = measured(np.array([[0, 1]]), Relevance.of([[0]], np.array([-1, 0])))
    found = dict(zip(NAMES, values[:, 0], strict=True))
    assert np.isnan(found["category"]).all()
    assert np.isnan(found["weighted"]).all()
    assert found["success"].tolist() == [1, 1]


@given(seed=some.integers(0, 10_000), wanted=some.integers(1, 12))
@settings(max_examples=60, deadline=None)
def test_what_holds_for_any_ranking(seed: int, wanted: int) -> None:
    chance = np.random.default_rng(seed)
    ranked, topics = chance.permutation(40)[None, :32], chance.integers(0, 5, size=40)
    relevant = chance.permutation(40)[:wanted].tolist()
    values = measured(ranked, Relevance.of([relevant], topics))[:, 0]
    assert ((values >= 0) & (values <= 1 + 1e-12)).all()
    for name in ("success", "category", "all found", "weighted", "mrr"):
        assert (np.diff(values[NAMES.index(name)]) >= 0).all()  # a longer list never finds less
    best = np.array([*relevant, *(doc for doc in range(40) if doc not in relevant)])[None, :32]
    perfect = measured(best, Relevance.of([relevant], topics))[:, 0]
    assert perfect[NAMES.index("ndcg")] == pytest.approx(1)
    assert (perfect[NAMES.index("success")] >= values[NAMES.index("success")]).all()
    assert perfect[:, -1] == pytest.approx(1)
