"""Where in depth something is strongest, in a sentence that is made from the numbers, and claims nothing on noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import NormalDist

from core.analysis.findings import Finding
from core.analysis.layer_measures import BETWEEN_GROUPS, FULL, WITHIN_GROUP
from core.model.stages import HEADS, RANDOM
from core.runs.tables import Row

_PAIRS = {
    "topic_match": (HEADS, RANDOM, "A single head finds the topic more often than a random slice of the same size"),
    "probe": (HEADS, RANDOM, "Heads are told apart more surely than random slices"),
    "groups": (WITHIN_GROUP, BETWEEN_GROUPS, "Heads that share a key/value head are more alike than others"),
}
"""By measure: the two curves whose 95 % intervals can be held against each other, and what it says if the first is
above."""


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
    """Other layers whose intervals meet the highest one's: they cannot be told from it."""


def peak(rows: Sequence[Row]) -> Peak | None:
    """Of one curve's rows of ``layer_curves``, one a layer; None where the run has no such figure."""
    known = sorted(_whole(rows), key=lambda row: int(row["layer"]))
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
    rows = [row for row in curves if (row["stage"], row["measure"], row["series"]) == (stage, "topic_match", FULL)]
    found = peak(rows)
    if found is None:
        return None
    top, last, where = found.top, found.last, f"layer {found.top['layer']} of {layers}"
    others = f"{_layers(found.level)} cannot be told from it." if found.level else "No other layer reaches that."
    if not found.clear:
        sentence = f"At stage {stage} no layer finds the labelled topic clearly more often than guessing does."
    elif top is last:
        sentence = f"Topic structure at stage {stage} is strongest at the end, at {where}: {_share(top)}. {others}"
    elif int(last["layer"]) in found.level:
        sentence = (
            f"Topic structure at stage {stage} is highest at {where}, {_share(top)}, but the last layer's interval "
            f"meets it ({_share(last)}): no clear peak before the end."
        )
    else:
        sentence = (
            f"Topic structure at stage {stage} peaks at {where}: {_share(top)}, against {_share(last)} at the last "
            f"layer. {others}"
        )
    highest = sorted(_whole(rows), key=_value, reverse=True)[:3]
    shown = "; ".join(f"layer {row['layer']} {_share(row)}" for row in [*highest, *([] if last in highest else [last])])
    return Finding(
        "layers",
        sentence,
        f"how often the labelled topic is the nearest, full embedding, highest first: {shown}; guessing "
        f"(by chance, or always the commonest topic) {found.baseline:.1%}",
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
    count = f"{len(above)} of {len(layers)} layers" + (f" ({_runs(above)})" if 0 < len(above) < len(layers) else "")
    less = f", less at {len(below)} ({_runs(below)})" if below else ""
    rest = len(layers) - len(above) - len(below)
    return f"{said} at {count}{less}" + (f"; at {rest} their 95 % intervals meet." if rest else ".")


def _whole(rows: Sequence[Row]) -> list[Row]:
    """Those that have their figures; a run without labels has none of topics."""
    return [row for row in rows if None not in (row["value"], row["low"], row["high"], row["chance"])]


def _value(row: Row) -> float:
    return float(row["value"])


def _share(row: Row) -> str:
    return f"{row['value']:.1%} ({row['low']:.1%}–{row['high']:.1%})"


def _layers(numbers: Sequence[int]) -> str:
    return f"Layer {numbers[0]}" if len(numbers) == 1 else f"Layers {_runs(numbers)}"


def _runs(numbers: Sequence[int]) -> str:
    """1, 2, 3, 7 is "1–3, 7"."""
    runs = [[at for _, at in run] for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)
