"""How well an aspect can be read from one head: a ridge classifier, each document left out once, in closed form.

The documents' values are regressed on a slice's standardised dimensions by models that have not seen the document, and
it is given the value whose mean is nearest. Leaving one document out needs no second fit: its residual is divided by
one minus its leverage. So there are no folds to draw, and heads, random slices and the whole are treated alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from core.analysis.bootstrap import Interval, means, shares
from core.analysis.null import SLICINGS, Comparison, comparison, random_orders

SAMPLE = 2_000
"""Documents that the probe looks at, at most."""
LEAST_PER_VALUE = 5
"""Documents of the sample: rarer values are left out."""
PENALTIES = (0.03, 0.1, 0.3, 1.0, 3.0)
"""Per document, in units of a dimension's variance: the ridge is one of them times the documents."""
TRIED = 2
"""Random slicings on which the penalty is chosen: it favours no head."""
NEIGHBOURS, NEIGHBOUR_SAMPLE, NEIGHBOUR_SLICINGS = 10, 500, 40
"""The second witness fits nothing: of so many nearest documents, how many have the same value."""
MEASURES = {
    "accuracy": "accuracy of the probe",
    "balanced": "balanced accuracy of the probe",
    "neighbours": f"same value among the {NEIGHBOURS} nearest",
}
ACCURACY, BALANCED, NEAREST = MEASURES


@dataclass(frozen=True)
class Probed:
    """One aspect at one stage: index 0 of ``1 + head`` is the full embedding."""

    codes: np.ndarray
    """``[doc]``: of the documents that were used, from 0, without gaps."""
    predicted: np.ndarray
    """``[doc, 1 + head]``."""
    values: dict[str, Interval]
    """By measure, ``[1 + head]``."""
    compared: dict[str, Comparison]
    """By measure: the heads against random slices."""
    penalties: tuple[float, float]
    """Of PENALTIES: the slices', and the full embedding's."""

    @property
    def majority(self) -> float:
        """The largest value's share: what is right without reading anything."""
        return float(np.bincount(self.codes).max() / len(self.codes))

    def chance(self, measure: str) -> float:
        """What a slice without the aspect gets: one in as many values, or for neighbours the share of equal pairs."""
        count = np.bincount(self.codes)
        equal = float((count * (count - 1)).sum() / (len(self.codes) * (len(self.codes) - 1)))
        return equal if measure == NEAREST else 1 / len(count)


def probe_aspects(
    vectors: np.ndarray,
    aspects: Sequence[np.ndarray],
    heads: int,
    slicings: int = SLICINGS,
    seed: int = 0,
    progress: Callable[[float], None] = lambda share: None,
    threads: int = 1,
) -> list[Probed]:
    """Of ``vectors[doc, width]`` and, per aspect, every document's code ``[doc]``, none of them -1.

    The documents are in random order: the first ones are compared more closely.
    """
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    # Slices are small matrices: several threads on one lose more than they win, one thread each does not.
    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
        return _probe(standardised(vectors), aspects, heads, slicings, seed, progress, pool)


