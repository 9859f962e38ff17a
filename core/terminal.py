"""Untrusted text on its way to a terminal: what would move the cursor or turn the line is spelled out."""

from __future__ import annotations

import re

_TURNING = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_ACTIVE = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029{_TURNING}\ud800-\udfff]")


def printable(text: object) -> str:
    """The text with its control characters as people write them (``\\x1b``); lines and tabs stay."""
    return _ACTIVE.sub(lambda found: _escape(found[0], "x"), str(text))


def printable_json(text: str) -> str:
    """The same for JSON, which stays JSON of the same value."""
    return _ACTIVE.sub(lambda found: _escape(found[0], "u"), text)


def _escape(letter: str, short: str) -> str:
    return f"\\x{ord(letter):02x}" if short == "x" and ord(letter) < 256 else f"\\u{ord(letter):04x}"
