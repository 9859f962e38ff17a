"""How numbers are written in sentences."""

from __future__ import annotations

PERCENT = "\u00a0%"
"""After a number, in sentences and on axes: no line break between them."""


def percent(share: float, digits: int = 0) -> str:
    """``59 %``."""
    return f"{100 * float(share):.{digits}f}{PERCENT}".replace("-", "−")


def percents(low: float, high: float, digits: int = 0) -> str:
    """``54–65 %``."""
    return f"{100 * float(low):.{digits}f}–{100 * float(high):.{digits}f}{PERCENT}".replace("-", "−")


def interval(low: float, high: float, digits: int = 0) -> str:
    """``95 % CI 54–65 %``, of shares."""
    return f"95{PERCENT} CI {percents(low, high, digits)}"


def plural(count: int, one: str, many: str = "") -> str:
    """``1 topic``, ``2 topics``; ``many`` where it is not ``one`` with an s."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
