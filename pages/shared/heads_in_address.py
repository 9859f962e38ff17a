"""Chosen heads in the address, "1-4,7", and with weights, "1-4,7*0.5"; "none"; nothing at all where all heads count."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np


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


LONGEST_WEIGHTS = 600
_PART = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?(?:\*([0-9]{1,2}(?:\.[0-9]{1,2})?))?")


def parse_weights(text: str, heads: int) -> np.ndarray | None:
    """``[head]`` weights, 0 for those not named; None for a text that does not name heads of this model."""
    if not text:
        return np.ones(heads)
    weights = np.zeros(heads)
    if text == "none":
        return weights
    for part in text[:LONGEST_WEIGHTS].split(","):
        match = _PART.fullmatch(part)
        if match is None:
            return None
        first, last = int(match[1]), int(match[2] or match[1])
        if not 1 <= first <= last <= heads:
            return None
        weights[first - 1 : last] = float(match[3] or 1)
    return weights


def format_weights(weights: Sequence[float] | np.ndarray) -> str:
    """The text for the address; weights are rounded to hundredths, and one that is above 0 stays so."""
    rounded = [0.0 if weight <= 0 else min(99.0, max(0.01, round(float(weight), 2))) for weight in weights]
    if all(weight == 1 for weight in rounded):
        return ""
    if not any(rounded):
        return "none"
    parts: list[str] = []
    start = 0
    while start < len(rounded):
        end = start
        while end + 1 < len(rounded) and rounded[end + 1] == rounded[start]:
            end += 1
        if rounded[start]:
            suffix = "" if rounded[start] == 1 else f"*{rounded[start]:g}"
            parts.append(ranges(range(start + 1, end + 2)) + suffix)
        start = end + 1
    return ",".join(parts)
