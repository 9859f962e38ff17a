"""What comes out of an uploaded file."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Uploaded:
    """One text; a file may hold several."""

    name: str
    """The file's name, with the item's title or number where the file holds several."""
    text: str
    notes: tuple[str, ...] = ()
    """What the person should know: another encoding, pages left out, a text cut short. A sentence each."""


Read = Callable[[str, bytes], list[Uploaded]]
"""From a file's name (to be shown) and bytes to its texts, not yet cleaned."""

_LONGEST_NAME = 80


def shown(name: str) -> str:
    """A file's name as it may stand in a sentence: the last part of a path, nothing invisible, not too long."""
    last = re.split(r"[\\/]", name)[-1]
    plain = "".join(" " if unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") else letter for letter in last)
    plain = plain.strip() or "The file"
    return plain if len(plain) <= _LONGEST_NAME else plain[: _LONGEST_NAME - 1] + "…"
