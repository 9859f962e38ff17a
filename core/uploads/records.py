"""JSON: a string, an object with a text, a list of either, or such objects line by line."""

from __future__ import annotations

import json
from typing import Any

from core.errors import Mistake, listed
from core.uploads.encoding import decode
from core.uploads.uploaded import Uploaded, shown

TEXT_FIELDS = ("text", "content", "body", "document", "passage")
"""The first that is there; the same that a corpus's columns are looked for by."""
_TITLE_FIELDS = ("title", "headline", "name")
MAX_TEXTS = 50


def read_json(name: str, data: bytes) -> list[Uploaded]:
    decoded = decode(name, data)
    value = _parsed(name, decoded.text)
    if not isinstance(value, list):
        return [Uploaded(name, _text(name, value, ""), decoded.notes)]
    notes = decoded.notes
    if len(value) > MAX_TEXTS:
        notes = (*notes, f"Only the first {MAX_TEXTS} of {len(value):,} texts were taken.")
    found = []
    for number, item in enumerate(value[:MAX_TEXTS], start=1):
        title = next((item[key] for key in _TITLE_FIELDS if isinstance(item.get(key), str)), "") if _is(item) else ""
        text = _text(name, item, f", item {number},")
        found.append(Uploaded(f"{name}: {shown(title) if title.strip() else number}", text, notes))
    if not found:
        raise Mistake(f"{name} is an empty list. Choose a file with texts in it.")
    return found


def _parsed(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError as error:
        raise Mistake(f"{name} is nested too deeply to be read. Give a list of objects with a text.") from error
    except ValueError as error:
        lines = [line for line in text.splitlines() if line.strip()]
        try:
            if len(lines) > 1:
                return [json.loads(line) for line in lines]
        except (ValueError, RecursionError):
            pass
        problem = f"{error.msg} at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise Mistake(f"{name} is not valid JSON ({problem}). Mend it, or upload the text itself.") from error


def _text(name: str, value: Any, which: str) -> str:
    if isinstance(value, str):
        return value
    if _is(value):
        for key in TEXT_FIELDS:
            if isinstance(value.get(key), str):
                return str(value[key])
    raise Mistake(f"{name}{which} has no text: give a string, or an object with one of {listed(TEXT_FIELDS)}.")


def _is(value: Any) -> bool:
    return isinstance(value, dict)
