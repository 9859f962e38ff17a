"""How near a document is to a topic: in the full embedding, in each head, and in naive poolings of the heads."""

from __future__ import annotations

import numpy as np

from core.errors import Mistake
from core.model.share_space import ShareSpace

POOLINGS = ("mean of vectors", "mean of cosines", "max of cosines")
"""Naive poolings of the heads, in the order of ``pooled``."""


def unit(vectors: np.ndarray) -> np.ndarray:
    """Along the last axis; a vector without length stays as it is, and has cosine 0 with everything."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)


def full_vectors(docs: np.ndarray, space: ShareSpace | None = None) -> np.ndarray:
    """``docs[doc, head, dim]`` as full embeddings ``[doc, width]``: the heads side by side; shares added up."""
    rows = docs.reshape(len(docs), docs.shape[1] * docs.shape[2])  # not -1: there may be no documents
    return rows if space is None else space.full(rows)


def head_norms(docs: np.ndarray, space: ShareSpace | None = None) -> np.ndarray:
    """The lengths of ``docs[doc, head, dim]``: ``[doc, 1 + head]`` in float64, index 0 the full embedding's."""
    norms = np.linalg.norm(docs.astype(np.float64), axis=2)
    if space is None:
        return np.concatenate([np.sqrt((norms**2).sum(axis=1, keepdims=True)), norms], axis=1)
    full = np.linalg.norm(full_vectors(docs, space).astype(np.float64), axis=1)
    return np.concatenate([full[:, None], norms], axis=1)


def similarity(docs: np.ndarray, topics: np.ndarray, full: tuple[np.ndarray, np.ndarray] | None = None) -> np.ndarray:
    """Cosines of ``docs[doc, head, dim]`` and ``topics[topic, head, dim]``: ``[doc, 1 + head, topic]``.

    Index 0 is the full embedding: the heads side by side, unless both sides' ``full`` vectors are given.
    """
    count, heads, _ = docs.shape
    values = np.empty((count, 1 + heads, len(topics)), dtype=np.float32)
    docs_full, topics_full = full or (full_vectors(docs), full_vectors(topics))
    values[:, 0] = unit(docs_full) @ unit(topics_full).T
    # [head, doc, dim] @ [head, dim, topic]
    values[:, 1:] = np.matmul(unit(docs).transpose(1, 0, 2), unit(topics).transpose(1, 2, 0)).transpose(1, 0, 2)
    return np.clip(values, -1, 1, out=values)


def pooled(docs: np.ndarray, topics: np.ndarray, values: np.ndarray, shares: bool = False) -> np.ndarray:
    """The naive poolings of the heads, ``[doc, pooling, topic]``; ``values`` is what ``similarity`` gave.

    The mean of ``shares`` is their sum but for its length, which the full embedding is.
    """
    of_vectors = values[:, 0] if shares else np.clip(unit(docs.mean(axis=1)) @ unit(topics.mean(axis=1)).T, -1, 1)
    return np.stack([of_vectors, values[:, 1:].mean(axis=1), values[:, 1:].max(axis=1)], axis=1)


def refuse_not_finite(rows: np.ndarray, heads: int, stage: int, first: int, remedy: str) -> None:
    """Refuses ``rows[doc, width]`` with a number that is not one; ``first`` is the document of the first row."""
    bad = ~np.isfinite(rows.reshape(len(rows), heads, -1)).all(axis=2)
    if bad.any():
        doc, head = np.argwhere(bad)[0]
        raise Mistake(
            f"Head {head + 1} of document {first + doc} has a number that is not finite at stage {stage}, so nothing "
            f"can be computed. Rebuild the vectors with '{remedy}'."
        )
