"""What heads are judged by."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.retrieval.head_index import HeadIndex
from core.retrieval.judge import Judge
from core.retrieval.metrics import METRICS
from core.retrieval.tasks import (
    Posed,
    ask,
    pose_same_topic,
    pose_topic_match,
    queries_that_fit,
    same_topic_queries,
    searched,
    topic_match_queries,
)


def test_only_documents_that_have_a_fellow_look_for_one() -> None:
    labels = np.array([0, 0, 1, -1, 2, 2, -1, 2])
    assert same_topic_queries(labels).tolist() == [0, 1, 4, 5, 7]
    assert topic_match_queries(labels).tolist() == [0, 1, 2, 4, 5, 7]
    assert len(same_topic_queries(labels, count=2)) == 2
    assert len(same_topic_queries(np.full(4, -1))) == 0


def test_a_document_looks_for_its_fellows_among_those_that_are_searched() -> None:
    """Documents 1, 4, 5, 7 are searched; 4 is the second of them, and of its topic is 7, the fourth."""
    labels = np.array([0, 0, 1, -1, 2, 1, -1, 2])
    posed = pose_same_topic(np.array([4]), np.zeros((1, 2, 3)), labels, np.array([1, 4, 5, 7]))
    assert posed.relevant == ((3,),)
    assert posed.own.tolist() == [1]


def test_topic_match_by_retrieval_is_topic_match() -> None:
    """Three documents over two topics: the first and the third are nearest to their own, the second is not."""
    topics = np.array([[1.0, 0], [0, 1]], dtype=np.float32)
    docs = np.array([[[2.0, 1]], [[1, 3]], [[0, 1]]], dtype=np.float32)
    posed = pose_topic_match(np.arange(3), docs, np.array([0, 0, 1]))
    judge = Judge.of("full", ask(HeadIndex.of([topics], 1), posed, np.arange(2)), np.ones(1))
    assert judge.verdict(judge.total(np.ones(1)), "success", 1).tolist() == [1, 0, 1]
    assert judge.measured(judge.total(np.ones(1)), 2)[list(METRICS).index("mrr"), :, -1].tolist() == [1, 0.5, 1]


def test_of_a_large_corpus_a_sample_is_searched_that_has_all_that_is_wanted() -> None:
    labels = np.arange(1_000) % 4
    found = searched(labels, np.array([3, 998]), most=100)
    assert {3, 998} <= set(found.tolist())
    assert 98 <= len(found) <= 100
    assert (np.diff(found) > 0).all()
    assert searched(labels[:50], np.array([3]), most=100).tolist() == list(range(50))


@pytest.mark.parametrize(("docs", "expected"), [(10_000, 250), (100_000, 83), (10**9, 2)])
def test_as_many_queries_as_fit(docs: int, expected: int) -> None:
    """2^28 / (100,000 × 32) = 83.9."""
    assert queries_that_fit(250, docs, 32) == expected


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5, unique=True))
def test_some_of_the_queries_are_those(chosen: list[int]) -> None:
    posed = Posed(np.arange(5.0)[:, None, None], tuple((doc,) for doc in range(5)), np.arange(5), np.arange(5) + 1)
    some = posed.some(np.array(chosen))
    assert some.vectors.ravel().tolist() == chosen == some.own.tolist() == [docs[0] for docs in some.relevant]
    assert (some.aspects - 1).tolist() == chosen
