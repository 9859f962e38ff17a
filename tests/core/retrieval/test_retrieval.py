"""Ways to rank documents: against brute force, by hand, and on planted data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from core.errors import Mistake
from core.retrieval.head_index import HeadIndex
from core.retrieval.votes import Say
from core.retrieval.ways import DEPTH, WAYS, Heads, Seen, rank


def corpus(seed: int, docs: int, heads: int, dim: int) -> np.ndarray:
    """``[doc, head, dim]``, with documents that are the same, and some without length in a head."""
    chance = np.random.default_rng(seed)
    vectors = chance.normal(size=(docs, heads, dim)) * chance.uniform(0.1, 3, size=(1, heads, 1))
    vectors[docs // 2] = vectors[0]
    vectors[docs - 1, heads - 1] = 0
    return vectors.astype(np.float32)


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / lengths if lengths else 0.0


def brute(way: str, docs: np.ndarray, query: np.ndarray, weights: np.ndarray, scores: np.ndarray) -> list[float]:
    """The definition, document by document and head by head."""
    docs, query = docs.astype(np.float64), query.astype(np.float64)
    count, heads, _ = docs.shape
    on = [head for head in range(heads) if weights[head]]
    if way in ("full", "side by side"):
        scaled = np.sqrt(weights)[:, None]
        return [cosine((doc * scaled).ravel(), (query * scaled).ravel()) for doc in docs]
    each = [[cosine(doc[head], query[head]) for head in range(heads)] for doc in docs]
    if way == "mean":
        return [sum(row[head] for head in on) / len(on) for row in each]
    if way == "max":
        return [max(row[head] for head in on) for row in each]
    if way == "weighted":
        return [sum(weights[head] * row[head] for head in on) / sum(weights) for row in each]
    total = [0.0] * count
    for head in on:
        # As stored: equal cosines must tie here where they tie there.
        order = sorted(range(count), key=lambda doc: (-np.float32(each[doc][head]).round(5), doc))[:DEPTH]
        for place, doc in enumerate(order):
            total[doc] += {
                "voting": scores[head] * weights[head] * 2.0**-place,
                "split": scores[head] * weights[head] * 2.0**-place,
                "decay": weights[head] * 2.0**-place,
                "distance": weights[head] / max(1 - each[doc][head], 1e-6),
                "fusion": weights[head] / (60 + place + 1),
            }[way]
    return total


@pytest.mark.parametrize("way", WAYS)
@given(seed=some.integers(0, 10_000), docs=some.integers(3, 70), heads=some.integers(1, 6), off=some.integers(0, 5))
@settings(max_examples=25, deadline=None)
def test_every_way_is_its_definition(way: str, seed: int, docs: int, heads: int, off: int) -> None:
    vectors = corpus(seed, docs, heads, 4)
    query = np.random.default_rng(seed + 1).normal(size=(heads, 4)).astype(np.float32)
    weights = np.random.default_rng(seed + 2).uniform(0.2, 2, size=heads)
    if heads > 1:
        weights[off % heads] = 0
    scores = Say.of([vectors.reshape(docs, -1)], heads).weight
    seen = Seen.of(HeadIndex.of([vectors.reshape(docs, -1)], heads), query)
    found = rank(way, seen, Heads(weights, scores), docs)
    wanted = brute(way, vectors, query, weights, scores)
    assert found.scores == pytest.approx([wanted[doc] for doc in found.docs], rel=1e-3, abs=1e-5)
    assert sorted(found.docs) == list(range(docs))
    if way != "max":
        assert found.by_head.sum(axis=1) == pytest.approx(found.scores, rel=1e-5, abs=1e-6)
    assert not found.by_head[:, weights == 0].any()


@pytest.mark.parametrize("way", WAYS)
@given(seed=some.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_the_order_of_the_documents_does_not_matter(way: str, seed: int) -> None:
    chance = np.random.default_rng(seed)
    vectors = chance.normal(size=(50, 3, 4)).astype(np.float32)
    query, heads = chance.normal(size=(3, 4)).astype(np.float32), Heads(np.ones(3), np.array([1.0, 2, 3]))
    order = chance.permutation(50)

    def best(docs: np.ndarray) -> Any:
        return rank(way, Seen.of(HeadIndex.of([docs.reshape(50, -1)], 3), query), heads, 10)

    found, shuffled = best(vectors), best(vectors[order])
    assert shuffled.scores == pytest.approx(found.scores, rel=1e-5)
    # Only where both neighbours are apart: equal ones, also with the first that is not listed, go by their number.
    clear = np.diff(found.scores, prepend=np.inf, append=found.scores[-1]) < -1e-5
    assert (order[shuffled.docs] == found.docs)[clear[:-1] & clear[1:]].all()


@pytest.mark.parametrize("way", WAYS)
def test_ties_are_broken_by_the_documents_number(way: str) -> None:
    vectors = np.ones((9, 2, 3), dtype=np.float32)
    seen = Seen.of(HeadIndex.of([vectors.reshape(9, -1)], 2), np.ones((2, 3), dtype=np.float32))
    found = rank(way, seen, Heads(np.ones(2), np.ones(2)), 9)
    assert found.docs.tolist() == list(range(9))


def test_votes_by_hand() -> None:
    """Two heads; head 1 (score 3) sees documents in the order 2, 0, 1, head 2 (score 1) in the order 1, 2, 0."""
    cosines = np.array([[0.5, 0.1, 0.9], [0.2, 0.8, 0.6]], dtype=np.float32)
    nearest = np.array([[2, 0, 1], [1, 2, 0]])
    seen = Seen(cosines, nearest, np.array([1.0, 2]), np.array([[1, 1, 2.0], [1, 2, 1]], dtype=np.float32))
    both = Heads(np.ones(2), np.array([3.0, 1.0]))
    voted = rank("voting", seen, both)
    assert voted.docs.tolist() == [2, 0, 1]  # 0 and 1 have the same sum
    assert voted.scores.tolist() == [3.5, 1.75, 1.75]
    assert voted.by_head.tolist() == [[3, 0.5], [1.5, 0.25], [0.75, 1]]
    assert rank("decay", seen, both).scores.tolist() == [1.5, 1.25, 0.75]
    assert rank("fusion", seen, both).scores == pytest.approx([1 / 61 + 1 / 62, 1 / 61 + 1 / 63, 1 / 62 + 1 / 63])
    assert rank("distance", seen, both).scores == pytest.approx(
        [1 / 0.1 + 1 / 0.4, 1 / 0.9 + 1 / 0.2, 2 + 1.25], rel=1e-5
    )
    # The query's lengths are 1 and 2. Document 1: (1·1·0.1 + 2·2·0.8) / (√5 · √5); document 2: (1.8 + 1.2) / 5.
    assert rank("full", seen, both).docs.tolist() == [1, 2, 0]
    assert rank("full", seen, both, 2).scores == pytest.approx([0.66, 0.6])


def test_a_head_that_is_off_says_nothing() -> None:
    vectors = corpus(1, 40, 3, 4)
    index = HeadIndex.of([vectors.reshape(40, -1)], 3)
    query = np.random.default_rng(5).normal(size=(3, 4)).astype(np.float32)
    other = query.copy()
    other[1] = -7 * query[1]
    heads = Heads(np.array([1.0, 0, 2]), np.array([1.0, 9, 1]))
    for way in WAYS:
        one, two = (rank(way, Seen.of(index, asked), heads) for asked in (query, other))
        assert (one.docs == two.docs).all()
        assert (one.scores == two.scores).all()


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [([0.0, 0], "Every head is switched off"), ([1.0, -1], "at least 0"), ([1.0, np.nan], "at least 0")],
)
def test_weights_that_are_none(weights: list[float], sentence: str) -> None:
    with pytest.raises(Mistake, match=sentence):
        Heads(np.array(weights), np.ones(2))


def test_an_unknown_way_names_the_known_ones() -> None:
    seen = Seen(np.zeros((1, 1), np.float32), np.zeros((1, 1), int), np.ones(1), np.ones((1, 1), np.float32))
    with pytest.raises(Mistake, match=r"'best'. Choose one of: full, mean, max"):
        rank("best", seen, Heads(np.ones(1), np.ones(1)))


def test_voting_finds_aspects_that_the_full_embedding_blurs() -> None:
    """A query of five aspects, each carried by one head of 32; for every aspect there is one document."""
    chance = np.random.default_rng(0)
    vectors = chance.normal(size=(2_000, 32, 16)).astype(np.float32)
    query = chance.normal(size=(32, 16)).astype(np.float32)
    for aspect in range(5):
        vectors[aspect, aspect] = query[aspect] + 0.1 * chance.normal(size=16)
    seen = Seen.of(HeadIndex.of([vectors.reshape(2_000, -1)], 32), query)
    scores = Say.of([vectors.reshape(2_000, -1)], 32).weight
    carriers = Heads(np.where(np.arange(32) < 5, 1.0, 0.0), scores)
    assert set(rank("voting", seen, carriers, 5).docs) == set(range(5))
    everyone = Heads(np.ones(32), scores)
    assert len(set(rank("full", seen, everyone, 5).docs) & set(range(5))) < 5


def test_a_document_that_is_the_query_itself_gets_no_vote() -> None:
    """Of three documents the nearest two of each head are the other ones, nearest first."""
    vectors = np.array([[[1, 0]], [[1, 1]], [[0, 1]]], dtype=np.float32)
    index = HeadIndex.of([vectors.reshape(3, -1)], 1)
    assert Seen.of(index, vectors[0], own=0).nearest.tolist() == [[1, 2]]
    assert Seen.of(index, vectors[2], own=2).nearest.tolist() == [[1, 0]]


def test_equal_documents_are_ranked_by_their_number_wherever_they_stand() -> None:
    """A matrix product would give equal rows other last bits at the end of a block."""
    chance = np.random.default_rng(3)
    vectors = np.repeat(chance.normal(size=(1, 4, 24)).astype(np.float16), 67, axis=0)
    index = HeadIndex.of([vectors.reshape(67, -1)], 4)
    seen = Seen.of(index, chance.normal(size=(4, 24)).astype(np.float32))
    for way in WAYS:
        assert rank(way, seen, Heads(np.ones(4), np.ones(4)), 32).docs.tolist() == list(range(32)), way
