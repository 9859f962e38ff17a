"""Text in a CSV file that a spreadsheet would take for a formula, made harmless."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

_FORMULA = r"^[=+\-@\t\r]"


def defused_text(text: str) -> str:
    """One cell's text, with an apostrophe before it where it begins as a formula does."""
    return f"'{text}" if re.match(_FORMULA, text) else text


def defused(table: pa.Table) -> pa.Table:
    """Every text cell that begins as a formula does gets an apostrophe before it; numbers stay numbers."""
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            risky = pc.match_substring_regex(column, _FORMULA)
            column = pc.if_else(risky, pc.binary_join_element_wise("'", column, ""), column)
        columns[defused_text(name)] = column
    return pa.table(columns)
