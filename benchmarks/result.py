"""What a benchmark reached, beside what it should reach."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """One line of the table."""

    what: str
    measured: str
    target: str
    reached: bool
