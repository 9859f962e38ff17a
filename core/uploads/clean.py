"""Text as a tokenizer and a browser can take it: no control characters, no lone surrogates, one kind of newline."""

from __future__ import annotations

import re

from core.errors import Mistake
from core.uploads.uploaded import Uploaded

MAX_CHARACTERS = 1_000_000
"""A book of 600 pages. What is longer is cut here, and said: models read far less, and a browser must show it."""

_NEWLINES = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_SURROGATES = re.compile("[\ud800-\udfff]")
# Not the format characters: joiners hold emoji and Persian words together, marks turn the direction of writing.
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufeff]")
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n){2,}")


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
