"""A corpus's head vectors at one stage, ready for a new document: its cosines with every document in every head."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from core.similarity import unit


@dataclass(frozen=True)
class HeadIndex:
    """Unit vectors by head, and the lengths they had.

    The full embedding needs no vectors of its own: its cosine is the heads' cosines, weighted by the share that each
    head has in both documents' lengths.
    """

    units: np.ndarray
    """``[head, doc, dim]``, float32."""
    lengths: np.ndarray
    """``[head, doc]``, float32: the activations."""

    @classmethod
    def of(cls, parts: Iterable[np.ndarray], heads: int) -> HeadIndex:
        """From the corpus's vectors ``[doc, head * dim]`` as stored, a part at a time."""
        units, lengths = [], []
        for part in parts:
            vectors = part.reshape(len(part), heads, -1).transpose(1, 0, 2).astype(np.float32)
            lengths.append(np.linalg.norm(vectors, axis=2))
            units.append(unit(vectors))
        return cls(np.concatenate(units, axis=1), np.concatenate(lengths, axis=1))

    @property
    def full_lengths(self) -> np.ndarray:
        """``[doc]``: lengths of the full embedding's vectors."""
        lengths: np.ndarray = np.linalg.norm(self.lengths, axis=0)
        return lengths

    @property
    def activations(self) -> np.ndarray:
        """``[1 + head, doc]``: index 0 is the full embedding."""
        return np.concatenate([self.full_lengths[None], self.lengths])

    def cosines(self, vectors: np.ndarray) -> np.ndarray:
        """Of one document's ``vectors[head, dim]`` with every document: ``[1 + head, doc]``; 0 without length."""
        vectors = vectors.astype(np.float32, copy=False)
        lengths = np.linalg.norm(vectors, axis=1)
        found = np.empty((1 + len(vectors), self.units.shape[1]), dtype=np.float32)
        for head, direction in enumerate(unit(vectors), start=1):
            np.matmul(self.units[head - 1], direction, out=found[head])
        products = np.einsum("h,hd,hd->d", lengths, self.lengths, found[1:])
        norms = self.full_lengths * np.linalg.norm(lengths)
        found[0] = np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)
        return np.clip(found, -1, 1, out=found)


@dataclass(frozen=True)
class NearestByHead:
    """Nearest first, a row for the full embedding (index 0) and for each head."""

    docs: np.ndarray
    """``[1 + head, rank]``."""
    similarity: np.ndarray
    """``[1 + head, rank]``: their cosines."""


def nearest_by_head(cosines: np.ndarray, count: int) -> NearestByHead:
    """The ``count`` documents with the largest of ``cosines[row, doc]``; equal ones in order of the documents."""
    count = min(count, cosines.shape[1])
    docs = np.empty((len(cosines), count), dtype=np.intp)
    for row, values in enumerate(cosines):
        docs[row] = largest(values, count)
    return NearestByHead(docs, np.take_along_axis(cosines, docs, axis=1))


def largest(values: np.ndarray, count: int) -> np.ndarray:
    """Where the ``count`` largest of ``values[doc]`` are, largest first; equal ones in order of the documents."""
    if count == 0:
        return np.empty(0, dtype=np.intp)
    least = np.partition(values, len(values) - count)[len(values) - count]
    # All that reach the last place, not just any of them: among equals the first documents are taken.
    reach = np.flatnonzero(values >= least)
    found: np.ndarray = reach[np.argsort(-values[reach], kind="stable")[:count]]
    return found
