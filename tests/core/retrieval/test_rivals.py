"""What pruned heads are held against: principal components, by numpy's own decomposition."""

from __future__ import annotations

import numpy as np
import pytest

from core.analysis.similarity import unit
from core.retrieval.rivals import in_principal_directions


def cosines(queries: np.ndarray, docs: np.ndarray) -> np.ndarray:
    return np.asarray(unit(queries) @ unit(docs).T)


@pytest.mark.parametrize(("count", "width"), [(60, 7), (60, 24), (12, 7)], ids=["many", "all", "fewer than dimensions"])
def test_principal_directions_are_those_of_the_decomposition(count: int, width: int) -> None:
    chance = np.random.default_rng(0)
    docs = (chance.normal(size=(count, 24)) * np.linspace(2, 0.5, 24)).astype(np.float32)
    queries = chance.normal(size=(5, 24)).astype(np.float32)
    axes = np.linalg.svd(docs.astype(np.float64), full_matrices=False)[2][:width].T
    found = in_principal_directions(queries, docs, width)
    assert found[0].shape == (5, width)
    np.testing.assert_allclose(cosines(*found), cosines(queries @ axes, docs @ axes), atol=2e-6)


def test_directions_that_no_document_has_change_no_ranking() -> None:
    """12 documents, three of them doubled, in 24 dimensions: nine directions, though 20 are asked for."""
    chance = np.random.default_rng(1)
    some = chance.normal(size=(9, 24)).astype(np.float32)
    docs, queries = np.concatenate([some, 2 * some[:3]]), chance.normal(size=(5, 24)).astype(np.float32)
    projected, placed = in_principal_directions(queries, docs, 20)
    assert placed.shape == (12, 9)
    np.testing.assert_allclose(np.linalg.norm(placed, axis=1), np.linalg.norm(docs, axis=1), rtol=1e-5)
    np.testing.assert_allclose(projected @ placed.T, queries @ docs.T, atol=1e-4)
