"""Which documents lie nearest to one document, in a head or in the full embedding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.retrieval.head_index import largest


@dataclass(frozen=True)
class Neighbours:
    """Nearest first: ``docs[rank]`` and their cosines ``similarity[rank]``."""

    docs: np.ndarray
    similarity: np.ndarray


def lengths(vectors: np.ndarray) -> np.ndarray:
    """``[doc]``: the L2 norms of ``vectors[doc, dim]``."""
    return np.asarray(np.linalg.norm(vectors.astype(np.float32, copy=False), axis=1))


def cosines(vectors: np.ndarray, vector: np.ndarray, of: np.ndarray | None = None) -> np.ndarray:
    """Cosine of ``vector[dim]`` with each of ``vectors[doc, dim]``; 0 where either has no length.

    ``of[doc]`` are the vectors' lengths where they are known: measuring them costs more than the products.
    """
    vectors, vector = vectors.astype(np.float32, copy=False), vector.astype(np.float32, copy=False)
    norms = (lengths(vectors) if of is None else of) * np.linalg.norm(vector)
    products = vectors @ vector
    return np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)


def nearest(vectors: np.ndarray, doc: int, count: int, of: np.ndarray | None = None) -> Neighbours:
    """The ``count`` documents whose ``vectors[doc, dim]`` lie nearest to document ``doc`` by cosine; never itself.

    ``of`` as in ``cosines``.
    """
    return nearest_by(cosines(vectors, vectors[doc], of), doc, count)


def nearest_by(similarity: np.ndarray, doc: int, count: int) -> Neighbours:
    """The same from ``similarity[doc]``, the cosines of document ``doc`` with every one; its own is overwritten."""
    similarity[doc] = -np.inf
    count = min(count, len(similarity) - 1)
    if count <= 0:
        return Neighbours(np.empty(0, dtype=np.intp), np.empty(0, dtype=np.float32))
    found = largest(similarity, count)  # equal cosines in order of the documents
    return Neighbours(found, similarity[found])