def _probe(
    vectors: np.ndarray,
    aspects: Sequence[np.ndarray],
    heads: int,
    slicings: int,
    seed: int,
    progress: Callable[[float], None],
    pool: ThreadPoolExecutor,
) -> list[Probed]:
    orders = random_orders(vectors.shape[1], slicings, seed)
    tried = [_cut(vectors[:, order], heads) for order in orders[:TRIED]]
    whole, own = _cut(vectors, 1), _cut(vectors, heads)
    of_slices = Fits.of(aspects, tried)
    of_whole = Fits.of(aspects, [whole])
    predicted, purities = (
        [np.concatenate(pair, axis=1) for pair in zip(*both, strict=True)]
        for both in (
            (of_whole.predicted(whole), of_slices.predicted(own)),
            (purity(whole, aspects), purity(own, aspects)),
        )
    )
    null: list[dict[str, list[np.ndarray]]] = [{measure: [] for measure in MEASURES} for _ in aspects]

    def measured(number: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
        slices = _cut(vectors[:, orders[number]], heads)
        return of_slices.predicted(slices), purity(slices, aspects) if number < NEIGHBOUR_SLICINGS else []

    for number, (values, nearest) in enumerate(pool.map(measured, range(slicings))):
        for at, codes in enumerate(aspects):
            hits = values[at] == codes[:, None]
            null[at][ACCURACY].append(hits.mean(axis=0))
            null[at][BALANCED].append(balance(codes) @ hits)
            if nearest:
                null[at][NEAREST].append(nearest[at].mean(axis=0))
        progress((number + 1) / slicings)
    return [
        _one(codes, predicted[at], purities[at], null[at], (of_slices.penalties[at], of_whole.penalties[at]), seed)
        for at, codes in enumerate(aspects)
    ]


def _one(
    codes: np.ndarray,
    predicted: np.ndarray,
    purity: np.ndarray,
    null: dict[str, list[np.ndarray]],
    penalties: tuple[float, float],
    seed: int,
) -> Probed:
    hits = (predicted == codes[:, None]).astype(np.float32)
    weights = np.tile(balance(codes)[:, None], (1, hits.shape[1])).astype(np.float32) * len(codes)
    values = {
        ACCURACY: shares(hits, seed=seed),
        BALANCED: shares(hits * weights, weights, seed),
        NEAREST: means(purity, seed),
    }
    compared = {name: comparison(values[name].value[1:], np.stack(null[name])) for name in MEASURES}
    return Probed(codes, predicted, values, compared, penalties)


@dataclass(frozen=True)
class Fits:
    """Aspects with the penalty that suits each; those with the same one share a slice's fit."""

    targets: tuple[np.ndarray, ...]
    """Per aspect ``[doc, value]``: 1 for a document's own value, less the mean."""
    penalties: tuple[float, ...]
    aspects: tuple[np.ndarray, ...]
    """``[doc]`` each: the codes."""

    @classmethod
    def of(cls, aspects: Sequence[np.ndarray], cuts: Sequence[np.ndarray]) -> Fits:
        """With the penalties that have the smallest leave-one-out error of ``cuts``, each ``[slice, doc, dim]``."""
        each = [np.eye(codes.max() + 1, dtype=np.float32)[codes] for codes in aspects]
        targets = tuple(values - values.mean(axis=0) for values in each)
        errors = np.zeros((len(PENALTIES), len(targets)))
        for row, penalty in enumerate(PENALTIES):
            for cut in cuts:
                found = _parted(_residuals(cut, np.concatenate(targets, axis=1), penalty), targets)
                errors[row] += [float((residuals**2).mean()) for residuals in found]
        return cls(targets, tuple(PENALTIES[row] for row in errors.argmin(axis=0)), tuple(aspects))

    def predicted(self, slices: np.ndarray) -> list[np.ndarray]:
        """Of ``slices[slice, doc, dim]``, per aspect the value of each document, ``[doc, slice]``."""
        found: dict[int, np.ndarray] = {}
        for penalty in set(self.penalties):
            same = [at for at, one in enumerate(self.penalties) if one == penalty]
            targets = [self.targets[at] for at in same]
            scores = left_out(slices, np.concatenate(targets, axis=1), penalty)
            for at, part in zip(same, _parted(scores, targets), strict=True):
                found[at] = nearest_mean(part, self.aspects[at])
        return [found[at] for at in range(len(self.targets))]


def nearest_mean(scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """From ``scores[slice, doc, value]`` of a regression on ``codes[doc]`` to each document's value, ``[doc, slice]``.

    Over a value's frequency, a prediction is the product with the value's mean in the metric of the ridge; less half of
    what it is at that mean, the largest one belongs to the nearest mean (a regularised linear discriminant). Frequent
    values are not preferred.
    """
    counts = np.bincount(codes)
    scaled = scores * (len(codes) / counts)
    docs = np.arange(len(codes))
    at_means = np.zeros((len(counts), len(scores)))
    np.add.at(at_means, codes, scaled[:, docs, codes].T)
    return np.asarray((scaled - 0.5 * (at_means / counts[:, None]).T[:, None, :]).argmax(axis=2).T)


def _parted(values: np.ndarray, targets: Sequence[np.ndarray]) -> list[np.ndarray]:
    """``[…, value]`` of aspects side by side, cut into those of each."""
    return np.split(values, np.cumsum([own.shape[1] for own in targets])[:-1], axis=-1)


def purity(slices: np.ndarray, aspects: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Per aspect the share of nearest documents with the same value: ``[slice, doc, dim]`` to ``[doc, slice]``."""
    rows = slices[:, :NEIGHBOUR_SAMPLE]
    lengths = np.linalg.norm(rows, axis=2, keepdims=True)
    rows = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    count = min(NEIGHBOURS, rows.shape[1] - 1)
    found = [np.empty((rows.shape[1], len(rows)), dtype=np.float32) for _ in aspects]
    for at, each in enumerate(rows):
        cosines = each @ each.T
        np.fill_diagonal(cosines, -np.inf)
        nearest = np.argpartition(-cosines, count - 1, axis=1)[:, :count]
        for codes, values in zip(aspects, found, strict=True):
            values[:, at] = (codes[nearest] == codes[: len(nearest), None]).mean(axis=1)
    return found


def left_out(slices: np.ndarray, targets: np.ndarray, penalty: float, groups: np.ndarray | None = None) -> np.ndarray:
    """What a document's dimensions say by ridge models without it: ``[slice, doc, dim]`` to ``[slice, doc, value]``.

    Both are centred, and the mean is a parameter of the model that is not part of the prediction: a value's frequency
    says nothing. With ``groups[doc]`` both are centred within each group, whose means are parameters instead.
    """
    residuals = _residuals(slices, targets, penalty, groups)
    return np.asarray(targets / (1 - _of_mean(targets, groups)) + residuals)


def _residuals(slices: np.ndarray, targets: np.ndarray, penalty: float, groups: np.ndarray | None = None) -> np.ndarray:
    """``[slice, doc, value]``: the prediction of the model without the document less the truth, (ŷ − y) / (1 − h)."""
    count, width = slices.shape[1:]
    turned = slices.transpose(0, 2, 1)
    # The smaller of the two products: [dim, dim], or for the full embedding of a large model [doc, doc].
    product = turned @ slices if width <= count else slices @ turned
    ridge = product.copy()
    diagonal = np.arange(product.shape[1])
    ridge[:, diagonal, diagonal] += penalty * count
    if width <= count:
        weighted = slices @ np.linalg.inv(ridge)
        own, found = np.einsum("sdk,sdk->sd", weighted, slices), weighted @ (turned @ targets)
    else:
        hat = product @ np.linalg.inv(ridge)
        own, found = np.einsum("sdd->sd", hat), hat @ targets
    leverage = own + _of_mean(targets, groups)[:, 0]
    return np.asarray((found - targets) / np.maximum(1 - leverage, 1e-6)[:, :, None])


def _of_mean(targets: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
    """``[doc, 1]``: a document's leverage on the mean, or on its group's."""
    count = np.full(len(targets), len(targets)) if groups is None else np.bincount(groups)[groups]
    return np.asarray((1 / count).astype(np.float32)[:, None])


def balance(codes: np.ndarray) -> np.ndarray:
    """``[doc]``: weights that add up to 1, to the same for every value."""
    counts = np.bincount(codes)
    return np.asarray(1 / (len(counts) * counts[codes]))


def standardised(vectors: np.ndarray) -> np.ndarray:
    """``[doc, dim]`` with mean 0 and variance 1 in every dimension; one that is constant stays 0."""
    centred = vectors.astype(np.float32) - vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    scale = centred.std(axis=0)
    return np.divide(centred, scale, out=np.zeros_like(centred), where=scale > 1e-6)


def _cut(vectors: np.ndarray, slices: int) -> np.ndarray:
    """``[slice, doc, dim]``."""
    return np.ascontiguousarray(vectors.reshape(len(vectors), slices, -1).transpose(1, 0, 2))
