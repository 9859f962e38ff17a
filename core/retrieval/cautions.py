"""What the figures of retrieval cannot show: rankings at chance, at the top of the scale, or without a wrong answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from core.analysis.agreement import Compared
from core.analysis.cautions import CEILING, Caution, cautions, named_stages, ruled_out
from core.retrieval.metrics import metric_name
from core.retrieval.tasks import QUERY_SET, TASKS, TOPIC_MATCH
from core.runs.tables import Row, Tables


def all_cautions(tables: Tables, retrieval: Sequence[Row], compared: Iterable[Compared] = ()) -> list[Caution]:
    """Of labels, topic match and sources of labels, then of the rows of the table ``retrieval``."""
    given = cautions(tables, compared)
    return given + retrieval_cautions(retrieval, given)


def retrieval_cautions(rows: Sequence[Row], given: Sequence[Caution] = ()) -> list[Caution]:
    """From the rows of the table ``retrieval``; ``given`` are those of the labels, which are not repeated.

    Topic match is among these: core.analysis.cautions judges it by all documents.
    """
    return [caution for task in TASKS if task != TOPIC_MATCH for caution in _cautions(task, rows, given)]


def _cautions(task: str, all_rows: Sequence[Row], given: Sequence[Caution]) -> Iterator[Caution]:
    about = TASKS[task]
    rows = {
        (row["stage"], row["way"]): row
        for row in all_rows
        if row["task"] == task and row["metric"] == about.metric and row["k"] == about.places
    }
    stages = sorted(stage for stage, way in rows if way == "full" and not ruled_out(given, task, stage))
    trivial = [stage for stage in stages if rows[stage, "chance"]["value"] >= CEILING]
    rest = [stage for stage in stages if stage not in trivial]
    at_ceiling = [stage for stage in rest if rows[stage, "full"]["value"] >= CEILING]
    # Random order is one draw, so its own interval counts too: with shuffled labels the bare value let 4 of 30 pass.
    at_chance = [stage for stage in rest if rows[stage, "full"]["low"] <= rows[stage, "chance"]["high"]]
    for found, what in ((trivial, _TRIVIAL), (at_chance, _AT_CHANCE), (at_ceiling, _AT_CEILING)):
        if not found:
            continue
        remedy = "query set" if task == QUERY_SET else "labels"
        yield Caution(
            f"Task {about.title.lower()}, {named_stages(found)}: {what} Nothing is recommended there. Check the "
            f"{remedy}.",
            "; ".join(
                f"stage {stage}: {metric_name(about.metric, about.places)} {rows[stage, 'full']['value']:.3f} "
                f"({rows[stage, 'full']['low']:.3f}–{rows[stage, 'full']['high']:.3f}), random order "
                f"{rows[stage, 'chance']['value']:.3f} (up to {rows[stage, 'chance']['high']:.3f})"
                for stage in found
            )
            + f"; {rows[found[0], 'full']['queries']:,} queries",
            (task,),
            tuple(found),
        )


_TRIVIAL = "every document is relevant to every query, so any order is right."
_AT_CHANCE = "the full embedding is not shown to rank better than random order."
_AT_CEILING = "the full embedding is at the top of the scale, so no gain can be shown."
