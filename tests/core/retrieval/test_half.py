"""Products of stored vectors with a query."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from core.retrieval.products import products

FINITE = hnp.arrays(
    np.uint16, (5, 2, 3), elements=st.integers(0, 2**16 - 1).filter(lambda bits: bits & 0x7C00 != 0x7C00)
)


def test_by_hand() -> None:
    """1·1 + 2·10 = 21 and -3·1 + 0·10 = -3 in one head; 0.5·4 and 65504·4 in the other."""
    vectors = np.array([[[1, 2], [0.5, 0]], [[-3, 0], [65504, 0]]], dtype=np.float16)
    query = np.array([[1, 10], [4, 4]], dtype=np.float32)
    assert products(vectors, query).tolist() == [[21, -3], [2, 262016]]


@given(FINITE)
def test_every_finite_half_is_taken_for_what_it_is(bits: np.ndarray) -> None:
    """Subnormal ones and both zeros, too: with a 1 in one place each number comes back itself."""
    vectors = bits.view(np.float16)
    for dim in range(3):
        query = np.zeros((2, 3), dtype=np.float32)
        query[:, dim] = 1
        assert np.array_equal(products(vectors, query), vectors[:, :, dim].astype(np.float32).T)


@pytest.mark.parametrize("by_matrix", [None, False])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("docs", [1, 63, 64, 131])
def test_a_document_has_the_same_products_wherever_it_stands(
    docs: int, dtype: type, by_matrix: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whole blocks, if this machine's product allows that, and row by row."""
    if by_matrix is not None:
        monkeypatch.setattr("core.retrieval.products.rows_are_alike", lambda heads, dims: by_matrix)
    chance = np.random.default_rng(docs)
    one = chance.normal(size=(1, 3, 24)).astype(dtype)
    found = products(np.repeat(one, docs, axis=0), chance.normal(size=(3, 24)))
    assert (found == found[:, :1]).all()


def test_several_threads_give_what_one_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(1)
    vectors, query = chance.normal(size=(301, 3, 8)).astype(np.float16), chance.normal(size=(3, 8))
    alone = products(vectors, query)
    monkeypatch.setattr("core.retrieval.products.WORTH_A_THREAD", 100)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1, 2})
    assert np.array_equal(products(vectors, query), alone)


def test_equals_the_product_in_double_precision() -> None:
    chance = np.random.default_rng(0)
    vectors, query = chance.normal(size=(200, 4, 64)).astype(np.float16), chance.normal(size=(4, 64))
    expected = np.einsum("nhd,hd->hn", vectors.astype(np.float64), query)
    assert np.abs(products(vectors, query) - expected).max() < 1e-4
