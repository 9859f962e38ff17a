"""What the figures of retrieval say, in sentences made from the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from core.analysis.cautions import CEILING, Caution, named_stages, ruled_out
from core.analysis.findings import Finding
from core.analysis.null import LEVEL, benjamini_hochberg
from core.analysis.wording import percent
from core.model.shape import ModelShape
from core.retrieval.aspect_judge import ERASED, OWN, SLICES, SWITCHED, Switched
from core.retrieval.aspect_switch import FOLLOW, PLACES
from core.retrieval.metrics import metric_name
from core.retrieval.rivals import RIVALS
from core.retrieval.tasks import TASKS
from core.retrieval.ways import SIDE_BY_SIDE
from core.runs.tables import Row

_BYTES = 2
"""Of a float16."""
DECISIVE = ("random slices", "random dimensions")
"""What a choice of heads must beat to be about heads."""
VOTING = ("voting", "split")


def pruned_sentence(
    row: Row, shape: ModelShape, stage: int, rivals: Sequence[Row] = (), given: Sequence[Caution] = ()
) -> str:
    """Of a row of ``pruned``: how many heads are enough, and whether that is about heads; or why nothing follows.

    ``rivals`` are all rows of ``pruning_rivals``: their p-values are corrected over the stages and tasks tried.
    """
    if caution := ruled_out(given, row["task"], stage):
        return caution.sentence
    dim = shape.width(stage) // shape.heads
    name = metric_name(row["metric"], row["k"])
    if row["all"] >= CEILING:
        return (
            f"All heads together already reach {name} {row['all']:.3f}, the top of the scale, so no cut is recommended."
        )
    change = (
        f"{name} is {row['all']:.3f} with all heads and {row['value']:.3f} with these, a difference of "
        f"{_signed(row['difference'], '+')} (95 % CI {_signed(row['difference_low'], '+')} to "
        f"{_signed(row['difference_high'], '+')})"
    )
    if row["claim"] == "worse":
        return (
            f"No safe cut found: {row['heads']} of {shape.heads} heads were enough on the queries they were chosen by, "
            f"but do worse on held-out queries. There, {change}."
        )
    if row["heads"] == shape.heads:
        return f"No safe cut found: all {shape.heads} heads are needed."
    one = row["heads"] == 1
    do, they, take = ("does", "it was", "It takes") if one else ("do", "they were", "They take")
    verdict = {
        "better": f"{do} better than all heads on held-out queries: ",
        "no difference shown": f"{do} as well as all heads on the queries {they} chosen by; on held-out queries no "
        "difference is shown: ",
    }[row["claim"]]
    saved = 1 - row["heads"] / shape.heads
    sentence = (
        f"{row['heads']} of {shape.heads} heads {verdict}{change}. {take} {percent(saved)} less space "
        f"({row['heads'] * dim * _BYTES:,} instead of {shape.heads * dim * _BYTES:,} bytes per document in float16)."
    )
    return f"{sentence} {about_heads(row, rivals)}".strip()


def about_heads(row: Row, rivals: Sequence[Row]) -> str:
    """Whether choosing heads beats choosing as many numbers otherwise; nothing where that was not computed."""
    if row["way"] not in ("full", SIDE_BY_SIDE) or not rivals:
        return ""
    adjusted = benjamini_hochberg(np.array([rival["p"] for rival in rivals]))
    mine = {
        rival["rival"]: (rival, p)
        for rival, p in zip(rivals, adjusted, strict=True)
        if rival["stage"] == row["stage"] and rival["task"] == row["task"]
    }
    beaten = [name for name in DECISIVE if name in mine and mine[name][1] <= LEVEL and mine[name][0]["ahead"] > 0]
    told = ", ".join(f"{RIVALS[name]} {_signed(rival['value'])}" for name, (rival, _) in mine.items())
    if not mine:
        return ""
    if len(beaten) == len(DECISIVE):
        return f"Heads beat equally many numbers chosen at random: {told}."
    return f"Not a finding about heads: equally many numbers chosen without heads are not shown to do worse ({told})."


def weights_sentence(rows: Sequence[Row]) -> str:
    """Of the rows of ``weights`` of one task and stage."""
    learned = next(row for row in rows if row["kind"] == "learned")
    if learned["strength"] is None:
        return "Learned weights did not beat uniform weights: they stayed uniform."
    gain = (
        f"{_signed(learned['gained'], '+')} (95 % CI {_signed(learned['gained_low'], '+')} to "
        f"{_signed(learned['gained_high'], '+')})"
    )
    if learned["gained_low"] > 0:
        return f"On held-out queries, learned weights gain {gain} over uniform weights."
    if learned["gained_high"] < 0:
        return f"On held-out queries, learned weights do worse than uniform weights: {gain}. Keep uniform weights."
    return f"On held-out queries, learned weights are not shown to beat uniform weights: {gain}."


def voting_findings(tables: dict[str, list[Row]], given: Sequence[Caution] = ()) -> list[Finding]:
    """Voting of the heads against the cosine of the full embedding, query by query; one finding per task."""
    found = []
    for task, about in TASKS.items():
        rows = [
            row
            for row in tables.get("way_differences", ())
            if row["task"] == task
            and row["way"] in VOTING
            and row["metric"] == "success"
            and not ruled_out(given, task, row["stage"])
        ]
        overall = [row for row in rows if row["aspects"] == 0]
        if not overall:
            continue
        worse, better = [row for row in overall if row["high"] < 0], [row for row in overall if row["low"] > 0]
        parts = [f"worse at {_stages(worse)}"] if worse else []
        parts += [f"better at {_stages(better)}"] if better else []
        if not parts:
            said = "no difference from the cosine of the full embedding is shown"
        else:
            said = f"{' and '.join(parts)} than the cosine of the full embedding"
        found.append(
            Finding(
                "voting",
                f"Ranking by votes of the heads, task “{about.title.lower()}”: {said}.",
                "; ".join(
                    f"stage {row['stage']}{_aspects(row)}: {metric_name('success', row['k'])} "
                    f"{_signed(row['difference'], '+')} ({_signed(row['low'], '+')} to {_signed(row['high'], '+')}, "
                    f"{row['queries']:,} queries)"
                    for row in rows
                ),
            )
        )
    return found


def _aspects(row: Row) -> str:
    return "" if not row["aspects"] else f", {row['aspects']} aspect{'s' if row['aspects'] > 1 else ''}"


def _stages(rows: Sequence[Row]) -> str:
    return named_stages(sorted({row["stage"] for row in rows}))


def retrieval_json(tables: dict[str, list[Row]]) -> dict[int, Any]:
    """By stage and task, for machines: every way at every place, what pruning does, what weights gain."""
    found: dict[int, Any] = {}
    for name, rows in tables.items():
        for row in rows:
            told = {key: value for key, value in row.items() if key not in ("stage", "task")}
            found.setdefault(row["stage"], {}).setdefault(row["task"], {}).setdefault(name, []).append(told)
    return found


def retrieval_lines(tables: dict[str, list[Row]], shape: ModelShape, given: Sequence[Caution] = ()) -> list[str]:
    """For the report: each task's best way at each stage, and what pruning does where anything follows from it."""
    found = []
    for task, about in TASKS.items():
        rows = [
            row
            for row in tables["retrieval"]
            if row["task"] == task and row["metric"] == about.metric and row["k"] == about.places
        ]
        if not rows:
            continue
        found.append(f"{about.title} ({rows[0]['queries']:,} queries; {metric_name(about.metric, about.places)})")
        for stage in sorted({row["stage"] for row in rows}):
            here = [row for row in rows if row["stage"] == stage]
            chance = next(row for row in here if row["way"] == "chance")
            full = next((row for row in here if row["way"] == "full"), None)  # version 0.2.0 has none of stage 4
            best = max((row for row in here if row["way"] != "chance"), key=lambda row: row["value"])
            found.append(
                f"  stage {stage}: {f'full {_with_interval(full)}, ' if full else ''}best way "
                f"'{best['way']}' {_with_interval(best)}, chance {chance['value']:.3f}"
            )
            if ruled_out(given, task, stage):
                found.append("    no heads are recommended: see 'Findings'")
                continue
            for row in tables["pruned"]:
                if row["task"] == task and row["stage"] == stage:
                    found.append(
                        f"    by '{row['way']}' {row['heads']} of {shape.heads} heads: "
                        f"{row['value']:.3f} against {row['all']:.3f} with all, {row['claim']} "
                        f"({_signed(row['difference_low'])} to {_signed(row['difference_high'])})"
                    )
                    if row["claim"] != "worse" and (told := about_heads(row, tables.get("pruning_rivals", ()))):
                        found.append(f"      {told}")
    return found


