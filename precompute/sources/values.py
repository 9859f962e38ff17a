"""A row's values as clean text and plain scalars, such as a Parquet column can hold."""

import datetime
import decimal
import json
import re
import uuid

Scalar = str | int | float | bool | None

UNCLEAN = re.compile("[\x00\ud800-\udfff]")
TITLE_CHARS = 80


def clean(text: str) -> str:
    """The text with U+FFFD for NUL and lone surrogates, which neither UTF-8 nor a tokenizer takes."""
    return UNCLEAN.sub("\ufffd", text)


def keeps(value: object) -> bool:
    """Whether the value can be a scalar at all; bytes, images and the like cannot."""
    return value is None or isinstance(value, _PLAIN + _TIMES + _PRINTED + _NESTED)


def scalar(value: object) -> Scalar:
    """Times as ISO strings, lists and dicts as compact JSON; None for what keeps() refuses."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return str(value)  # no Parquet integer is wider
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, _NESTED):
        return clean(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=scalar))
    return _printed(value)


def string(value: object) -> str | None:
    """The value as a string; None for a missing or blank one, and for NaN, which pandas writes where one is missing."""
    if isinstance(value, float | decimal.Decimal) and value != value:
        return None
    plain = scalar(value)
    return None if plain is None or not str(plain).strip() else str(plain)


def title_of(text: str) -> str:
    """The first line that is not blank, at most 80 characters of it, cut at a word's end with "…"."""
    line = text.strip().partition("\n")[0].strip()
    if len(line) <= TITLE_CHARS:
        return line
    words = line[:TITLE_CHARS].rpartition(" ")[0].rstrip() or line[: TITLE_CHARS - 1]
    return f"{words}…"


def _printed(value: object) -> str | None:
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value) if isinstance(value, _PRINTED) else None


_PLAIN = (str, int, float, bool)
_TIMES = (datetime.date, datetime.time)  # a datetime is a date
_PRINTED = (decimal.Decimal, uuid.UUID, datetime.timedelta)
_NESTED = (list, tuple, dict)
