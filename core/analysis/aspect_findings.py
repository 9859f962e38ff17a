"""What heads carry, in words and for machines: aspects beyond random slices, and what they are not shown to carry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.analysis.aspect_probe import ACCURACY
from core.analysis.findings import Finding
from core.analysis.null import ABOVE
from core.analysis.wording import percent, percents
from core.runs.labels import CIRCULAR
from core.runs.tables import Row

AspectRows = Mapping[str, Sequence[Row]]
"""The tables ``aspects``, ``aspect_summary``, ``aspect_pairs`` and ``aspect_within``; empty before the step ran."""
ENTANGLED = 0.3
"""Cramér's V from which on two aspects are said to go together."""


@dataclass(frozen=True)
class Carried:
    """What a head is shown to carry beyond random slices, and what it is not, in the order of the aspects."""

    shown: tuple[str, ...]
    others: tuple[str, ...]
    """Aspects that another head of the stage is shown to carry, and this one is not."""

    @property
    def sentence(self) -> str:
        """``topic, not genre``; empty where the head carries nothing that is shown."""
        if not self.shown:
            return ""
        return _and(self.shown) + (f", not {_either(self.others)}" if self.others else "")


def carried(rows: AspectRows, stage: int, measure: str = ACCURACY) -> dict[int, Carried]:
    """By head, of all heads of a stage."""
    mine = [
        row for row in rows.get("aspects", ()) if (row["stage"], row["measure"]) == (stage, measure) and row["head"]
    ]
    above: dict[int, list[str]] = {row["head"]: [] for row in mine}
    for row in mine:
        if row["verdict"] == ABOVE:
            above[row["head"]].append(row["aspect"])
    names = dict.fromkeys(row["aspect"] for row in mine)
    some = [name for name in names if any(name in each for each in above.values())]
    return {
        head: Carried(tuple(each), tuple(name for name in some if name not in each)) for head, each in above.items()
    }


def aspect_findings(rows: AspectRows) -> list[Finding]:
    """One sentence per stage at which a head carries an aspect beyond random slices, and one on aspects that mingle."""
    stages = dict.fromkeys(row["stage"] for row in rows.get("aspects", ()))
    return [*(each for stage in stages for each in _at_stage(rows, stage)), *_mingled(rows)]


def _at_stage(rows: AspectRows, stage: int) -> Iterator[Finding]:
    by_set: dict[Carried, list[int]] = {}
    for head, each in carried(rows, stage).items():
        if each.shown:
            by_set.setdefault(each, []).append(head)
    if not by_set:
        return
    parts = []
    for each, heads in by_set.items():
        many = len(heads) > 1
        named = f"heads {_and([str(head) for head in heads])} carry" if many else f"head {heads[0]} carries"
        parts.append(f"{named} {_and(each.shown)}" + (f" and not {_either(each.others)}" if each.others else ""))
    aspects = dict.fromkeys(name for each in by_set for name in each.shown)
    summaries = {
        row["aspect"]: row
        for row in rows["aspect_summary"]
        if row["stage"] == stage and row["measure"] == ACCURACY and row["aspect"] in aspects
    }
    circular = any(row["source"] in CIRCULAR for row in summaries.values())
    yield Finding(
        "aspects",
        f"At stage {stage}, {'; '.join(parts)}: more than random slices of the same size."
        + (" Circular: the embedding itself made some of these labels." if circular else ""),
        "; ".join(_evidence(rows, stage, row) for row in summaries.values())
        + "; accuracy of a ridge probe, each document left out once, Benjamini–Hochberg over the heads; “not” means no "
        "more than random slices",
    )


