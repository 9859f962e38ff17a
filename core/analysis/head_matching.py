"""Which head of one run is most like which head of another, on the documents that both have: CKA across runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.analysis.null import LEVEL
from core.analysis.redundancy import FOLDS, jackknife_margin

MOST_DOCS = 400
"""Documents that heads are compared on, at most: time and memory grow with the square."""
LEAST_DOCS = 4 * FOLDS
SHUFFLES = 99


@dataclass(frozen=True)
class HeadMatches:
    """For each head of the first run its most similar head of the second, by debiased linear CKA."""

    cka: np.ndarray
    """``[head, head of the other run]``: 1 for the same up to rotation and scale, about 0 for independence."""
    best: np.ndarray
    """``[head]``: the most similar head of the other run, from 0."""
    low: np.ndarray
    high: np.ndarray
    """``[head]``: the 95 % interval of its CKA."""
    second: np.ndarray
    """``[head]``: the runner-up, from 0; −1 where the other run has one head."""
    lead_low: np.ndarray
    """``[head]``: the lower end of the 95 % interval of the lead over the runner-up; infinite without one."""
    p: np.ndarray
    """``[head]``: how often shuffled documents give any pair of heads with a CKA as high."""
    chance: float
    """The CKA that the most similar pair of heads exceeds in 5 % of the shuffles."""
    docs: int

    @property
    def related(self) -> np.ndarray:
        """``[head]``: whether it has more in common with some head of the other run than shuffled documents give."""
        return np.asarray(self.p <= LEVEL)

    @property
    def claimed(self) -> np.ndarray:
        """``[head]``: whether one head of the other run is its most similar: related, and ahead of the runner-up."""
        return np.asarray(self.related & (self.lead_low > 0))

    @property
    def counterparts(self) -> np.ndarray:
        """``[head]``: whether it is claimed, and is itself the head of its run that the other one is most like.

        A head that carries much of everything is the most similar one of many heads, and the counterpart of one.
        """
        return np.asarray(self.claimed & (self.cka.argmax(axis=0)[self.best] == np.arange(len(self.best))))


def match_heads(one: np.ndarray, other: np.ndarray, shuffles: int = SHUFFLES, seed: int = 0) -> HeadMatches:
    """``one[doc, head, dim]`` and ``other[doc, head, dim]`` of the same documents; heads and widths may differ.

    The null breaks the pairing of documents and takes the largest CKA of all pairs of heads, so that p holds for all
    heads at once.
    """
    if len(one) != len(other) or len(one) < LEAST_DOCS:
        raise ValueError(f"Needs the same documents of both runs, at least {LEAST_DOCS}.")
    docs = len(one)
    mine, theirs = _grams(one), _grams(other)
    whole, others = _centred(mine), _centred(theirs)
    cka = whole @ others.T
    order = np.argsort(-cka, axis=1, kind="stable")
    heads, best = np.arange(len(cka)), order[:, 0]
    second = order[:, 1] if cka.shape[1] > 1 else np.full(len(cka), -1)
    without = np.stack([_without(mine, theirs, np.arange(docs) % FOLDS != fold) for fold in range(FOLDS)])
    of_best = without[:, heads, best]
    margin = jackknife_margin(of_best)
    value = cka[heads, best]
    lead_low = np.full(len(cka), np.inf)
    if cka.shape[1] > 1:
        lead_low = value - cka[heads, second] - jackknife_margin(of_best - without[:, heads, second])
    chance = np.random.default_rng(seed)
    square = others.reshape(-1, docs, docs)
    largest = np.empty(shuffles)
    for number in range(shuffles):
        shuffled = chance.permutation(docs)
        largest[number] = (whole @ square[:, shuffled][:, :, shuffled].reshape(len(square), -1).T).max()
    return HeadMatches(
        cka=cka,
        best=best,
        low=value - margin,
        high=np.minimum(value + margin, 1),
        second=second,
        lead_low=lead_low,
        p=(1 + (largest >= value[:, None]).sum(axis=1)) / (1 + shuffles),
        chance=float(np.quantile(largest, 1 - LEVEL)),
        docs=docs,
    )


def _grams(vectors: np.ndarray) -> np.ndarray:
    """``[head, doc, doc]``: inner products within each head, of vectors centred and brought to length 1 on average."""
    heads = np.moveaxis(vectors, 1, 0).astype(np.float32)
    size = np.linalg.norm(heads, axis=(1, 2), keepdims=True)
    heads = heads - heads.mean(axis=1, keepdims=True)
    spread = np.linalg.norm(heads, axis=(1, 2), keepdims=True)
    # A head that does not vary, but for the rounding of its mean, has nothing in common with any other.
    heads = np.divide(heads, spread, out=np.zeros_like(heads), where=spread > 1e-5 * size)
    return np.asarray(heads @ heads.transpose(0, 2, 1))


def _centred(grams: np.ndarray) -> np.ndarray:
    """``[head, doc × doc]`` of length 1, U-centred: the product of two is their debiased CKA (Székely and Rizzo)."""
    docs = grams.shape[1]
    found = grams.astype(np.float64)
    diagonal = np.arange(docs)
    found[:, diagonal, diagonal] = 0
    sums = found.sum(axis=2)
    found -= (sums[:, :, None] + sums[:, None, :]) / (docs - 2)
    found += sums.sum(axis=1)[:, None, None] / ((docs - 1) * (docs - 2))
    found[:, diagonal, diagonal] = 0
    flat = found.reshape(len(found), -1)
    length = np.linalg.norm(flat, axis=1, keepdims=True)
    return np.divide(flat, length, out=np.zeros_like(flat), where=length > 0).astype(np.float32)


def _without(mine: np.ndarray, theirs: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """``[head, head of the other run]``: CKA on the documents that are ``kept``."""
    return np.asarray(_centred(mine[:, kept][:, :, kept]) @ _centred(theirs[:, kept][:, :, kept]).T)
