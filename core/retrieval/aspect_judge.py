"""What a switch does: documents of the same value among the first 10, for every aspect, on documents it never saw.

Each half of the documents is judged, among themselves, by what was learned on the other half, against the model's own
embedding, equal weights, LEACE, and the same learning on random slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from core.analysis.bootstrap import Interval, ratios
from core.analysis.leace import fit_eraser
from core.analysis.null import random_orders
from core.analysis.similarity import unit
from core.model.share_space import ShareSpace
from core.retrieval.aspect_switch import (
    FOLLOW,
    IGNORE,
    NEUTRAL,
    check_positions,
    first_others,
    learn_weights,
    same_value_share,
)
from core.retrieval.pruning import halves
from core.runs.tables import Row

SLICINGS, DRAWS = 5, 10
"""Random slicings, and draws of random dimensions, that are averaged."""
OWN, EQUAL, SWITCHED, ERASED = "model", "equal weights", "switched", "LEACE"
SLICES, DIMENSIONS = "random slices", "random dimensions"
WAYS = {
    OWN: "The model's own embedding, centred.",
    EQUAL: "All heads of this stage, equal weights.",
    SWITCHED: "The learned head weights.",
    ERASED: "The model's own embedding, the ignored aspects erased by LEACE.",
    SLICES: f"Weights learned in the same way for random slices, mean of {SLICINGS} slicings.",
    DIMENSIONS: f"As many random dimensions of this stage as the kept heads have, mean of {DRAWS} draws.",
}


@dataclass(frozen=True)
class Switched:
    """Head weights, and what they do to documents that had no part in learning them."""

    weights: np.ndarray
    """``[head]``, learned from all of the documents; the halves' own are learned in the same way."""
    positions: dict[str, str]
    shares: dict[str, dict[str, np.ndarray]]
    """``[way][aspect][doc]``: documents of its value among the first 10; NaN where it has none."""
    chance: dict[str, float]
    """``[aspect]``: the same for a ranking by chance."""

    @property
    def ways(self) -> list[str]:
        return list(self.shares)

    def difference(self, aspect: str, way: str = SWITCHED, against: str = OWN) -> Interval:
        """Paired by document."""
        found = _means([self.shares[way][aspect] - self.shares[against][aspect]])
        return Interval(found.value[0], found.low[0], found.high[0])

    def rows(self) -> list[Row]:
        """For every aspect and way the share with its interval, and ``gained`` over the model's own, paired."""
        pairs = [(aspect, way) for aspect in self.chance for way in self.shares]
        values = [self.shares[way][aspect] for aspect, way in pairs]
        before = [self.shares[OWN][aspect] for aspect, _ in pairs]
        of, gained = _means(values), _means([one - other for one, other in zip(values, before, strict=True)])
        return [
            {"aspect": aspect, "position": self.positions.get(aspect, NEUTRAL), "way": way}
            | {name: float(getattr(of, name)[at]) for name in ("value", "low", "high")}
            | {f"gained{end}": float(getattr(gained, name)[at]) for end, name in _ENDS.items()}
            | {"chance": self.chance[aspect], "documents": int((~np.isnan(values[at])).sum())}
            for at, (aspect, way) in enumerate(pairs)
        ]


_ENDS = {"": "value", "_low": "low", "_high": "high"}


def judge_switch(
    vectors: np.ndarray,
    own: np.ndarray,
    labels: Mapping[str, np.ndarray],
    positions: Mapping[str, str],
    seed: int = 0,
    space: ShareSpace | None = None,
) -> Switched:
    """Of ``vectors[doc, head, dim]`` of a stage and ``own[doc, width]``, the model's embedding of the same documents.

    ``labels[aspect][doc]`` are codes, -1 for none; an aspect that ``positions`` does not name is neutral. ``space`` is
    that of stage 4, whose random slices are cut in it.
    """
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    check_positions(positions, labels)
    with threadpool_limits(1):  # many small matrices, on which several threads lose more than they win
        return _judged(vectors.astype(np.float32), own.astype(np.float32), labels, positions, seed, space)


