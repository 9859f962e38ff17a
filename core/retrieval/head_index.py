"""A corpus's head vectors at one stage, ready for a new document: its cosines with every document in every head."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from core.analysis.similarity import unit
from core.model.share_space import ShareSpace
from core.retrieval.products import products

_PIECE = 4_096
"""Documents whose shares are added up at a time."""


@dataclass(frozen=True)
class HeadIndex:
    """Vectors by head, as they are stored, and their lengths.

    The full embedding needs no vectors of its own: its cosine is the heads' cosines, weighted by the share that each
    head has in both documents' lengths. At stage 4 it is found from the heads' coordinates.
    """

    vectors: np.ndarray
    """``[doc, head, dim]``, float16 or float32; may be a memory map."""
    lengths: np.ndarray
    """``[head, doc]``, float32: the activations."""
    space: ShareSpace | None = None
    """Of stage 4, whose full embedding is the sum of the heads' shares."""

    @classmethod
    def of(
        cls, parts: Iterable[np.ndarray], heads: int, docs: int | None = None, space: ShareSpace | None = None
    ) -> HeadIndex:
        """From the corpus's vectors ``[doc, head * dim]`` as stored, a part at a time.

        Where it is known how many ``docs`` there are, they are never held twice.
        """
        found: list[np.ndarray] = []
        whole: np.ndarray | None = None
        lengths, first = [], 0
        for part in parts:
            if part.dtype not in (np.float16, np.float32):
                part = part.astype(np.float32)
            rows = part.reshape(len(part), heads, -1)
            lengths.append(np.linalg.norm(rows.astype(np.float32), axis=2).T)
            if docs is None:
                found.append(rows)
                continue
            if whole is None:
                whole = np.empty((docs, *rows.shape[1:]), dtype=rows.dtype)
            elif rows.dtype == np.float32 != whole.dtype:  # int8 is read as float16 only where that holds it
                whole = whole.astype(np.float32)
            whole[first : first + len(rows)] = rows
            first += len(rows)
        return cls(np.concatenate(found) if whole is None else whole, np.concatenate(lengths, axis=1), space)

    @property
    def docs(self) -> int:
        return len(self.vectors)

    @cached_property
    def full_lengths(self) -> np.ndarray:
        """``[doc]``: lengths of the full embedding's vectors."""
        if self.space is None:
            return np.asarray(np.linalg.norm(self.lengths, axis=0))
        lengths = np.empty(self.docs, dtype=np.float32)
        for first in range(0, self.docs, _PIECE):
            part = self.vectors[first : first + _PIECE]
            lengths[first : first + _PIECE] = np.linalg.norm(self.space.full(part.reshape(len(part), -1)), axis=1)
        return lengths

    @property
    def outputs(self) -> int:
        """How many numbers a random slicing shuffles."""
        heads, dim = self.vectors.shape[1:]
        return int(heads * (dim if self.space is None else self.space.triangle.shape[2]))

    def reslice(self, rows: np.ndarray, order: np.ndarray) -> np.ndarray:
        """``rows[doc, head * dim]`` of this stage as random slices, ``[doc, slice, dim]``."""
        if self.space is not None:
            return self.space.resliced(rows, order)
        return rows[:, order].reshape(len(rows), self.vectors.shape[1], -1)

    @property
    def activations(self) -> np.ndarray:
        """``[1 + head, doc]``: index 0 is the full embedding."""
        return np.concatenate([self.full_lengths[None], self.lengths])

    def cosines(self, vectors: np.ndarray) -> np.ndarray:
        """Of one document's ``vectors[head, dim]`` with every document: ``[1 + head, doc]``; 0 without length."""
        lengths = np.linalg.norm(vectors.astype(np.float32, copy=False), axis=1)
        found = np.empty((1 + len(vectors), self.docs), dtype=np.float32)
        found[1:] = self.head_cosines(vectors)
        if self.space is None:
            shared = np.einsum("h,hd,hd->d", lengths, self.lengths, found[1:])
            norms = self.full_lengths * np.linalg.norm(lengths)
        else:
            total = self.space.full(vectors.reshape(1, -1))[0]
            shared = products(self.vectors, self.space.coordinates(total)).sum(axis=0)
            norms = self.full_lengths * np.linalg.norm(total)
        found[0] = np.divide(shared, norms, out=np.zeros_like(shared), where=norms > 0)
        np.clip(found[0], -1, 1, out=found[0])
        return found

    def cosines_in(self, head: int, vectors: np.ndarray) -> np.ndarray:
        """``cosines`` in one head from 1, or in the full embedding (0): ``[doc]``."""
        if not head:
            found: np.ndarray = self.cosines(vectors)[0]
            return found
        own = slice(head - 1, head)
        alone: np.ndarray = HeadIndex(self.vectors[:, own], self.lengths[own]).head_cosines(vectors[own])[0]
        return alone

    def head_cosines(self, vectors: np.ndarray) -> np.ndarray:
        """The heads' alone: ``[head, doc]``."""
        found = products(self.vectors, unit(vectors.astype(np.float32, copy=False)))
        np.divide(found, self.lengths, out=found, where=self.lengths > 0)  # without length the product is 0 already
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


def largest_in_rows(values: np.ndarray, count: int) -> np.ndarray:
    """``largest`` of each row of ``values[row, doc]``: ``[row, count]``."""
    rows, docs = values.shape
    if count == 0 or rows == 0:
        return np.empty((rows, count), dtype=np.intp)
    least = np.partition(values, docs - count, axis=1)[:, docs - count]
    row, doc = np.nonzero(values >= least[:, None])
    order = np.lexsort((doc, -values[row, doc], row))
    first = np.searchsorted(row, np.arange(rows))  # rows come one after another, before and after sorting
    found: np.ndarray = doc[order][first[:, None] + np.arange(count)]
    return found


def largest(values: np.ndarray, count: int) -> np.ndarray:
    """Where the ``count`` largest of ``values[doc]`` are, largest first; equal ones in order of the documents."""
    if count == 0:
        return np.empty(0, dtype=np.intp)
    least = np.partition(values, len(values) - count)[len(values) - count]
    # All that reach the last place, not just any of them: among equals the first documents are taken.
    reach = np.flatnonzero(values >= least)
    found: np.ndarray = reach[np.argsort(-values[reach], kind="stable")[:count]]
    return found
