"""Lists of values for aspects other than the topic: registers and web genres are here, others in files."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from core.analysis.topics import AUTO, MOST
from core.errors import Mistake, listed

_SEPARATOR = "\t"


@cache
def _lists() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(__file__).with_name("aspect_values.json").read_text(encoding="utf-8"))
    return found


def value_lists() -> tuple[str, ...]:
    """The aspects that have a list here."""
    return tuple(name for name in _lists() if name != "about")


def choose_values(aspect: str, asked: str) -> dict[str, str]:
    """The values that documents are labelled with, and a definition of each, which may be empty.

    ``asked`` is 'auto' (the aspect's own list), the name of a list, or a file: a value a line, its definition after a
    tab.
    """
    name = aspect if asked == AUTO else asked
    if name in value_lists():
        return dict(_lists()[name])
    if asked == AUTO:
        raise Mistake(
            f"There is no list of values for the aspect '{aspect}'; there is one for {listed(value_lists())}. Give a "
            "file with one value per line with --topics."
        )
    return _read(Path(asked))


def _read(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError as error:
        raise Mistake(
            f"There is no list of values '{path}'. Give one of {listed(value_lists())}, or a file with one value per "
            "line."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise Mistake(
            f"The list of values '{path}' cannot be read as text. Give a file with one value per line."
        ) from error
    found: dict[str, str] = {}
    for line in lines:
        value, _, definition = line.partition(_SEPARATOR)
        if value.strip():
            found.setdefault(value.strip(), definition.strip())
    if not 2 <= len(found) <= MOST:
        raise Mistake(f"The list of values '{path}' has {len(found)} of them. Give 2 to {MOST}, one per line.")
    return found