def _evidence(rows: AspectRows, stage: int, summary: Row) -> str:
    mine = {
        row["head"]: row
        for row in rows["aspects"]
        if (row["stage"], row["aspect"], row["measure"]) == (stage, summary["aspect"], ACCURACY)
    }
    above = [f"head {head} {percent(row['value'], 1)}" for head, row in mine.items() if row["verdict"] == ABOVE]
    return (
        f"{summary['aspect']} ({summary['classes']} values): {', '.join(above)}; random slices "
        f"{percent(summary['slices'], 1)} ± {percent(summary['slices_sd'], 1)}, all heads together "
        f"{percent(mine[0]['value'], 1)}, "
        f"chance {percent(summary['chance'], 1)}"
    )


def _mingled(rows: AspectRows) -> Iterator[Finding]:
    """Aspects that go together in the corpus: a head that carries one of them may seem to carry the other."""
    first = min((row["stage"] for row in rows.get("aspect_pairs", ())), default=0)
    pairs = [row for row in rows.get("aspect_pairs", ()) if row["stage"] == first and row["cramers_v"] >= ENTANGLED]
    pairs = [row for at, row in enumerate(pairs) if not any(_same(row, other) for other in pairs[:at])]
    if pairs:
        named = _and([f"{row['aspect']} and {row['other']}" for row in pairs])
        yield Finding(
            "aspects",
            f"In this corpus {named} go together: read the figure of one within the values of the other.",
            "; ".join(f"Cramér's V of {row['aspect']} and {row['other']}: {row['cramers_v']:.2f}" for row in pairs),
        )


def aspects_json(rows: AspectRows) -> dict[str, Any]:
    """By stage and aspect, for machines."""
    found: dict[str, Any] = {}
    for summary in rows["aspect_summary"]:
        stage, aspect, measure = summary["stage"], summary["aspect"], summary["measure"]
        at = found.setdefault(str(stage), {}).setdefault(aspect, {"within": {}, "cramers_v": {}})
        mine = [
            row for row in rows["aspects"] if (row["stage"], row["aspect"], row["measure"]) == (stage, aspect, measure)
        ]
        at[measure] = {
            **{name: value for name, value in summary.items() if name not in ("stage", "aspect", "measure")},
            "by_head": [
                {name: value for name, value in row.items() if name not in ("stage", "aspect", "measure")}
                for row in mine
            ],
        }
    for row in rows["aspect_pairs"]:
        found[str(row["stage"])][row["aspect"]]["cramers_v"][row["other"]] = row["cramers_v"]
    for row in rows["aspect_within"]:
        figures = {name: value for name, value in row.items() if name not in ("stage", "aspect", "other")}
        found[str(row["stage"])][row["aspect"]]["within"].setdefault(row["other"], []).append(figures)
    return found


def aspect_lines(rows: AspectRows) -> list[str]:
    """For the report: a line per stage and aspect."""
    lines = []
    for summary in rows["aspect_summary"]:
        if summary["measure"] != ACCURACY:
            continue
        key = (summary["stage"], summary["aspect"], ACCURACY)
        mine = [row for row in rows["aspects"] if (row["stage"], row["aspect"], row["measure"]) == key]
        best = max((row for row in mine if row["head"]), key=lambda row: float(row["value"]))
        beyond = {
            verdict: [str(row["head"]) for row in mine if row["verdict"] == verdict] for verdict in ("above", "below")
        }
        said = "; ".join(f"{verdict}: {', '.join(heads)}" for verdict, heads in beyond.items() if heads)
        lines.append(
            f"stage {summary['stage']}, {summary['aspect']} ({summary['classes']} values, chance "
            f"{percent(summary['chance'], 1)}): all heads {_figure(mine[0])}, best head {best['head']} "
            f"{_figure(best)}, random "
            f"slices {percent(summary['slices_low'], 1)} to {percent(summary['slices_high'], 1)}; "
            f"{said or 'no head beyond them'}"
        )
    return lines


def _figure(row: Row) -> str:
    return f"{percent(row['value'], 1)} ({percents(row['low'], row['high'], 1)})"


def _same(row: Row, other: Row) -> bool:
    return {row["aspect"], row["other"]} == {other["aspect"], other["other"]}


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _either(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
