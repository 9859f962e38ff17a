"""Whether a head attends to words that are similar to the attending one: the cosine of their input embeddings.

Similar words may simply be near, or be words that are attended to anyway. So the cosine is what is left of it after
each distance's, each attending and each attended word's mean is taken out; and the baseline is the same with a
sentence's words exchanged at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.analysis.bootstrap import percentiles, resamples

EXCHANGES = 20
_ROUNDS = 12
"""Of taking out means in turn; more change nothing that is seen."""


@dataclass(frozen=True)
class SimilarityScores:
    """Correlation of attention between words with the rest of their cosines; each ``[head]``."""

    correlation: np.ndarray
    low: np.ndarray
    high: np.ndarray
    exchanged: np.ndarray
    """With the words of each sentence exchanged."""
    p: np.ndarray
    """One-sided, over sentences: of being no more than with words exchanged."""


@dataclass(frozen=True)
class Cosines:
    """What is left of one sentence's cosines, ``[1 + exchange, from, to]``: as it is, then with words exchanged.

    0 where a word may not attend to another, or both are the same word.
    """

    rest: np.ndarray
    pairs: np.ndarray
    """``[from, to]``: those that count."""


def cosines(
    vectors: Sequence[np.ndarray],
    forms: Sequence[Sequence[str]],
    causal: bool,
    without_first: bool,
    seed: int = 0,
) -> list[Cosines]:
    """Of every sentence, from its words' input embeddings ``vectors[sentence][word, dim]``."""
    chance = np.random.default_rng(seed)
    masks = [_pairs(one, causal, without_first) for one in forms]
    values = [_exchanged(_cosine(one), chance)[:, mask] for one, mask in zip(vectors, masks, strict=True)]
    rest = _without_means(np.concatenate(values, axis=1), _groups(masks))
    found, start = [], 0
    for mask in masks:
        whole = np.zeros((EXCHANGES + 1, *mask.shape), dtype=np.float32)
        end = start + int(mask.sum())
        whole[:, mask] = rest[:, start:end]
        found.append(Cosines(whole, mask))
        start = end
    return found


def followed(between: np.ndarray, of: Cosines) -> np.ndarray:
    """``[head, 3]`` of one sentence's ``between[head, from, to]``: sums that add up over sentences.

    The product with the cosines' rest, the mean product with words exchanged, and the squares of the attention, less
    each attending word's mean.
    """
    counts = np.maximum(of.pairs.sum(axis=1, keepdims=True), 1)
    here = between * of.pairs
    centred = (here - here.sum(axis=2, keepdims=True) / counts) * of.pairs
    products = np.einsum("hij,eij->he", centred, of.rest, optimize=True)
    return np.stack([products[:, 0], products[:, 1:].mean(axis=1), (centred**2).sum(axis=(1, 2))], axis=1)


def similarity_scores(sums: np.ndarray, found: Sequence[Cosines], seed: int = 0) -> SimilarityScores:
    """From ``sums[sentence, head, 3]`` of ``followed``."""
    from scipy.special import ndtr  # late: the app only reads what was computed

    squares = np.array([[(one.rest[0] ** 2).sum(), (one.rest[1:] ** 2).sum() / EXCHANGES] for one in found])
    value, exchanged = (
        _correlation(sums[..., place].sum(axis=0), sums[..., 2].sum(axis=0), squares[:, place].sum())
        for place in (0, 1)
    )
    drawn = [
        _correlation(counts @ sums[..., 0], counts @ sums[..., 2], (counts @ squares[:, 0])[:, None])
        for counts in resamples(len(sums), seed=seed)
    ]
    interval = percentiles(value, np.concatenate(drawn))
    ahead = sums[..., 0] - sums[..., 1]
    error = ahead.std(axis=0, ddof=1) / np.sqrt(len(ahead)) if len(ahead) > 1 else np.zeros(ahead.shape[1])
    z = np.divide(ahead.mean(axis=0), error, out=np.zeros_like(error), where=error > 0)
    return SimilarityScores(value, interval.low, interval.high, exchanged, 1 - ndtr(z))


def _correlation(products: np.ndarray, attention: np.ndarray, cosine: np.ndarray) -> np.ndarray:
    """0 where nothing varies."""
    scale = np.sqrt(attention * cosine)
    return np.divide(products, scale, out=np.zeros(np.shape(products)), where=scale > 0)


def _pairs(forms: Sequence[str], causal: bool, without_first: bool) -> np.ndarray:
    """``[from, to]``: visible pairs of different words; the same word twice is no question of similarity."""
    names = np.array([form.casefold() for form in forms])
    mask = names[:, None] != names[None]
    if causal:
        mask &= np.tri(len(names), k=-1, dtype=bool)
    if without_first:
        mask[:, 0] = False
    return mask


def _cosine(vectors: np.ndarray) -> np.ndarray:
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return unit @ unit.T


def _exchanged(cosine: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """``[1 + exchange, from, to]``."""
    orders = [np.arange(len(cosine)), *(chance.permutation(len(cosine)) for _ in range(EXCHANGES))]
    return np.stack([cosine[np.ix_(order, order)] for order in orders])


def _groups(masks: Sequence[np.ndarray]) -> list[np.ndarray]:
    """``[pair]`` each: the attending word, the attended word and the distance of every pair, as numbers."""
    starts, ends, apart, before = [], [], [], 0
    for mask in masks:
        start, end = np.nonzero(mask)
        starts.append(before + start)
        ends.append(before + end)
        apart.append(end - start)
        before += len(mask)
    distance = np.concatenate(apart)
    return [np.concatenate(starts), np.concatenate(ends), distance - distance.min(initial=0)]


def _without_means(values: np.ndarray, groups: list[np.ndarray]) -> np.ndarray:
    """``values[exchange, pair]`` less what each group's mean explains."""
    rest = values.astype(np.float64)
    counts = [np.maximum(np.bincount(group), 1) for group in groups]
    for row in rest:
        for _ in range(_ROUNDS):
            for group, count in zip(groups, counts, strict=True):
                row -= (np.bincount(group, weights=row, minlength=len(count)) / count)[group]
    return rest
