"""What switching heads off shows, in sentences; a head is named only beyond random removals of the same size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from core.analysis.ablation_effects import (
    ANGLE,
    ASPECT,
    HEAD,
    KINDS,
    false_alarms,
    least_spread,
    measure_name,
    measures_in_order,
)
from core.analysis.findings import Finding
from core.analysis.null import ABOVE, BELOW, WITHIN
from core.analysis.wording import percent
from core.runs.tables import Row

_LISTED = 5
"""Heads that a sentence names."""


def ablation_findings(
    rows: Sequence[Row], noise: Sequence[Row], measures: Sequence[str] | None = None
) -> list[Finding]:
    """For each measure of quality, or those that are given, the heads that cost most, and those whose removal helps."""
    found = []
    for measure in quality_measures(rows) if measures is None else measures:
        here = _heads(rows, measure)
        lost = sorted((row for row in here if row["verdict"] == BELOW), key=lambda row: float(row["change"]))
        gained = sorted((row for row in here if row["verdict"] == ABOVE), key=lambda row: -float(row["change"]))
        said = []
        if lost:
            cost = points(-lost[0]["change"])
            said.append(f"Switching off {head_name(lost[0])} costs {cost} of {measure_name(measure)}.")
            if others := lost[1:]:
                said.append(f"{_counted(others)} cost{'s' if len(others) == 1 else ''} less, but beyond the noise.")
        if gained:
            said.append(
                f"Switching off {head_name(gained[0])} improves it by {points(gained[0]['change'])}."
                if lost
                else f"Switching off {head_name(gained[0])} improves {measure_name(measure)} by "
                f"{points(gained[0]['change'])}."
            )
            if others := gained[1:]:
                said.append(f"{_counted(others)} improve{'s' if len(others) == 1 else ''} it, too.")
        if said:
            found.append(Finding("ablation", " ".join(said), _evidence((lost or gained)[0], here, noise)))
    return found


def quality_measures(rows: Sequence[Row]) -> list[str]:
    """Of these rows, in order: all but the angle."""
    return [name for name in measures_in_order(row["measure"] for row in rows) if name != ANGLE]


def head_name(row: Row) -> str:
    """``layer 6 head 11``."""
    if row["kind"] == "layer":
        return f"all heads of layer {row['layer']}"
    return f"layer {row['layer']} {'head' if row['kind'] == HEAD else 'key/value group'} {row['head']}"


def points(change: float) -> str:
    """A change of a share or of nDCG, in points of 100."""
    return f"{100 * change:.1f} points".replace("-", "−")


def amount(measure: str, value: float | None, signed: bool = False) -> str:
    """A value as people read it: per cent, nDCG, or degrees."""
    if value is None:
        return "–"
    sign = "+" if signed else ""
    if measure == ANGLE:
        text = f"{value:{sign}.1f}°"
    elif signed:
        text = f"{100 * value:+.1f}"
    else:
        text = percent(value, 1) if measure in ("names", "examples") or measure.startswith(ASPECT) else f"{value:.3f}"
    return text.replace("-", "−")


def ablation_lines(rows: Sequence[Row], most: int = 5) -> list[str]:
    """For a report: by measure the plain value, the noise, and the heads with the largest changes."""
    lines = []
    for measure in measures_in_order(row["measure"] for row in rows):
        here = _heads(rows, measure)
        if not here:
            continue
        beyond = sum(row["verdict"] != WITHIN for row in here)
        plain = "" if measure == ANGLE else f" {amount(measure, here[0]['plain'])}"
        lines.append(f"{measure_name(measure)}{plain}: {beyond} of {len(here)} heads beyond the noise")
        for row in sorted(here, key=lambda row: -abs(float(row["change"]) - float(row["noise"])))[:most]:
            lines.append(f"  {head_name(row):<20}{described(row)}")
    return lines


def described(row: Row) -> str:
    """A change with its interval, and what random removals change at that layer."""
    measure = row["measure"]
    value, low, high, noise_low, noise_high = (
        amount(measure, row[name], signed=True) for name in ("change", "low", "high", "noise_low", "noise_high")
    )
    if row["noise_low"] is None:
        return f"{value} (95 % CI {low} to {high})"
    p = f"{row['p_adjusted']:.3f}" if row["p_adjusted"] >= 0.001 else "below 0.001"
    return (
        f"{value} (95 % CI {low} to {high}); random removals {noise_low} to {noise_high}; adjusted p {p}; "
        f"{row['verdict']} the noise"
    )


def ablation_json(rows: Sequence[Row], noise: Sequence[Row]) -> dict[str, Any]:
    """For machines: by kind all rows, and how often the rule fires on random removals."""
    alarms = {}
    for measure in measures_in_order(row["measure"] for row in rows):
        if here := _heads(rows, measure):
            flagged, total = alarms_of(noise, measure, here[0]["documents"])
            alarms[measure] = {"flagged": flagged, "random_removals": total}
    return {
        "rows": {kind: [dict(row) for row in rows if row["kind"] == kind] for kind in KINDS},
        "false_alarms": alarms,
    }


def alarms_of(noise: Sequence[Row], measure: str, documents: int) -> tuple[int, int]:
    """How many random removals of a head's size would be flagged in place of a head, of how many."""
    own = [row for row in noise if (row["kind"], row["measure"]) == (HEAD, measure)]
    by_layer = {
        layer: np.array([row["change"] for row in own if row["layer"] == layer])
        for layer in {row["layer"] for row in own}
    }
    return false_alarms(by_layer, least_spread(measure, documents))


def _heads(rows: Sequence[Row], measure: str) -> list[Row]:
    return [row for row in rows if (row["kind"], row["measure"]) == (HEAD, measure)]


def _counted(rows: Sequence[Row]) -> str:
    names = [head_name(row) for row in rows[:_LISTED]]
    if len(rows) > _LISTED:
        names.append(f"{len(rows) - _LISTED} more")
    listing = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    return listing[0].upper() + listing[1:]


def _evidence(row: Row, here: Sequence[Row], noise: Sequence[Row]) -> str:
    measure = row["measure"]
    flagged, total = alarms_of(noise, measure, row["documents"])
    counted = "queries" if measure == "queries" else "documents"
    return (
        f"{amount(measure, row['plain'])} with all heads, {amount(measure, row['value'])} without {head_name(row)}: "
        f"{described(row)}. {len(here)} heads over {row['documents']:,} {counted}, Benjamini–Hochberg over them; in "
        f"place of a head, {flagged} of {total} random removals would be flagged"
    )
