"""What the figures of retrieval say, in sentences made from the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.model.shape import ModelShape
from core.retrieval.tasks import TASKS
from core.runs.tables import Row

_BYTES = 2
"""Of a float16."""


def pruned_sentence(row: Row, shape: ModelShape, stage: int) -> str:
    """Of a row of ``pruned``: how many heads are enough, what that costs and what it saves."""
    dim = shape.width(stage) // shape.heads
    saved = 1 - row["heads"] / shape.heads
    figure = f"{row['metric']} among the first {row['k']}"
    verdict = {
        "better": "they do better than all",
        "worse": "they do worse than all",
        "no difference shown": "no difference to all is shown",
    }[row["claim"]]
    return (
        f"{row['heads']} of {shape.heads} heads are within one standard error of the best by the queries they were "
        f"chosen by. On the others {verdict}: {figure} {_signed(row['value'])} against {_signed(row['all'])}, "
        f"difference {_signed(row['difference'])} ({_signed(row['difference_low'])} to "
        f"{_signed(row['difference_high'])}). That saves {saved:.0%} of the vectors' bytes "
        f"({row['heads'] * dim * _BYTES:,} of {shape.heads * dim * _BYTES:,} a document in float16) and of the "
        "multiplications of every comparison."
    )


def weights_sentence(rows: Sequence[Row]) -> str:
    """Of the rows of ``weights`` of one task and stage."""
    learned = next(row for row in rows if row["kind"] == "learned")
    if learned["strength"] is None:
        return "Nothing was learned that uniform weights would not do as well: the weights stayed uniform."
    gain = f"{_signed(learned['gained'])} ({_signed(learned['gained_low'])} to {_signed(learned['gained_high'])})"
    if learned["gained_low"] > 0:
        return f"Learned weights gain {gain} on queries that they were not learned from."
    if learned["gained_high"] < 0:
        return f"Learned weights lose {gain} on queries that they were not learned from: keep uniform ones."
    return f"No gain of learned weights is shown on queries that they were not learned from: {gain}."


def retrieval_json(tables: dict[str, list[Row]]) -> dict[int, Any]:
    """By stage and task, for machines: every way at every place, what pruning does, what weights gain."""
    found: dict[int, Any] = {}
    for name, rows in tables.items():
        for row in rows:
            told = {key: value for key, value in row.items() if key not in ("stage", "task")}
            found.setdefault(row["stage"], {}).setdefault(row["task"], {}).setdefault(name, []).append(told)
    return found


def retrieval_lines(tables: dict[str, list[Row]], shape: ModelShape) -> list[str]:
    """For the report: each task's best way at each stage, and what pruning does."""
    found = []
    for task, about in TASKS.items():
        rows = [
            row
            for row in tables["retrieval"]
            if row["task"] == task and row["metric"] == about.metric and row["k"] == about.places
        ]
        if not rows:
            continue
        found.append(f"{about.title} ({rows[0]['queries']:,} queries; {about.metric} among the first {about.places})")
        for stage in sorted({row["stage"] for row in rows}):
            here = [row for row in rows if row["stage"] == stage]
            chance = next(row for row in here if row["way"] == "chance")
            full, best = (
                next(row for row in here if row["way"] == "full"),
                max((row for row in here if row["way"] != "chance"), key=lambda row: row["value"]),
            )
            found.append(
                f"  stage {stage}: full {_with_interval(full)}, best way '{best['way']}' {_with_interval(best)}, "
                f"chance {chance['value']:.3f}"
            )
            for row in tables["pruned"]:
                if row["task"] == task and row["stage"] == stage:
                    found.append(
                        f"    by '{row['way']}' {row['heads']} of {shape.heads} heads: {row['value']:.3f} against "
                        f"{row['all']:.3f} with all, {row['claim']} ({_signed(row['difference_low'])} to "
                        f"{_signed(row['difference_high'])})"
                    )
    return found


def _with_interval(row: Row) -> str:
    return f"{row['value']:.3f} ({row['low']:.3f}–{row['high']:.3f})"


def _signed(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")
