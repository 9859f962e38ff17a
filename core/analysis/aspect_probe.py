"""How well an aspect can be read from one head: a ridge classifier, each document left out once, in closed form.

The documents' values are regressed on a slice's standardised dimensions by models that have not seen the document, and
it is given the value whose mean is nearest. There are no folds to draw (core.analysis.left_out_ridge), and heads,
random slices and the whole are treated alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from core.analysis.bootstrap import Interval, means, shares
from core.analysis.left_out_ridge import added, residuals, standardised
from core.analysis.null import SLICINGS, Comparison, comparison, random_orders
from core.analysis.stage_rows import StageRows
from core.model.share_space import ShareSpace

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
    space: ShareSpace | None = None,
) -> list[Probed]:
    """Of ``vectors[doc, width]`` and, per aspect, every document's code ``[doc]``, none of them -1.

    The documents are in random order: the first ones are compared more closely. ``space`` is that of stage 4.
    """
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    # Slices are small matrices: several threads on one lose more than they win, one thread each does not.
    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
        return _probe(StageRows(vectors, space), aspects, heads, slicings, seed, progress, pool)


def _probe(
    rows: StageRows,
    aspects: Sequence[np.ndarray],
    heads: int,
    slicings: int,
    seed: int,
    progress: Callable[[float], None],
    pool: ThreadPoolExecutor,
) -> list[Probed]:
    columns = _turned(standardised(rows.vectors))

    def sliced(order: np.ndarray) -> Iterable[np.ndarray]:
        if rows.space is None:
            return (columns[some] for some in order.reshape(heads, -1))
        return np.split(_turned(standardised(rows.sliced(order))), heads)

    orders = random_orders(rows.width, slicings, seed)
    whole = columns if rows.space is None else _turned(standardised(rows.full))
    of_slices = Fits.of(aspects, (each for order in orders[:TRIED] for each in sliced(order)))
    of_whole = Fits.of(aspects, [whole])
    own = np.split(columns, heads)
    predicted = _side_by_side(of_whole.predicted([whole]), of_slices.predicted(own))
    purities = _side_by_side(purity([whole], aspects), purity(own, aspects))
    null: list[dict[str, list[np.ndarray]]] = [{measure: [] for measure in MEASURES} for _ in aspects]

    def measured(number: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
        slices = sliced(orders[number])
        if number >= NEIGHBOUR_SLICINGS:
            return of_slices.predicted(slices), []
        slices = list(slices)
        return of_slices.predicted(slices), purity(slices, aspects)

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
    """Per aspect ``[value, doc]``: 1 for a document's own value, less the mean."""
    penalties: tuple[float, ...]
    aspects: tuple[np.ndarray, ...]
    """``[doc]`` each: the codes."""

    @classmethod
    def of(cls, aspects: Sequence[np.ndarray], slices: Iterable[np.ndarray]) -> Fits:
        """With the penalties that have the smallest leave-one-out error of ``slices``, each ``[dim, doc]``."""
        each = [np.eye(codes.max() + 1, dtype=np.float32)[:, codes] for codes in aspects]
        targets = tuple(values - values.mean(axis=1, keepdims=True) for values in each)
        together = np.concatenate(targets)
        errors = np.zeros((len(PENALTIES), len(targets)))
        for rows in slices:
            for row, found in enumerate(residuals(rows, [together] * len(PENALTIES), PENALTIES)):
                errors[row] += [float((part**2).mean()) for part in _parted(found, targets)]
        return cls(targets, tuple(PENALTIES[row] for row in errors.argmin(axis=0)), tuple(aspects))

    def predicted(self, slices: Iterable[np.ndarray]) -> list[np.ndarray]:
        """Of ``slices``, each ``[dim, doc]``, per aspect the value of each document, ``[doc, slice]``."""
        penalties = sorted(set(self.penalties))
        alike = [[at for at, one in enumerate(self.penalties) if one == penalty] for penalty in penalties]
        targets = [np.concatenate([self.targets[at] for at in same]) for same in alike]
        found: list[list[np.ndarray]] = [[] for _ in self.aspects]
        for rows in slices:
            for same, own, errors in zip(alike, targets, residuals(rows, targets, penalties), strict=True):
                parts = _parted(added(errors, own), [self.targets[at] for at in same])
                for at, scores in zip(same, parts, strict=True):
                    found[at].append(nearest_mean(scores, self.aspects[at]))
        return [np.stack(each, axis=1) for each in found]


def nearest_mean(scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """From ``scores[value, doc]`` of a regression on ``codes[doc]`` to each document's value, ``[doc]``.

    Over a value's frequency, a prediction is the product with the value's mean in the metric of the ridge; less half of
    what it is at that mean, the largest one belongs to the nearest mean (a regularised linear discriminant). Frequent
    values are not preferred.
    """
    counts = np.bincount(codes)
    scaled = scores * (len(codes) / counts).astype(np.float32)[:, None]
    at_means = np.bincount(codes, scaled[codes, np.arange(len(codes))]) / counts
    scaled -= 0.5 * at_means.astype(np.float32)[:, None]
    return np.asarray(scaled.argmax(axis=0))


def _parted(values: np.ndarray, targets: Sequence[np.ndarray]) -> list[np.ndarray]:
    """``[value, doc]`` of aspects one after another, cut into those of each."""
    return np.split(values, np.cumsum([len(own) for own in targets])[:-1])


def purity(slices: Iterable[np.ndarray], aspects: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Per aspect the share of nearest documents with the same value: of slices ``[dim, doc]``, ``[doc, slice]``."""
    found: list[list[np.ndarray]] = [[] for _ in aspects]
    for rows in slices:
        some = rows[:, :NEIGHBOUR_SAMPLE]
        lengths = np.linalg.norm(some, axis=0)
        some = np.divide(some, lengths, out=np.zeros_like(some), where=lengths > 0)
        count = min(NEIGHBOURS, some.shape[1] - 1)
        distances = -(some.T @ some)
        np.fill_diagonal(distances, np.inf)
        nearest = np.argpartition(distances, count - 1, axis=1)[:, :count]
        for codes, values in zip(aspects, found, strict=True):
            same = codes[nearest] == codes[: len(nearest), None]
            values.append(same.mean(axis=1, dtype=np.float32))
    return [np.stack(each, axis=1) for each in found]


def balance(codes: np.ndarray) -> np.ndarray:
    """``[doc]``: weights that add up to 1, to the same for every value."""
    counts = np.bincount(codes)
    return np.asarray(1 / (len(counts) * counts[codes]))


def _turned(vectors: np.ndarray) -> np.ndarray:
    """``[dim, doc]``: a slice is then some of its rows."""
    return np.ascontiguousarray(vectors.T)


def _side_by_side(*found: list[np.ndarray]) -> list[np.ndarray]:
    """Per aspect, ``[doc, slice]`` of all."""
    return [np.concatenate(each, axis=1) for each in zip(*found, strict=True)]
