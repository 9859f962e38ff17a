"""Heads and their weights as they stand in the address: "1-4,7*0.5"; "none"; nothing where every head weighs 1."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from pages.shared.heads_in_address import ranges

MOST_LETTERS = 600
_PART = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?(?:\*([0-9]{1,2}(?:\.[0-9]{1,2})?))?")


def parse_mix(text: str, heads: int) -> np.ndarray | None:
    """``[head]`` weights, 0 for those not named; None for a text that does not name heads of this model."""
    if not text:
        return np.ones(heads)
    weights = np.zeros(heads)
    if text == "none":
        return weights
    for part in text[:MOST_LETTERS].split(","):
        match = _PART.fullmatch(part)
        if match is None:
            return None
        first, last = int(match[1]), int(match[2] or match[1])
        if not 1 <= first <= last <= heads:
            return None
        weights[first - 1 : last] = float(match[3] or 1)
    return weights


def format_mix(weights: Sequence[float] | np.ndarray) -> str:
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