def _with_interval(row: Row) -> str:
    return f"{row['value']:.3f} ({row['low']:.3f}–{row['high']:.3f})"


def _signed(value: float, sign: str = "-") -> str:
    return f"{value:{sign}.3f}".replace("-", "−")


def switch_sentences(switched: Switched) -> list[str]:
    """What switching did to each aspect that is followed or ignored, then whether it is the heads, and the eraser."""
    found = {(row["aspect"], row["way"]): row for row in switched.rows()}
    sentences: list[str] = []
    beyond: list[str] = []
    within: list[str] = []
    erased: list[str] = []
    for aspect, position in switched.positions.items():
        before, after = found[aspect, OWN], found[aspect, SWITCHED]
        change = _change(after["gained_low"], after["gained_high"])
        sentences.append(
            f"{position.capitalize()} {aspect}: the share of documents with the same {aspect} among the first {PLACES} "
            f"{change} from {before['value']:.3f} to {after['value']:.3f} ({_signed(after['gained'], '+')}, 95 % CI "
            f"{_signed(after['gained_low'], '+')} to {_signed(after['gained_high'], '+')})."
        )
        ahead = switched.difference(aspect, against=SLICES)
        wanted = ahead.low > 0 if position == FOLLOW else ahead.high < 0
        (beyond if wanted else within).append(aspect)
        if ERASED in switched.ways:
            erased.append(f"{aspect} {found[aspect, ERASED]['value']:.3f}")
    slices = "random slices whose weights were learned in the same way"
    last = [f"Heads beat {slices} for {' and '.join(beyond)}."] if beyond else []
    if within:
        last.append(f"For {' and '.join(within)}, heads are not shown to beat {slices}: no finding about heads.")
    if erased:
        last.append(f"LEACE, fitted to the same documents, reaches {', '.join(erased)}.")
    return [*sentences, " ".join(last)]


def _change(low: float, high: float) -> str:
    if low > 0:
        return "rises"
    return "falls" if high < 0 else "does not change measurably:"
