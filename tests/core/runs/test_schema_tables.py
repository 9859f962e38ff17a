"""Every table of an analysis has its maker, its layout and its columns."""

from __future__ import annotations

from core.runs.schema import ANALYSIS, MADE_BY
from core.runs.table_checks import LAYOUTS


def test_every_table_is_made_by_one_step_and_has_its_rows_checked() -> None:
    made = [name for names in MADE_BY.values() for name in names]
    assert sorted(made) == sorted(ANALYSIS) == sorted(LAYOUTS)
