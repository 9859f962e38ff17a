"""Chosen heads as they stand in the address: "1-4,7"; "none"; nothing at all where every head is chosen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def parse_heads(text: str | None, heads: int) -> frozenset[int] | None:
    """Heads counted from 1, or None for a text that does not name heads of this model."""
    if text is None:
        return frozenset(range(1, heads + 1))
    if text == "none":
        return frozenset()
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"([0-9]{1,4})(?:-([0-9]{1,4}))?", part)
        if match is None:
            return None
        first, last = int(match[1]), int(match[2] or match[1])
        if not 1 <= first <= last <= heads:
            return None
        found |= set(range(first, last + 1))
    return frozenset(found)


def format_heads(chosen: Iterable[int], heads: int) -> str | None:
    """The text for the address, or None for all heads."""
    numbers = sorted(set(chosen))
    if len(numbers) == heads:
        return None
    return ranges(numbers) if numbers else "none"


def ranges(numbers: Iterable[int], dash: str = "-", comma: str = ",") -> str:
    """Sorted numbers with runs drawn together: 1, 2, 3, 7 is "1-3,7"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return comma.join(str(first) if first == last else f"{first}{dash}{last}" for first, last in runs)


def heads_named(heads: Sequence[int]) -> str:
    """``head 3``, ``heads 1–3, 7``."""
    return f"head{'s' if len(heads) != 1 else ''} {ranges(heads, dash='–', comma=', ')}"
