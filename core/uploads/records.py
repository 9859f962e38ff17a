"""JSON: a string, an object with a text, a list of either, or such objects line by line.

Of a list one item at a time is in memory, of lines only those that are taken are parsed, and of objects only what may
be a text or a title is kept: 20 MB of ``{}`` as Python's own objects take a gigabyte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import repeat
from typing import Any

from core.errors import Mistake, listed
from core.uploads.encoding import decode
from core.uploads.uploaded import Uploaded, shown

TEXT_FIELDS = ("text", "content", "body", "document", "passage")
"""The first that is there; the same that a corpus's columns are looked for by."""
_TITLE_FIELDS = ("title", "headline", "name")
_FIELDS = frozenset(TEXT_FIELDS + _TITLE_FIELDS)
MAX_TEXTS = 50
_SPACE = re.compile(r"[ \t\n\r]*")
_NEXT = re.compile(r"[ \t\n\r]*([,\]])[ \t\n\r]*")
_LINE = re.compile(r"\S[^\r\n]*")

_PIECE = 1_000_000


class _Number:
    """Stands for any number: none is a text, and one of 5,000 digits is more than Python converts."""


def _number(_: str) -> _Number:
    return _NUMBER


def _wanted(pairs: list[tuple[str, Any]]) -> dict[str, str]:
    """Of an object what may be taken; those without any of it are one and the same, however many they are."""
    return {key: value for key, value in pairs if key in _FIELDS and isinstance(value, str)} or _NOTHING


_NUMBER = _Number()
_NOTHING: dict[str, str] = {}
_decoder = json.JSONDecoder(parse_int=_number, parse_float=_number, parse_constant=_number, object_pairs_hook=_wanted)


def read_json(name: str, data: bytes) -> list[Uploaded]:
    decoded = decode(name, data)
    try:
        return _read(name, decoded.text, decoded.notes)
    except RecursionError as error:
        raise Mistake(f"{name} is nested too deeply to be read. Give a list of objects with a text.") from error
    except json.JSONDecodeError as error:
        raise Mistake(
            f"{name} is not valid JSON ({error.msg} at line {error.lineno}). Fix it, or upload the text itself."
        ) from error


def _read(name: str, text: str, notes: tuple[str, ...]) -> list[Uploaded]:
    start = _after_space(text, 0)
    if text.startswith("[", start):
        return _texts(name, _items(text, start + 1), notes)
    value, end = _decoder.raw_decode(text, start)
    if _after_space(text, end) == len(text):
        return [Uploaded(name, _text(name, value, ""), notes)]
    return _texts(name, _lines(text, end), notes)


def _items(text: str, place: int) -> Iterator[Any]:
    """A list's items; ``place`` is behind its bracket."""
    place = _after_space(text, place)
    sign = "]" if text.startswith("]", place) else ","
    place += sign == "]"
    while sign != "]":
        item, end = _decoder.raw_decode(text, place)
        yield item
        found = _NEXT.match(text, end)
        if found is None:
            raise json.JSONDecodeError("Expecting ',' delimiter", text, _after_space(text, end))
        sign, place = found[1], found.end()
    if (place := _after_space(text, place)) < len(text):
        raise json.JSONDecodeError("Extra data", text, place)


def _lines(text: str, end: int) -> Iterator[Any]:
    """A value a line, None for those beyond what is taken; ``end`` is where the first value of the text ends."""
    for number, line in enumerate(_LINE.finditer(text), start=1):
        value, stop = _decoder.raw_decode(text, line.start())
        if _after_space(text, stop) < line.end() or stop > line.end():
            raise json.JSONDecodeError("Extra data", text, _after_space(text, end if number == 1 else stop))
        yield value
        if number == MAX_TEXTS:
            yield from repeat(None, _count(text, line.end()))
            return


def _count(text: str, place: int) -> int:
    """Lines from there on that are not blank, some of them at a time."""
    count = 0
    while place < len(text):
        end = text.find("\n", place + _PIECE)
        end = len(text) if end < 0 else end
        count += sum(map(bool, map(str.strip, text[place:end].replace("\r", "\n").split("\n"))))
        place = end
    return count


def _texts(name: str, values: Iterator[Any], notes: tuple[str, ...]) -> list[Uploaded]:
    found, count = [], 0
    for count, value in enumerate(values, start=1):
        if count <= MAX_TEXTS:
            text = _text(name, value, f", item {count},")
            found.append((f"{name}: {shown(_title(value)) if _title(value).strip() else count}", text))
    if not found:
        raise Mistake(f"{name} is an empty list. Choose a file with texts in it.")
    if count > MAX_TEXTS:
        notes = (*notes, f"Only the first {MAX_TEXTS} of {count:,} texts were read.")
    return [Uploaded(called, text, notes) for called, text in found]


def _title(value: Any) -> str:
    return next((value[key] for key in _TITLE_FIELDS if key in value), "") if _is(value) else ""


def _text(name: str, value: Any, which: str) -> str:
    if isinstance(value, str):
        return value
    if _is(value):
        for key in TEXT_FIELDS:
            if key in value:
                return str(value[key])
    what = "is a number, not a text" if value is _NUMBER else "has no text"
    raise Mistake(f"{name}{which} {what}: give a string, or an object with one of {listed(TEXT_FIELDS)}.")


def _is(value: Any) -> bool:
    return isinstance(value, dict)


def _after_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return found.end() if found else place
