"""Text in a CSV file that a spreadsheet would take for a formula, made harmless."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_FORMULA = r"^[=+\-@\t\r]"


def defused(table: pa.Table) -> pa.Table:
    """Every text cell that begins as a formula does gets an apostrophe before it; numbers stay numbers."""
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            risky = pc.match_substring_regex(column, _FORMULA)
            column = pc.if_else(risky, pc.binary_join_element_wise("'", column, ""), column)
        columns["'" + name if name[:1] in "=+-@\t\r" and name else name] = column
    return pa.table(columns)
