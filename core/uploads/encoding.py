"""Bytes to text: by their mark, else as UTF-8, else by what they look like; what is no text at all is refused."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from core.errors import Mistake
from core.uploads.uploaded import Uploaded

_MARKS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_KNOWN_FILES: dict[bytes, str] = {
    b"%PDF-": ".pdf",
    b"PK\x03\x04": ".docx",
}
"""What begins like this is no text, and might be read under its right name."""
_SAMPLE = 64_000
_STRANGE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufffd]")
_TOO_STRANGE = 0.01
"""Share of control characters from which on bytes are no text, whatever encoding they can be read in."""
_A_FEW = 4
"""Control characters that even a short text may have."""
_NOT_WANTED = (
    *("cp037", "cp273", "cp424", "cp500", "cp875", "cp1026", "cp1140", "cp864", "utf_7", "hp_roman8"),
    *("utf_16", "utf_16_be", "utf_16_le", "utf_32", "utf_32_be", "utf_32_le"),
)
"""Encodings in which nearly any bytes look like letters; UTF-16 and UTF-32 are known by their mark."""


@dataclass(frozen=True)
class Decoded:
    text: str
    notes: tuple[str, ...] = ()


def decode(name: str, data: bytes, declared: str | None = None) -> Decoded:
    """The text of ``data``; ``declared`` is the encoding that the file itself names, if it does."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _by_mark(name, data, encoding)
    right = next((suffix for start, suffix in _KNOWN_FILES.items() if data.startswith(start)), None)
    if right is not None:
        raise Mistake(
            f"{name} is not a text file: it looks like a {right} file. Correct its extension and upload it again."
        )
    if b"\0" in data:
        raise _no_text(name)
    try:
        return Decoded(_checked(name, data.decode("utf-8")))
    except UnicodeDecodeError:
        pass
    found = _python_name(declared) or _guess(data)
    if found is None:
        raise _no_text(name)
    text = _checked(name, data.decode(found, errors="replace"))
    return Decoded(text, (f"It was read as {found}, not UTF-8: check accented letters.",))


def _by_mark(name: str, data: bytes, encoding: str) -> Decoded:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise Mistake(f"{name} is marked as {encoding}, but is damaged. Save it again as UTF-8.") from error
    text = _checked(name, text)
    return Decoded(text) if encoding == "utf-8-sig" else Decoded(text, (f"It was read as {encoding}.",))


def _python_name(declared: str | None) -> str | None:
    """The declared encoding, if Python knows it; what browsers read for Latin-1 and ASCII is Windows-1252."""
    try:
        found = codecs.lookup(declared).name if declared else None
        b"x".decode(found or "ascii")  # some codecs are not of text
    except (LookupError, ValueError):
        return None
    return "cp1252" if found in ("iso8859-1", "ascii") else found


def _guess(data: bytes) -> str | None:
    from charset_normalizer import from_bytes

    sample = data if len(data) <= _SAMPLE else data[: data.rfind(b"\n", 0, _SAMPLE) + 1 or _SAMPLE]
    matches = from_bytes(sample, cp_exclusion=list(_NOT_WANTED))
    best = matches.best()
    if best is None:
        return None
    # Many fit a short text equally well, in alphabetical order; of those, the one that most files are written in.
    equal = [match for match in matches if match.chaos <= best.chaos and match.coherence >= best.coherence]
    return "cp1252" if any("cp1252" in match.could_be_from_charset for match in equal) else best.encoding


def _checked(name: str, text: str) -> str:
    if len(_STRANGE.findall(text)) > max(_A_FEW, _TOO_STRANGE * len(text)):
        raise _no_text(name)
    return text


def _no_text(name: str) -> Mistake:
    return Mistake(f"{name} is not a text file. Choose a text file.")


def read_text(name: str, data: bytes) -> list[Uploaded]:
    found = decode(name, data)
    return [Uploaded(name, found.text, found.notes)]