def _judged(
    vectors: np.ndarray,
    own: np.ndarray,
    labels: Mapping[str, np.ndarray],
    positions: Mapping[str, str],
    seed: int,
    space: ShareSpace | None,
) -> Switched:
    moved = {name: position for name, position in positions.items() if position in (FOLLOW, IGNORE)}
    weights = learn_weights(head_cosines(vectors), labels, moved)
    docs = len(vectors)
    shares: dict[str, dict[str, np.ndarray]] = {}
    chance = {name: np.full(docs, np.nan) for name in labels}
    split = halves(docs, seed)
    for learning, held_out in (split, split[::-1]):
        theirs = {name: codes[held_out] for name, codes in labels.items()}
        for way, scores in _rankings(vectors, own, labels, moved, learning, held_out, seed, space):
            ranked = first_others(scores)
            for name, codes in theirs.items():
                found = shares.setdefault(way, {}).setdefault(name, np.zeros(docs))
                found[held_out] += same_value_share(ranked, codes)
        for name, codes in theirs.items():
            counts = np.bincount(codes[codes >= 0], minlength=1)
            alike = (counts[codes] - 1) / max(len(codes) - 1, 1)
            chance[name][held_out] = np.where(codes >= 0, alike, np.nan)
    for way, draws in ((SLICES, SLICINGS), (DIMENSIONS, DRAWS)):
        for name in labels:
            shares[way][name] /= draws
    ordered = {way: shares[way] for way in WAYS if way in shares}
    return Switched(weights, dict(moved), ordered, {name: _known_mean(values) for name, values in chance.items()})


def head_cosines(vectors: np.ndarray) -> np.ndarray:
    """``[head, doc, doc]`` of ``vectors[doc, head, dim]``: what the Retrieval lab adds up."""
    heads = unit(vectors.astype(np.float32, copy=False)).transpose(1, 0, 2)
    return np.asarray(np.matmul(heads, heads.transpose(0, 2, 1)))


def _rankings(
    vectors: np.ndarray,
    own: np.ndarray,
    labels: Mapping[str, np.ndarray],
    moved: Mapping[str, str],
    learning: np.ndarray,
    held_out: np.ndarray,
    seed: int,
    space: ShareSpace | None,
) -> Iterator[tuple[str, np.ndarray]]:
    """Ways and ``[doc, doc]`` scores of the held-out documents; random ones as often as they are drawn."""
    known = {name: codes[learning] for name, codes in labels.items()}
    docs, heads, dim = vectors.shape
    centred = own - own[learning].mean(axis=0)
    yield OWN, _cosines(centred[held_out])
    seen = head_cosines(vectors[held_out])
    yield EQUAL, seen.mean(axis=0)
    weights = learn_weights(head_cosines(vectors[learning]), known, moved)
    yield SWITCHED, _weighted(weights, seen)
    ignored = [name for name, position in moved.items() if position == IGNORE]
    if ignored:
        for name in ignored:
            centred = fit_eraser(centred[learning], known[name]).erased(centred)
        yield ERASED, _cosines(centred[held_out])
    flat = vectors.reshape(docs, -1)
    outputs = flat if space is None else space.outputs(flat)
    for order in random_orders(outputs.shape[1], SLICINGS, seed):
        sliced = flat[:, order].reshape(vectors.shape) if space is None else space.slices(order)(outputs)
        found = learn_weights(head_cosines(sliced[learning]), known, moved)
        yield SLICES, _weighted(found, head_cosines(sliced[held_out]))
    drawn = np.random.default_rng([seed, 5])
    for _ in range(DRAWS):
        some = drawn.permutation(heads * dim)[: int((weights > 0).sum()) * dim]
        yield DIMENSIONS, _cosines(flat[held_out][:, some])


def _cosines(vectors: np.ndarray) -> np.ndarray:
    found = unit(vectors)
    return np.asarray(found @ found.T)


def _weighted(weights: np.ndarray, cosines: np.ndarray) -> np.ndarray:
    return np.asarray(np.tensordot(weights.astype(np.float32), cosines, 1))


def _means(columns: list[np.ndarray]) -> Interval:
    """Over the documents that have a value, a column each."""
    values = np.stack(columns, axis=1)
    known = ~np.isnan(values)
    return ratios(np.where(known, values, 0), known.astype(np.float32))


def _known_mean(values: np.ndarray) -> float:
    return float(np.nanmean(values)) if (~np.isnan(values)).any() else float("nan")
