"""Which heads may go, and whether voting helps, is not said where rankings cannot differ."""

from __future__ import annotations

import pytest

from core.analysis.cautions import SAME_TOPIC, Caution
from core.model.shape import ModelShape
from core.retrieval.cautions import retrieval_cautions
from core.retrieval.findings import pruned_sentence, retrieval_lines, voting_findings
from core.runs.tables import Row

SHAPE = ModelShape(layers=2, heads=12, kv_heads=12, hidden=384, head_dim=32)


def ranked(
    full: tuple[float, float, float], chance: float, task: str = "same topic", stage: int = 1, k: int = 10
) -> list[Row]:
    """Rows of ``retrieval``: nDCG@10 of the full embedding, with its interval, and of random order."""
    at = {"stage": stage, "task": task, "metric": "ndcg", "k": k, "queries": 250}
    value, low, high = full
    return [
        {**at, "way": "full", "value": value, "low": low, "high": high},
        {**at, "way": "chance", "value": chance, "low": chance, "high": chance},
    ]


def pruned(task: str = "same topic", stage: int = 1) -> Row:
    """One of 12 heads is enough."""
    row: Row = {"stage": stage, "task": task, "way": "full", "metric": "ndcg", "k": 10, "heads": 1}
    row |= {"value": 0.6, "all": 0.6, "difference": 0.0, "difference_low": -0.01, "difference_high": 0.01}
    return row | {"claim": "no difference shown"}


def voted(task: str = "same topic", stage: int = 1) -> Row:
    row: Row = {"stage": stage, "task": task, "way": "voting", "metric": "success", "k": 10, "aspects": 0}
    return row | {"queries": 250, "difference": -0.05, "low": -0.07, "high": -0.03}


FINE = (0.6, 0.55, 0.65)


def test_a_task_with_room_on_both_sides_needs_no_caution() -> None:
    assert retrieval_cautions([*ranked(FINE, 0.1), *ranked(FINE, 0.1, "queries", 2)]) == []
    assert retrieval_cautions([]) == []
    assert retrieval_cautions(ranked((1.0, 1.0, 1.0), 1.0, k=5)) == []  # not what heads are chosen by


@pytest.mark.parametrize(
    ("full", "chance", "said"),
    [
        ((1.0, 1.0, 1.0), 1.0, "every document is relevant to every query, so any order is right."),
        ((0.12, 0.1, 0.14), 0.1, "the full embedding is not shown to rank better than random order."),
        (
            (0.995, 0.99, 1.0),
            0.1,
            "the full embedding is at the top of the scale, so no gain can be shown.",
        ),
    ],
)
def test_nothing_is_recommended_where_rankings_cannot_differ(
    full: tuple[float, float, float], chance: float, said: str
) -> None:
    (found,) = retrieval_cautions([*ranked(full, chance), *ranked(FINE, 0.1, stage=2)])
    assert found.sentence == f"Task same topic, stage 1: {said} Nothing is recommended there. Check the labels."
    assert found.evidence == (
        f"stage 1: nDCG@10 {full[0]:.3f} ({full[1]:.3f}–{full[2]:.3f}), random order {chance:.3f} "
        f"(up to {chance:.3f}); 250 queries"
    )
    assert pruned_sentence(pruned(), SHAPE, 1, given=[found]) == found.sentence
    assert pruned_sentence(pruned(stage=2), SHAPE, 2, given=[found]).startswith("1 of 12 heads ")
    assert pruned_sentence(pruned("queries"), SHAPE, 1, given=[found]).startswith("1 of 12 heads ")


def test_random_order_counts_with_its_own_interval() -> None:
    full, chance = ranked((0.2, 0.15, 0.25), 0.12)
    assert retrieval_cautions([full, chance | {"high": 0.14}]) == []
    (found,) = retrieval_cautions([full, chance | {"high": 0.16}])
    assert "not shown to rank better than random order" in found.sentence


def test_just_inside_the_scale_is_no_reason_for_a_caution() -> None:
    assert retrieval_cautions(ranked((0.994, 0.98, 1.0), 0.99)) != []  # its interval reaches chance
    assert retrieval_cautions(ranked((0.994, 0.981, 1.0), 0.98)) == []


def test_a_query_set_is_to_be_checked_itself() -> None:
    (found,) = retrieval_cautions([row for stage in (1, 3) for row in ranked((0.1, 0.0, 0.2), 0.1, "queries", stage)])
    assert found.sentence.startswith("Task query set, stages 1 and 3: ")
    assert found.sentence.endswith("Check the query set.")


def test_what_the_labels_rule_out_is_not_said_twice() -> None:
    single = Caution("All labelled documents have the same topic.", "90 of 90", (SAME_TOPIC,), (1,))
    assert retrieval_cautions(ranked((1.0, 1.0, 1.0), 1.0), [single]) == []
    assert len(retrieval_cautions(ranked((1.0, 1.0, 1.0), 1.0, stage=2), [single])) == 1


def test_voting_is_not_judged_where_nothing_follows() -> None:
    tables = {"way_differences": [voted(), voted(stage=2)]}
    given = retrieval_cautions(ranked((1.0, 1.0, 1.0), 1.0))
    (found,) = voting_findings(tables, given)
    assert found.sentence == (
        "Ranking by votes of the heads, task “same topic”: worse at stage 2 than the cosine of the full embedding."
    )
    assert "stage 1" not in found.evidence
    assert voting_findings({"way_differences": [voted()]}, given) == []


def test_the_report_names_no_heads_where_nothing_follows() -> None:
    rows = [*ranked((1.0, 1.0, 1.0), 1.0), *ranked(FINE, 0.1, stage=2)]
    tables = {"retrieval": rows, "pruned": [pruned(), pruned(stage=2)]}
    lines = retrieval_lines(tables, SHAPE, retrieval_cautions(rows))
    assert lines[2] == "    no heads are recommended: see 'Findings'"
    assert sum("1 of 12 heads" in line for line in lines) == 1
