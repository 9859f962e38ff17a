"""Every table of an analysis has its maker, its layout and its columns."""

from __future__ import annotations

from core.runs.schema import ANALYSIS
from core.runs.steps import STEPS
from core.runs.table_checks import LAYOUTS


def test_every_table_is_made_by_one_step_and_has_its_rows_checked() -> None:
    made = [name for facts in STEPS.values() for name in facts.tables]
    assert sorted(made) == sorted(ANALYSIS) == sorted(LAYOUTS)
