"""What comes out of an uploaded file: text that a tokenizer and a browser can take."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from core.errors import Mistake

MAX_CHARACTERS = 1_000_000
"""A book of 600 pages. What is longer is cut here, and said: models read far less, and a browser must show it."""

_NEWLINES = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_SURROGATES = re.compile("[\ud800-\udfff]")
# Not the format characters: joiners hold emoji and Persian words together, marks turn the direction of writing.
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufeff]")
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n){2,}")
_LONGEST_NAME = 80


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


def shown(name: str) -> str:
    """A file's name as it may stand in a sentence: the last part of a path, nothing invisible, not too long."""
    last = re.split(r"[\\/]", name)[-1]
    plain = "".join(" " if unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") else letter for letter in last)
    plain = plain.strip() or "The file"
    return plain if len(plain) <= _LONGEST_NAME else plain[: _LONGEST_NAME - 1] + "…"


def cleaned(found: Uploaded) -> Uploaded:
    """The same text, cleaned and not too long; one without any text is refused."""
    text, notes = found.text, list(found.notes)
    length = len(text)
    if length > MAX_CHARACTERS:
        text = text[:MAX_CHARACTERS]
        notes.append(f"Only the first {MAX_CHARACTERS:,} of {length:,} characters were kept.")
    text = _NEWLINES.sub("\n", text)
    text, broken = _SURROGATES.subn("\ufffd", text)
    if broken:
        notes.append(f"{broken:,} broken character{'s were' if broken > 1 else ' was'} replaced by \ufffd.")
    text = _BLANK_LINES.sub("\n\n", _CONTROLS.sub("", text)).strip()
    if not text:
        raise Mistake(f"{found.name} has no text in it. Choose another file, or paste the text.")
    return Uploaded(found.name, text, tuple(notes))


def pasted(text: str) -> Uploaded:
    """A text that was typed or pasted, treated as a file's would be."""
    if not text.strip():
        raise Mistake("There is no text yet. Paste some, or upload a file.")
    return cleaned(Uploaded("Pasted text", text))
