"""Which documents aspects are probed on: those with the most labels, without near-duplicates, in random order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.analysis.aspect_probe import LEAST_PER_VALUE
from core.analysis.head_measures import LEAST_LABELLED
from core.analysis.near_duplicates import first_of_each
from core.analysis.stratify import stratified
from core.runs.aspects import Aspect
from core.runs.manifest import Manifest
from core.runs.run import Run
from precompute.steps.layers.sample import texts_of


@dataclass(frozen=True)
class SampledAspect:
    """An aspect as the probe sees it: values that too few sampled documents have are left out."""

    aspect: Aspect
    rows: np.ndarray
    """Rows of the sample."""
    codes: np.ndarray
    """``[row]``: from 0, without gaps."""
    values: np.ndarray
    """``[code]``: indices into the aspect's values."""


@dataclass(frozen=True)
class AspectSample:
    docs: np.ndarray
    """Numbers of documents, in random order."""
    aspects: tuple[SampledAspect, ...]

    def alike(self) -> list[list[int]]:
        """Indices of aspects, those together that are known of the same documents: one fit serves them."""
        found: dict[bytes, list[int]] = {}
        for at, each in enumerate(self.aspects):
            found.setdefault(each.rows.tobytes(), []).append(at)
        return list(found.values())


def choose_documents(aspects: Sequence[Aspect], known: np.ndarray, count: int, seed: int) -> np.ndarray:
    """``count`` of the documents ``known``: first those that most aspects are known of, stratified by the first one."""
    chosen: list[np.ndarray] = []
    labels = sum((aspect.codes[known] >= 0).astype(int) for aspect in aspects) if aspects else np.zeros(len(known))
    for level in range(len(aspects), 0, -1):
        docs = known[labels == level]
        room = count - sum(map(len, chosen))
        if room > 0 and len(docs):
            chosen.append(docs[stratified(aspects[0].codes[docs], room, seed)])
    found = np.concatenate(chosen) if chosen else known[:0]
    return np.random.default_rng([seed, 7]).permutation(found).astype(np.int64)


def choose_sample(run: Run, manifest: Manifest, aspects: Sequence[Aspect], count: int, seed: int) -> AspectSample:
    docs = choose_documents(aspects, run.vector_docs(), count, seed)
    in_order = np.sort(docs)
    texts = dict(zip(in_order.tolist(), texts_of(run, manifest, in_order), strict=True))
    docs = docs[first_of_each([texts[doc] for doc in docs.tolist()])]
    found = (sampled(aspect, docs) for aspect in aspects)
    return AspectSample(docs, tuple(each for each in found if each is not None))


def sampled(aspect: Aspect, docs: np.ndarray) -> SampledAspect | None:
    """None where fewer than two values have documents enough."""
    codes = aspect.codes[docs]
    counts = np.bincount(codes[codes >= 0], minlength=len(aspect.values))
    values = np.flatnonzero(counts >= LEAST_PER_VALUE)
    rows = np.flatnonzero(np.isin(codes, values))
    if len(values) < 2 or len(rows) < LEAST_LABELLED:
        return None
    return SampledAspect(aspect, rows, np.searchsorted(values, codes[rows]), values)
