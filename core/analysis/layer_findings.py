"""Where in depth heads differ and topics are found, in sentences that claim nothing on noise or random slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import NormalDist

import numpy as np

from core.analysis.findings import Finding
from core.analysis.layer_measures import BETWEEN_GROUPS, DIFFERENCE, FULL, WITHIN_GROUP
from core.analysis.null import LEVEL, benjamini_hochberg
from core.analysis.separability import SLICINGS
from core.analysis.wording import percent, percents
from core.model.stages import HEADS, RANDOM
from core.runs.tables import Row

_PAIRS = {
    "topic_match": (HEADS, RANDOM, "A single head finds the topic more often than a random slice of the same size"),
    "groups": (WITHIN_GROUP, BETWEEN_GROUPS, "Heads that share a key/value head are more alike than others"),
}
"""By measure: the two curves whose 95 % intervals can be held against each other, and what it says if the first is
above."""
_SAME = 1e-9
"""Values that differ by less are the same."""
REFERENCES = {"names": "topic names", "examples": "examples"}
"""Measures of ``layer_null_summary`` that are topic match -> what a topic is compared by."""


@dataclass(frozen=True)
class DepthTest:
    """A test at every layer of a stage, by names and by examples, corrected over all of them."""

    rows: list[Row]
    """Of ``layer_null_summary``: those in which heads are beyond random slices."""
    tests: int
    false_alarms: int
    """Random slicings that would show something at any layer if they were the heads."""
    slicings: int

    def layers(self, measure: str) -> list[int]:
        return sorted(int(row["layer"]) for row in self.rows if row["measure"] == measure)


def specialising(summary: Sequence[Row], stage: int) -> DepthTest | None:
    """Where heads differ more among themselves than random slices do."""
    # A variance's cube root is close to normal (Wilson and Hilferty).
    return _depth_test(summary, stage, "spread", "slices_spreads", 2 / 3)


def best_heads(summary: Sequence[Row], stage: int) -> DepthTest | None:
    """Where the best head, chosen on one half of the documents, is better on the other than the best slice."""
    return _depth_test(summary, stage, "best", "best_slices", 1)


def beyond_guessing(curves: Sequence[Row], stage: int) -> bool:
    """Whether the full embedding finds topics clearly more often than guessing at any layer, by ``layer_curves``.

    Where it does not, nothing is said about heads and topics: slices share dimensions with each other and heads do not,
    so that with labels that mean nothing heads can spread more than slices.
    """
    found = peak(_full_topic_match(curves, stage))
    return found is not None and found.clear


def _full_topic_match(curves: Sequence[Row], stage: int) -> list[Row]:
    return [row for row in curves if (row["stage"], row["measure"], row["series"]) == (stage, "topic_match", FULL)]


def depth_finding(summary: Sequence[Row], stage: int, layers: int, guessing: bool = False) -> Finding | None:
    """At which layers heads specialise, and which head is the best at which depth.

    ``guessing``: the full embedding is not ``beyond_guessing``, and so neither is claimed.
    """
    differ, best = specialising(summary, stage), best_heads(summary, stage)
    if differ is None or best is None:
        return None
    if guessing:
        return Finding(
            "layers",
            f"At stage {stage} heads are not shown to specialise in topics at any layer: the full embedding itself "
            "does not find topics clearly more often than guessing does.",
            _alarms(differ, best),
        )
    said = []
    if differ.rows:
        where = {
            key: f"all {layers} layers" if len(found) == layers else _layers(found).lower()
            for key in REFERENCES
            if (found := differ.layers(key))
        }
        by = [f"{where[key]} by {REFERENCES[key]}" for key in where]
        if len(where) == 2 and len(set(where.values())) == 1:
            by = [f"{where['names']} by topic names and by examples"]
        said.append(
            f"At stage {stage} heads specialise at {' and at '.join(by)}: how often one alone finds the labelled topic "
            "differs more between heads than between random slices."
        )
    for key, words in REFERENCES.items():
        if tops := [row for row in best.rows if row["measure"] == key]:
            top = max(tops, key=lambda row: float(row["best"]))
            said.append(
                f"By {words} the best head is head {top['best_head']} at layer {top['layer']} of {layers}: it finds "
                f"the topic for {percent(top['best'])} of held-out documents, the best random slice for "
                f"{percent(top['best_slice'])}."
            )
    if not said:
        said = [f"At stage {stage} heads are not shown to specialise in topics at any layer."]
    return Finding("layers", " ".join(said), f"{_widest(summary, stage)}; {_alarms(differ, best)}")


def difference_to_slices(summary: Sequence[Row], stage: int, measure: str) -> str:
    """At how many layers the mean head differs from the mean slice, paired by document; empty if not known."""
    rows = [row for row in summary if (row["stage"], row["measure"]) == (stage, measure)]
    rows = sorted((row for row in rows if row["difference"] is not None), key=_layer)
    if not rows:
        return ""
    return _at_layers(
        "On average a single head finds the topic more often than a random slice",
        [_layer(row) for row in rows],
        [_layer(row) for row in rows if row["difference_low"] > 0],
        [_layer(row) for row in rows if row["difference_high"] < 0],
        "no difference is shown (95 % CI, paired by document)",
    )


def probe_difference(curves: Sequence[Row], stage: int) -> str:
    """At how many layers heads are more distinguishable than random slices, paired by split; empty if not known."""
    rows = [row for row in curves if (row["stage"], row["measure"], row["series"]) == (stage, "probe", DIFFERENCE)]
    rows = sorted((row for row in rows if row["value"] is not None), key=_layer)
    if not rows:
        return ""
    return _at_layers(
        "Heads are more distinguishable than random slices",
        [_layer(row) for row in rows],
        [_layer(row) for row in rows if row["low"] > 0],
        [_layer(row) for row in rows if row["high"] < 0],
        f"no difference is shown (95 % CI, a linear discriminant over {SLICINGS} splits and slicings, paired by split)",
    )


def _depth_test(summary: Sequence[Row], stage: int, value: str, null: str, power: float) -> DepthTest | None:
    rows = [row for row in summary if row["stage"] == stage and row["measure"] in REFERENCES and row[value] is not None]
    if not rows:
        return None
    slices = np.array([row[null] for row in rows], dtype=np.float64) ** power  # [row, slicing]
    shown = _beyond(np.array([row[value] for row in rows], dtype=np.float64) ** power, slices)
    found = [row for row, yes in zip(rows, shown, strict=True) if yes]
    return DepthTest(found, len(rows), _false_alarms(slices), slices.shape[1])


def _beyond(values: np.ndarray, null: np.ndarray) -> np.ndarray:
    """``[row]``: whether a value is above its ``null[row, slicing]``, corrected over the rows."""
    reached = (null >= values[:, None] - _SAME).sum(axis=1)
    return _corrected(values - null.mean(axis=1), null.std(axis=1, ddof=1), reached, null.shape[1])


def _false_alarms(null: np.ndarray) -> int:
    """How many slicings are above all others at some row of ``null[row, slicing]``: the same test of each of them."""
    count = null.shape[1] - 1
    reached = (null[:, None, :] >= null[:, :, None] - _SAME).sum(axis=2) - 1
    distance = null - null.mean(axis=1, keepdims=True)
    # From the mean of the others a slicing is farther away, and their squares do not have its own.
    squares = (distance**2).sum(axis=1, keepdims=True) - distance**2 * (count + 1) / count
    deviation = np.sqrt(np.maximum(squares, 0) / (count - 1))
    return int(_corrected((distance * (count + 1) / count).T, deviation.T, reached.T, count).any(axis=1).sum())


def _corrected(distance: np.ndarray, deviation: np.ndarray, reached: np.ndarray, count: int) -> np.ndarray:
    """``[…, row]``: whether a value this far above the mean of ``count`` slicings is beyond them.

    Where no slicing reaches the value, its p is that of Student's t with the null's mean and variance: 200
    slicings alone give no p below 1/201, too coarse for a correction over many layers.
    """
    from scipy.special import stdtr

    p = (1 + reached) / (1 + count)
    deviation = deviation * (1 + 1 / count) ** 0.5
    z = np.divide(distance, deviation, out=np.zeros_like(distance), where=deviation > _SAME)
    tail = stdtr(count - 1, -z)
    return np.asarray(benjamini_hochberg(np.where(reached == 0, np.minimum(p, tail), p)) <= LEVEL)


def _widest(summary: Sequence[Row], stage: int) -> str:
    """By each reference, the layer at which heads differ most in comparison with slices."""
    parts = []
    for key, words in REFERENCES.items():
        rows = [row for row in summary if (row["stage"], row["measure"]) == (stage, key) and row["slices_spread"] > 0]
        if rows:
            top = max(rows, key=lambda row: float(row["spread"] / row["slices_spread"]))
            parts.append(
                f"by {words} most at layer {top['layer']}: standard deviation over heads {top['spread']:.3f}, over "
                f"random slices {top['slices_spread']:.3f} (95 % below {top['slices_spread_high']:.3f})"
            )
    return "; ".join(parts)


def _alarms(differ: DepthTest, best: DepthTest) -> str:
    return (
        f"Benjamini–Hochberg over {differ.tests} comparisons of layers; in place of heads, {differ.false_alarms} of "
        f"{differ.slicings} random slicings would specialise at some layer, {best.false_alarms} would have a best head"
    )


@dataclass(frozen=True)
class Peak:
    """The layer with the highest value, and what can be said of the others."""

    top: Row
    last: Row
    """The last layer's row; the same as ``top`` where that is the last layer."""
    baseline: float
    clear: bool
    """Above the baseline, even though the highest of as many layers was chosen."""
    level: tuple[int, ...]
    """Other layers whose intervals meet the highest one's: they cannot be distinguished from it."""


