"""The rows of ``retrieve``'s tables."""

from __future__ import annotations

import numpy as np

from core.analysis.bootstrap import Interval, means, ratios
from core.retrieval.metrics import METRICS
from core.retrieval.rivals import Rival
from core.retrieval.study import CHANCE, Pruned, Scales, Weighed
from precompute.job.step import Rows, add


def add_ways(tables: dict[str, Rows], stage: int, task: str, found: dict[str, np.ndarray]) -> None:
    """``found[way]`` is ``[metric, query, k]``."""
    rows = tables.setdefault("retrieval", {})
    together = np.stack(list(found.values())).transpose(2, 0, 1, 3)  # [query, way, metric, k]
    shape = together.shape[1:]
    flat = together.reshape(len(together), -1)
    known = ~np.isnan(flat)
    reached = ratios(np.where(known, flat, 0), known.astype(np.float32))
    counts = known.sum(axis=0)
    for place, (way, metric, k) in enumerate(np.ndindex(*shape)):
        named = {"way": list(found)[way], "metric": list(METRICS)[metric], "k": k + 1}
        add(rows, stage=stage, task=task, **named, queries=int(counts[place]), **_interval("", reached, place))


def add_way_differences(
    tables: dict[str, Rows], stage: int, task: str, found: dict[str, np.ndarray], aspects: np.ndarray, places: int
) -> None:
    """Success and nDCG of every way less the full embedding's, query by query; by number of aspects where they vary."""
    rows = tables.setdefault("way_differences", {})
    groups = [0, *(np.unique(aspects).tolist() if len(np.unique(aspects)) > 1 else [])]
    for way, values in found.items():
        if way in ("full", CHANCE):
            continue
        place = min(places, values.shape[2]) - 1
        for metric in ("success", "ndcg"):
            number = list(METRICS).index(metric)
            paired = values[number, :, place] - found["full"][number, :, place]
            for group in groups:
                chosen = paired[(aspects == group) | (group == 0)]
                interval = means(chosen[:, None].astype(np.float32))
                add(rows, stage=stage, task=task, way=way, metric=metric, k=place + 1, aspects=int(group))
                add(rows, queries=len(chosen), difference=interval.value[0], low=interval.low[0], high=interval.high[0])


def add_pruned(
    tables: dict[str, Rows],
    stage: int,
    task: str,
    way: str,
    metric: str,
    places: int,
    made: Pruned,
    scales: Scales,
    queries: int,
) -> None:
    about = {"stage": stage, "task": task, "way": way}
    heads, enough = len(scales.scores), made.enough
    goes = np.empty(heads, dtype=int)
    goes[made.greedy.order] = np.arange(1, heads + 1)
    for head in range(heads):
        add(
            tables.setdefault("importance", {}),
            **about,
            head=head + 1,
            **_interval("lost", made.importance.lost, head),
            **_interval("alone", made.importance.alone, head),
            activation=float(scales.activation[head]),
            score=float(scales.scores[head]),
            goes=int(goes[head]),
            kept=bool(head in enough.heads),
        )
    random = Interval(made.random.mean(axis=0), *np.percentile(made.random, [2.5, 97.5], axis=0))
    for order, reached in (
        ("greedy", made.greedy.interval),
        ("activation", made.activation.interval),
        ("random", random),
    ):
        for size in range(1, heads + 1):
            add(tables.setdefault("pruning", {}), **about, order=order, heads=size, **_interval("", reached, size - 1))
    add(
        tables.setdefault("pruned", {}),
        **about,
        metric=metric,
        k=places,
        heads=len(enough.heads),
        **_interval("", enough.pruned),
        **_interval("all", enough.all_heads),
        **_interval("difference", enough.difference),
        claim=enough.claim,
        chosen_by=queries // 2,
        told_of=queries - queries // 2,
    )


def add_rivals(tables: dict[str, Rows], stage: int, task: str, heads: int, found: list[Rival]) -> None:
    for rival in found:
        add(
            tables.setdefault("pruning_rivals", {}),
            stage=stage,
            task=task,
            rival=rival.name,
            heads=heads,
            **_interval("", rival.reached),
            **_interval("ahead", rival.ahead),
            p=rival.p,
        )


def add_weights(tables: dict[str, Rows], stage: int, task: str, made: Weighed) -> None:
    for kind, weights in made.weights.items():
        strength = made.learned.strength if kind == "learned" else None
        add(
            tables.setdefault("weights", {}),
            stage=stage,
            task=task,
            kind=kind,
            **_interval("", made.reached[kind]),
            **_interval("gained", made.gained[kind]),
            # Infinitely strong: the weights are uniform, which their own rows say.
            strength=None if strength is None or np.isinf(strength) else strength,
        )
        for head, weight in enumerate(weights, start=1):
            rows = tables.setdefault("head_weights", {})
            add(rows, stage=stage, task=task, kind=kind, head=head, weight=float(weight))


def _interval(name: str, interval: Interval, place: int | None = None) -> dict[str, float | None]:
    """``name``, ``name_low``, ``name_high``; without a name ``value``, ``low`` and ``high``; None for no figure."""
    names = (name, f"{name}_low", f"{name}_high") if name else ("value", "low", "high")
    values = (interval.value, interval.low, interval.high)
    found = [float(value if place is None else value[place]) for value in values]
    return {key: None if np.isnan(value) else value for key, value in zip(names, found, strict=True)}
