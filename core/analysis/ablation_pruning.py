"""Which heads a model can do without: switched off one after another on one half, measured on the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.analysis.bootstrap import Interval, means

CANDIDATES = 5
"""Heads that are tried at every step: of those that are left, the ones whose removal alone moves documents least."""
RANDOM_ORDERS = 4
MOST_SIZES = 25
"""Of a curve."""
GREEDY, BY_ANGLE, BY_SHARE, BY_CHANCE = "greedy", "angle", "share", "random"
ORDERS = {
    GREEDY: "one by one, the cheapest of five candidates on the other half of the documents",
    BY_ANGLE: "those that move documents least first",
    BY_SHARE: "those with the smallest share of the embedding first",
    BY_CHANCE: "in random order",
}
Quality = Callable[[Sequence[Sequence[int]]], np.ndarray]
"""From sets of heads that are off to ``[set, doc]``; heads are numbers from 0, over all layers."""


@dataclass(frozen=True)
class PrunedCurve:
    """The quality on the held-out half with more and more heads off."""

    sizes: tuple[int, ...]
    value: Interval
    """``[size]``."""
    lost: Interval
    """``[size]``: against all heads, paired by document."""


@dataclass(frozen=True)
class AblationPruning:
    order: tuple[int, ...]
    """Heads in the order in which they go."""
    enough: int
    """So many can go: chosen on the first half, the most that stay within one standard error of all heads there."""
    curves: dict[str, PrunedCurve]
    """By order; ``random`` is the mean of several, its interval from the worst to the best of them."""


def sizes_of(most: int) -> tuple[int, ...]:
    """From 0 to ``most``, at most MOST_SIZES of them."""
    return tuple(int(size) for size in np.unique(np.linspace(0, most, min(most, MOST_SIZES - 1) + 1).round()))


def prune_by_ablation(
    scores: Mapping[str, np.ndarray],
    most: int,
    choosing: Quality,
    telling: Quality,
    progress: Callable[[float, str], None] = lambda share, message: None,
    seed: int = 0,
) -> AblationPruning:
    """``scores`` need no labels: heads go from the smallest on.

    ``scores[BY_ANGLE][head]`` is how far documents move without each head, and names the greedy order's candidates;
    ``scores[BY_SHARE][head]``, where it is known, is the head's share of the embedding.
    """
    angle = scores[BY_ANGLE]
    order, on_first = _greedy(angle, most, choosing, lambda share: progress(0.7 * share, "heads go one by one"))
    sizes = sizes_of(most)
    chance = np.random.default_rng(seed)
    drawn = [chance.permutation(len(angle))[:most].tolist() for _ in range(RANDOM_ORDERS)]
    by_score = {name: np.argsort(scores[name], kind="stable")[:most].tolist() for name in ORDERS if name in scores}
    orders = [order, *by_score.values(), *drawn]
    found = []
    for number, each in enumerate(orders):
        progress(0.7 + 0.3 * number / len(orders), "curves on the held-out half")
        found.append(telling([each[:size] for size in sizes]))
    return AblationPruning(
        tuple(order),
        _enough(on_first),
        {
            **{name: _curve(sizes, one, seed) for name, one in zip([GREEDY, *by_score], found, strict=False)},
            BY_CHANCE: _band(sizes, found[-RANDOM_ORDERS:]),
        },
    )


def _greedy(
    angle: np.ndarray, most: int, quality: Quality, progress: Callable[[float], None]
) -> tuple[list[int], np.ndarray]:
    """The order, and the quality of every size from 0, ``[size, doc]``."""
    left = np.argsort(angle, kind="stable").tolist()
    gone: list[int] = []
    reached = [quality([[]])[0]]
    for step in range(most):
        tried = left[:CANDIDATES]
        found = quality([[*gone, head] for head in tried])
        best = int(np.nanmean(found, axis=1).argmax())
        reached.append(found[best])
        gone.append(tried[best])
        left.remove(tried[best])
        progress((step + 1) / most)
    return gone, np.stack(reached)


def _enough(reached: np.ndarray) -> int:
    """The most heads off within one standard error of all on, by the paired difference of ``reached[size, doc]``."""
    lost = reached[0] - reached
    lost = lost[:, np.isfinite(lost).all(axis=0)]
    count = lost.shape[1]
    if count < 2:
        return 0
    within = lost.mean(axis=1) <= lost.std(axis=1, ddof=1) / np.sqrt(count)
    return int(np.flatnonzero(within).max())


def _curve(sizes: tuple[int, ...], found: np.ndarray, seed: int) -> PrunedCurve:
    known = found[:, np.isfinite(found).all(axis=0)].T.astype(np.float32)
    return PrunedCurve(sizes, means(known, seed), means(known - known[:, :1], seed))


def _band(sizes: tuple[int, ...], found: Sequence[np.ndarray]) -> PrunedCurve:
    values = np.stack([np.nanmean(one, axis=1) for one in found])
    lost = values - values[:, :1]
    return PrunedCurve(
        sizes,
        *(Interval(each.mean(axis=0), each.min(axis=0), each.max(axis=0)) for each in (values, lost)),
    )