def peak(rows: Sequence[Row]) -> Peak | None:
    """Of one curve's rows of ``layer_curves``, one a layer; None where the run has no such figure."""
    known = sorted(_whole(rows), key=_layer)
    if not known:
        return None
    top = max(known, key=_value)
    baseline = max(float(row[name]) for row in known for name in ("chance", "majority") if row[name] is not None)
    # An interval of 95 % is missed by one of twenty layers: the highest of many must clear a higher bar (Bonferroni).
    bar = NormalDist().inv_cdf(1 - 0.025 / len(known)) / NormalDist().inv_cdf(0.975)
    above = float(top["value"]) - baseline
    level = tuple(int(row["layer"]) for row in known if row is not top and row["high"] >= top["low"])
    return Peak(top, known[-1], baseline, above > bar * (top["value"] - top["low"]) and above > 0, level)


def topic_structure(curves: Sequence[Row], stage: int, layers: int) -> Finding | None:
    """Where in depth the full embedding finds the labelled topic most often, from the rows of ``layer_curves``."""
    rows = _full_topic_match(curves, stage)
    found = peak(rows)
    if found is None:
        return None
    top, last, where = found.top, found.last, f"layer {found.top['layer']} of {layers}"
    others = (
        f"{_layers(found.level)} cannot be distinguished from it." if found.level else "No other layer reaches that."
    )
    if not found.clear:
        sentence = f"At stage {stage} no layer's full embedding finds the topic clearly more often than guessing does."
    elif top is last:
        sentence = (
            f"The full embedding's topic structure at stage {stage} is strongest at the end, at {where}: "
            f"{_share(top)}. {others}"
        )
    elif int(last["layer"]) in found.level:
        sentence = (
            f"The full embedding's topic structure at stage {stage} is highest at {where}, {_share(top)}, but the last "
            f"layer's interval overlaps with it ({_share(last)}): no clear peak before the end."
        )
    else:
        sentence = (
            f"The full embedding's topic structure at stage {stage} peaks at {where}: {_share(top)}, against "
            f"{_share(last)} at the last layer. {others}"
        )
    highest = sorted(_whole(rows), key=_value, reverse=True)[:3]
    shown = "; ".join(f"layer {row['layer']} {_share(row)}" for row in [*highest, *([] if last in highest else [last])])
    return Finding(
        "layers",
        sentence,
        f"how often the labelled topic is the nearest, full embedding, highest first: {shown}; guessing "
        f"(by chance, or always the most frequent topic) {percent(found.baseline, 1)}",
    )


