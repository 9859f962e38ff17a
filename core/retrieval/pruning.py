"""Which heads may go: what each is worth, and which set is enough; chosen on one half, told of the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from core.analysis.bootstrap import Interval, means, near_best
from core.retrieval.judge import METRIC, PLACES, Judge, Total

RANDOM_ORDERS = 20
CLAIMS = ("better", "worse", "no difference shown")
Progress = Callable[[float], None]


@dataclass(frozen=True)
class Importance:
    """What each head is worth, ``[head]`` intervals over the queries."""

    lost: Interval
    """What the metric loses without it; negative: the others do better alone."""
    alone: Interval
    """What it reaches with nobody else."""


@dataclass(frozen=True)
class Curve:
    """The metric with fewer and fewer heads; ``kept[size - 1]`` heads, all of them last."""

    order: np.ndarray
    """``[head]``: heads from 0, the first to go first."""
    verdicts: np.ndarray
    """``[size, query]``, size from 1."""

    def kept(self, size: int) -> np.ndarray:
        """The heads that are left, in order of their numbers."""
        return np.sort(self.order[len(self.order) - size :])

    @property
    def interval(self) -> Interval:
        """``[size]``, over the queries."""
        return means(self.verdicts.T)


@dataclass(frozen=True)
class Enough:
    """The smallest set within one standard error of the best, and what it does on queries that had no part in it."""

    heads: np.ndarray
    """From 0."""
    all_heads: Interval
    pruned: Interval
    difference: Interval
    """Pruned minus all, paired by query."""

    @property
    def claim(self) -> str:
        """``better`` or ``worse`` only where the interval excludes zero."""
        better, worse, neither = CLAIMS
        if self.difference.low > 0:
            return better
        return worse if self.difference.high < 0 else neither


def mask(heads: np.ndarray | list[int], count: int) -> np.ndarray:
    """``[head]``: 1 for these heads, 0 for others."""
    weights = np.zeros(count)
    weights[heads] = 1
    return weights


def halves(queries: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Query numbers to choose by, and the others to tell by; drawn once, in order."""
    drawn = np.random.default_rng(seed).permutation(queries)
    return np.sort(drawn[: queries // 2]), np.sort(drawn[queries // 2 :])


def importance(judge: Judge, metric: str = METRIC, places: int = PLACES) -> Importance:
    """Each head removed alone, and kept alone."""
    total = judge.total(np.ones(judge.heads))
    everyone = judge.verdict(total, metric, places)
    without, alone = [], []
    for head in range(judge.heads):
        rest = _without(judge, total, list(range(judge.heads)), head)
        without.append(everyone if rest is None else everyone - judge.verdict(rest, metric, places))
        alone.append(judge.verdict(judge.plus(Total.nothing(judge), head), metric, places))
    return Importance(means(np.stack(without, axis=1)), means(np.stack(alone, axis=1)))


def backward(
    judge: Judge, metric: str = METRIC, places: int = PLACES, progress: Progress = lambda share: None
) -> np.ndarray:
    """Greedy elimination: again and again the head goes without which the rest do best.

    What a head has in common with those that are left is not missed, so that of two alike one goes early. Equal ones:
    the later head goes. Returns ``[head]``, the first to go first.
    """
    left, gone = list(range(judge.heads)), []
    steps, done = judge.heads * (judge.heads + 1) // 2 - 1, 0
    while len(left) > 1:
        # Added up anew each time: what was subtracted leaves no rounding behind.
        total = judge.total(mask(left, judge.heads))
        best, worst = -np.inf, left[-1]
        for head in reversed(left):
            rest = _without(judge, total, left, head)
            value = -np.inf if rest is None else judge.verdict(rest, metric, places).mean()
            if value > best:
                best, worst = value, head
            done += 1
            progress(done / steps)
        left.remove(worst)
        gone.append(worst)
    return np.array([*gone, *left])


def _without(judge: Judge, total: Total, left: list[int], head: int) -> Total | None:
    """``total`` of the heads that are left without one of them; None where it is the only one."""
    others = [other for other in left if other != head]
    if not others:
        return None
    return judge.total(mask(others, judge.heads)) if judge.way == "max" else judge.less(total, head)


def curve(judge: Judge, order: np.ndarray, metric: str = METRIC, places: int = PLACES) -> Curve:
    """What is reached as heads go in this order."""
    verdicts, total = [], Total.nothing(judge)
    for head in order[::-1]:  # from the last one left: every size is one head more
        total = judge.plus(total, int(head))
        verdicts.append(judge.verdict(total, metric, places))
    return Curve(order, np.stack(verdicts))


def random_band(
    judge: Judge, metric: str = METRIC, places: int = PLACES, orders: int = RANDOM_ORDERS, seed: int = 0
) -> np.ndarray:
    """``[order, size]``: the mean metric as heads go in random orders."""
    chance = np.random.default_rng(seed)
    return np.stack(
        [curve(judge, chance.permutation(judge.heads), metric, places).verdicts.mean(axis=1) for _ in range(orders)]
    )


def enough(chosen: Curve, judge: Judge, metric: str = METRIC, places: int = PLACES) -> Enough:
    """From the curve of the queries to choose by; ``judge`` has the others."""
    size = 1 + int(np.flatnonzero(near_best(chosen.verdicts.T))[0])
    heads = chosen.kept(size)
    sets = (np.ones(judge.heads), mask(heads, judge.heads))
    both = [judge.verdict(judge.total(weights), metric, places) for weights in sets]
    found = means(np.stack([*both, both[1] - both[0]], axis=1))
    first, second, third = (Interval(found.value[at], found.low[at], found.high[at]) for at in range(3))
    return Enough(heads, first, second, third)
