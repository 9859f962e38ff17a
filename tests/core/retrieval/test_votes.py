"""Multi-head voting and nearest documents by head, against values worked out by hand and all pairs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from core.retrieval.head_index import HeadIndex, largest_in_rows, nearest_by_head
from core.retrieval.nearest import cosines
from core.retrieval.votes import DEPTH, Say, vote

# Two heads of two dimensions, three documents. Head 1: lengths 1, 1, 2; cosines 0, 1, 0. Head 2: lengths 5, 5, 5;
# cosines -1, 0, 0.
CORPUS = np.array([[1, 0, 3, 4], [0, 1, -3, -4], [2, 0, 4, -3]], dtype=np.float16)


def test_a_heads_say_by_hand() -> None:
    say = Say.of([CORPUS], heads=2)
    assert say.activation == pytest.approx([4 / 3, 5])
    assert say.distance == pytest.approx([1 - 1 / 3, 1 + 1 / 3])
    assert say.weight == pytest.approx([8 / 9, 20 / 3])


def test_a_heads_say_over_all_pairs_in_parts() -> None:
    vectors = np.random.default_rng(0).normal(size=(60, 4, 8)) + 0.5
    vectors[7, 2] = 0  # no length: its cosine with everything is 0
    say = Say.of([vectors[:1].reshape(1, -1), vectors[1:41].reshape(40, -1), vectors[41:].reshape(19, -1)], heads=4)
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=2, keepdims=True), 1e-9)
    for head in range(4):
        pairs = [1 - units[a, head] @ units[b, head] for a, b in itertools.combinations(range(60), 2)]
        assert say.distance[head] == pytest.approx(np.mean(pairs))
        assert say.activation[head] == pytest.approx(np.linalg.norm(vectors[:, head], axis=1).mean())


@pytest.mark.parametrize("count", [1, 3])
def test_documents_that_are_all_alike_leave_a_head_nothing_to_say(count: int) -> None:
    assert Say.of([np.tile([[3.0, 4.0]], (count, 1))], heads=1).weight == pytest.approx([0])


def test_votes_by_hand() -> None:
    weight = np.array([8 / 9, 20 / 3])
    ballot = vote(np.array([[0, 2, 1], [1, 2, 0]]), weight)
    assert ballot.docs.tolist() == [1, 2, 0]
    assert ballot.scores == pytest.approx([62 / 9, 34 / 9, 23 / 9])
    assert ballot.by_head == pytest.approx(np.array([[2 / 9, 60 / 9], [4 / 9, 30 / 9], [8 / 9, 15 / 9]]))


def test_only_so_many_and_equal_ones_in_order() -> None:
    ballot = vote(np.array([[8, 3], [3, 8], [5, 9]]), np.ones(3), count=3)
    assert ballot.docs.tolist() == [3, 8, 5]
    assert ballot.scores.tolist() == [1.5, 1.5, 1]


def test_who_is_not_named_gets_nothing_and_places_beyond_the_depth_do_not_count() -> None:
    ballot = vote(np.arange(50)[None], np.ones(1), count=100)
    assert ballot.docs.tolist() == list(range(DEPTH))
    assert ballot.scores == pytest.approx(0.5 ** np.arange(DEPTH))


def test_a_planted_head_carries_the_vote() -> None:
    """All heads are noise but the fourth, which is strong and in which document 70 is like the query."""
    chance = np.random.default_rng(3)
    vectors = 0.1 * chance.normal(size=(200, 8, 16))
    vectors[:, 3] *= 50
    query = chance.normal(size=(8, 16))
    vectors[70, 3] = query[3] * 5 + 0.1 * chance.normal(size=16)
    parts = [vectors[:90].reshape(90, -1), vectors[90:].reshape(110, -1)]
    nearest = nearest_by_head(HeadIndex.of(parts, 8).cosines(query), 10)
    ballot = vote(nearest.docs[1:], Say.of(parts, 8).weight)
    assert ballot.docs[0] == 70
    assert ballot.by_head[0].argmax() == 3
    weak = vote(np.delete(nearest.docs[1:], 3, axis=0), np.delete(Say.of(parts, 8).weight, 3))
    assert weak.docs[0] != 70


def test_cosines_are_those_of_each_head_and_of_the_heads_side_by_side() -> None:
    chance = np.random.default_rng(5)
    vectors = (chance.normal(size=(40, 3, 6)) * [[[1], [5], [30]]]).astype(np.float16)
    vectors[4, 1], vectors[5] = 0, 0
    query = chance.normal(size=(3, 6)).astype(np.float32) * [[9], [1], [2]]
    index = HeadIndex.of([vectors[:11].reshape(11, -1), vectors[11:].reshape(29, -1)], 3)
    found = index.cosines(query)
    assert found[0] == pytest.approx(cosines(vectors.reshape(40, -1), query.reshape(-1)), abs=1e-6)
    for head in range(3):
        assert found[1 + head] == pytest.approx(cosines(vectors[:, head], query[head]), abs=1e-6)
    assert found[0, 5] == found[2, 4] == 0
    assert index.activations[0] == pytest.approx(np.linalg.norm(vectors.reshape(40, -1).astype(float), axis=1))
    assert (index.cosines(np.zeros((3, 6))) == 0).all()


def test_nearest_first_and_equal_ones_in_order_of_the_documents() -> None:
    chance = np.random.default_rng(1)
    values = chance.integers(0, 4, (5, 30)).astype(np.float32)
    found = nearest_by_head(values, 7)
    for row in range(5):
        expected = sorted(range(30), key=lambda doc: (-values[row, doc], doc))[:7]
        assert found.docs[row].tolist() == expected
        assert found.similarity[row].tolist() == values[row, expected].tolist()


@pytest.mark.parametrize(("count", "found"), [(0, 0), (5, 3)])
def test_no_more_than_there_are(count: int, found: int) -> None:
    assert nearest_by_head(np.zeros((2, 3), dtype=np.float32), count).docs.shape == (2, found)


@given(
    hnp.arrays(np.float32, hnp.array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.integers(-3, 3)),
    st.data(),
)
def test_the_largest_of_all_rows_at_once_are_those_of_each_row(values: np.ndarray, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, values.shape[1]))
    expected = [sorted(range(values.shape[1]), key=lambda doc: (-row[doc], doc))[:count] for row in values]
    assert largest_in_rows(values, count).tolist() == expected