def held_against(curves: Sequence[Row], stage: int, measure: str) -> str:
    """At how many layers one curve lies above the other one of its measure; empty where there is nothing to compare."""
    if measure not in _PAIRS:
        return ""
    one, other, said = _PAIRS[measure]
    rows = {
        (row["layer"], row["series"]): row
        for row in curves
        if row["stage"] == stage and row["measure"] == measure and None not in (row["low"], row["high"])
    }
    layers = sorted({layer for layer, _ in rows if (layer, one) in rows and (layer, other) in rows})
    if not layers:
        return ""
    above = [layer for layer in layers if rows[layer, one]["low"] > rows[layer, other]["high"]]
    below = [layer for layer in layers if rows[layer, one]["high"] < rows[layer, other]["low"]]
    return _at_layers(said, layers, above, below, "their 95 % CIs overlap")


def _at_layers(said: str, layers: list[int], above: list[int], below: list[int], otherwise: str) -> str:
    count = f"{len(above)} of {len(layers)} layers" + (f" ({_runs(above)})" if 0 < len(above) < len(layers) else "")
    less = f", less at {len(below)} ({_runs(below)})" if below else ""
    rest = len(layers) - len(above) - len(below)
    return f"{said} at {count}{less}" + (f"; at {rest} {otherwise}." if rest else ".")


def _whole(rows: Sequence[Row]) -> list[Row]:
    """Those that have their figures; a run without labels has none of topics."""
    return [row for row in rows if None not in (row["value"], row["low"], row["high"], row["chance"])]


def _layer(row: Row) -> int:
    return int(row["layer"])


def _value(row: Row) -> float:
    return float(row["value"])


def _share(row: Row) -> str:
    return f"{percent(row['value'], 1)} ({percents(row['low'], row['high'], 1)})"


def _layers(numbers: Sequence[int]) -> str:
    return f"Layer {numbers[0]}" if len(numbers) == 1 else f"Layers {_runs(numbers)}"


def _runs(numbers: Sequence[int]) -> str:
    """1, 2, 3, 7 is "1–3, 7"."""
    runs = [[at for _, at in run] for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)
