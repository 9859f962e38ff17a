"""Cosines and nearest documents against angles worked out by hand."""

import numpy as np
import pytest

from core.retrieval.head_index import HeadIndex
from core.retrieval.nearest import cosines, lengths, nearest


def test_cosines_of_known_angles() -> None:
    vectors = np.array([[3, 4], [4, 3], [-3, -4], [-4, 3], [30, 40]], dtype=np.float32)
    assert cosines(vectors, np.array([3, 4])) == pytest.approx([1, 24 / 25, -1, 0, 1])


def test_lengths_that_are_known_are_not_measured_again() -> None:
    vectors = np.array([[3, 4], [8, 6], [0, 0]], dtype=np.float16)
    assert lengths(vectors).tolist() == [5, 10, 0]
    assert cosines(vectors, np.array([3, 4]), lengths(vectors)) == pytest.approx([1, 24 / 25, 0])
    assert nearest(vectors, 0, 2, np.array([5, 20, 0])).similarity == pytest.approx([12 / 25, 0])


def test_a_vector_without_length_has_cosine_zero() -> None:
    vectors = np.array([[0, 0], [1, 0]], dtype=np.float32)
    assert cosines(vectors, np.array([1.0, 0.0])).tolist() == [0, 1]
    assert cosines(vectors, np.array([0.0, 0.0])).tolist() == [0, 0]


def test_float16_is_widened_before_anything_overflows() -> None:
    vectors = np.array([[60_000, 0], [60_000, 60_000]], dtype=np.float16)
    found = cosines(vectors, vectors[0])
    assert found.dtype == np.float32
    assert found == pytest.approx([1, 0.5**0.5])


def test_nearest_first_and_never_itself() -> None:
    angles = np.radians([0, 50, 10, 180, 20])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    found = nearest(vectors, 0, 3)
    assert found.docs.tolist() == [2, 4, 1]
    assert found.similarity == pytest.approx(np.cos(np.radians([10, 20, 50])))


def test_length_does_not_count() -> None:
    vectors = np.array([[1, 0], [1, 1], [1000, 10]], dtype=np.float32)
    assert nearest(vectors, 0, 1).docs.tolist() == [2]


def test_a_duplicate_of_the_document_is_found_although_the_document_itself_is_not() -> None:
    vectors = np.array([[1, 2], [5, 0], [1, 2]], dtype=np.float32)
    assert nearest(vectors, 2, 2).docs.tolist() == [0, 1]


@pytest.mark.parametrize(("documents", "count", "found"), [(1, 5, 0), (3, 5, 2), (3, 0, 0), (3, -1, 0), (3, 2, 2)])
def test_no_more_neighbours_than_there_are(documents: int, count: int, found: int) -> None:
    result = nearest(np.eye(documents, dtype=np.float32), 0, count)
    assert len(result.docs) == len(result.similarity) == found


def test_the_vectors_are_left_as_they_were() -> None:
    vectors = np.array([[1, 2], [3, 4]], dtype=np.float32)
    nearest(vectors, 0, 1)
    assert vectors.tolist() == [[1, 2], [3, 4]]


def test_equal_cosines_come_in_order_of_the_documents() -> None:
    """Also where the last place is shared: of equals, the first documents are taken."""
    chosen = np.random.default_rng(0)
    for _ in range(50):
        vectors = chosen.integers(0, 2, (49, 3)).astype(np.float32)
        similarity = cosines(vectors, vectors[32])
        others = [doc for doc in range(49) if doc != 32]
        expected = sorted(others, key=lambda doc: (-similarity[doc], doc))
        assert nearest(vectors, 32, 20).docs.tolist() == expected[:20]


def test_a_planted_neighbour_is_found_in_its_head_and_not_in_another() -> None:
    chosen = np.random.default_rng(1)
    heads = chosen.normal(size=(2, 100, 8))
    heads[1, 70] = heads[1, 3] + 0.01 * chosen.normal(size=8)
    assert nearest(heads[1], 3, 1).docs.tolist() == [70]
    assert nearest(heads[0], 3, 1).docs.tolist() != [70]


def test_parts_of_two_precisions_are_held_in_the_wider_one() -> None:
    """int8 is read as float16 where that holds it: 1e6 would be infinite there."""
    small, large = np.ones((2, 8), np.float16), np.full((2, 8), 1e6, np.float32)
    for docs in (4, None):
        index = HeadIndex.of([small, large], 2, docs)
        assert index.vectors.dtype == np.float32
        assert (index.vectors.reshape(4, 8) == np.concatenate([small.astype(np.float32), large])).all()


def test_one_head_s_cosines_are_those_of_all_heads() -> None:
    chance = np.random.default_rng(0)
    index = HeadIndex.of([chance.normal(size=(5, 12)).astype(np.float16)], 3)
    query = chance.normal(size=(3, 4)).astype(np.float32)
    for head in range(4):
        assert np.allclose(index.cosines_in(head, query), index.cosines(query)[head], atol=1e-6)
