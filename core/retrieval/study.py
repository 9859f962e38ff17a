"""A whole study of one task at one stage: ways side by side, which heads may go, and what weights gain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from core.analysis.bootstrap import Interval, means
from core.retrieval.judge import Asked, Judge
from core.retrieval.metrics import Relevance, measured
from core.retrieval.pruning import Curve, Enough, Importance, backward, curve, enough, halves, importance, random_band
from core.retrieval.ways import DEPTH, WAYS
from core.retrieval.weights import Learned, learn

CHANCE = "chance"
"""Documents in random order: what any way has to beat."""
ORDERS = ("greedy", "activation", "random")
KINDS = ("uniform", "mrag", "learned")
FEWEST = 8
"""Queries; with fewer there are no halves to choose by and to tell by."""
Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class Scales:
    """What of the corpus decides about heads, each ``[head]``."""

    scores: np.ndarray
    """MRAG's."""
    activation: np.ndarray
    """Mean lengths."""


@dataclass(frozen=True)
class Pruned:
    """Which heads may go by one way: chosen on one half of the queries, told of the other."""

    importance: Importance
    greedy: Curve
    activation: Curve
    random: np.ndarray
    """``[order, size]``."""
    enough: Enough


@dataclass(frozen=True)
class Weighed:
    """Head weights for the mean of cosines: learned on one half, told of the other."""

    learned: Learned
    weights: dict[str, np.ndarray]
    """``[head]`` by kind, 1 on average."""
    reached: dict[str, Interval]
    gained: dict[str, Interval]
    """Against uniform weights, paired by query."""


def ways_at(stage: int) -> tuple[str, ...]:
    """Voting on slices of the final vector goes by its own name."""
    return tuple(name for name, way in WAYS.items() if way.stage in (None, stage) and (stage != 3 or name != "voting"))


def compare_ways(
    asked: Asked, scales: Scales, stage: int, progress: Progress, seed: int = 0, summed: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """``[metric, query, k]`` by way, and of chance; k from 1 to DEPTH, or to all documents where there are fewer.

    At stage 4, ``summed[query, rank]`` are the documents by the full embedding, which the heads alone cannot rank.
    """
    found = {}
    names, answers = ways_at(stage), Relevance.of(asked.relevant, asked.topics)
    for number, way in enumerate(names):
        progress(number / len(names), f"ranking by '{way}'")
        if way == "full" and summed is not None:
            found[way] = measured(summed, answers)
            continue
        judge = Judge.of(way, asked, scales.scores)
        found[way] = judge.measured(judge.total(np.ones(judge.heads)))
    found[CHANCE] = measured(_shuffled(asked, seed), answers)
    return found


def _shuffled(asked: Asked, seed: int) -> np.ndarray:
    chance, docs = np.random.default_rng(seed), len(asked.topics)
    depth = min(DEPTH, docs - bool((asked.own >= 0).any()))
    rows = [chance.permutation(docs) for _ in asked.own]
    return np.stack([row[row != own][:depth] for row, own in zip(rows, asked.own, strict=True)])


def prune(
    way: str, asked: Asked, scales: Scales, metric: str, places: int, progress: Progress, seed: int = 0
) -> Pruned:
    """The study of pruning by one way; ``asked`` has at least FEWEST queries."""
    progress(0.0, "each head alone, and all but each")
    alone = importance(Judge.of(way, asked, scales.scores), metric, places)
    choose, tell = halves(len(asked.seen), seed)
    judge = Judge.of(way, asked.some(choose), scales.scores)
    order = backward(judge, metric, places, lambda share: progress(0.1 + 0.6 * share, "removing heads one by one"))
    chosen = curve(judge, order, metric, places)
    judge = Judge.of(way, asked.some(tell), scales.scores)
    progress(0.7, "the curve on the other half")
    greedy = curve(judge, order, metric, places)
    weakest = np.argsort(scales.activation, kind="stable")
    by_activation = curve(judge, weakest, metric, places)
    progress(0.75, "random orders")
    band = random_band(judge, metric, places, seed=seed)
    return Pruned(alone, greedy, by_activation, band, enough(chosen, judge, metric, places))


def weigh(asked: Asked, scales: Scales, metric: str, places: int, seed: int = 0) -> Weighed:
    """Learned weights against uniform ones and MRAG's scores; ``asked`` has at least FEWEST queries."""
    choose, tell = halves(len(asked.seen), seed)
    learned = learn(Judge.of("weighted", asked.some(choose), scales.scores), metric, places, seed)
    judge = Judge.of("weighted", asked.some(tell), scales.scores)
    mean = scales.scores.mean()
    uniform = np.ones(judge.heads)
    by_score = scales.scores / mean if mean > 0 else uniform
    weights = dict(zip(KINDS, (uniform, by_score, learned.weights), strict=True))
    verdicts = {name: judge.verdict(judge.total(values), metric, places) for name, values in weights.items()}
    reached, gained = {}, {}
    for name, values in verdicts.items():
        both = means(np.stack([values, values - verdicts["uniform"]], axis=1))
        reached[name] = Interval(both.value[0], both.low[0], both.high[0])
        gained[name] = Interval(both.value[1], both.low[1], both.high[1])
    return Weighed(learned, weights, reached, gained)
