"""How near a document is to a topic: in the full embedding, in each head, and in naive poolings of the heads."""

from __future__ import annotations

import numpy as np

from core.errors import Mistake

POOLINGS = ("mean of vectors", "mean of cosines", "max of cosines")
"""Naive poolings of the heads, in the order of ``pooled``."""


def unit(vectors: np.ndarray) -> np.ndarray:
    """Along the last axis; a vector without length stays as it is, and has cosine 0 with everything."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)


def similarity(docs: np.ndarray, topics: np.ndarray) -> np.ndarray:
    """Cosines of ``docs[doc, head, dim]`` and ``topics[topic, head, dim]``: ``[doc, 1 + head, topic]``.

    Index 0 is the full embedding, the heads side by side.
    """
    count, heads, _ = docs.shape
    values = np.empty((count, 1 + heads, len(topics)), dtype=np.float32)
    values[:, 0] = unit(docs.reshape(count, -1)) @ unit(topics.reshape(len(topics), -1)).T
    # [head, doc, dim] @ [head, dim, topic]
    values[:, 1:] = np.matmul(unit(docs).transpose(1, 0, 2), unit(topics).transpose(1, 2, 0)).transpose(1, 0, 2)
    return np.clip(values, -1, 1, out=values)


def pooled(docs: np.ndarray, topics: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The naive poolings of the heads, ``[doc, pooling, topic]``; ``values`` is what ``similarity`` gave."""
    of_vectors = np.clip(unit(docs.mean(axis=1)) @ unit(topics.mean(axis=1)).T, -1, 1)
    return np.stack([of_vectors, values[:, 1:].mean(axis=1), values[:, 1:].max(axis=1)], axis=1)


def refuse_not_finite(rows: np.ndarray, heads: int, stage: int, first: int, remedy: str) -> None:
    """Refuses ``rows[doc, width]`` with a number that is not one; ``first`` is the document of the first row."""
    bad = ~np.isfinite(rows.reshape(len(rows), heads, -1)).all(axis=2)
    if bad.any():
        doc, head = np.argwhere(bad)[0]
        raise Mistake(
            f"Head {head + 1} of document {first + doc} has a number that is not finite at stage {stage}, so that "
            f"nothing can be computed. Rebuild the vectors with '{remedy}'."
        )
