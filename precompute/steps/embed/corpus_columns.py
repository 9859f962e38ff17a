"""Which column of a corpus is what, decided on its first rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from core.errors import Mistake
from precompute.sources import Source

DEFAULTS: dict[str, tuple[str, ...]] = {
    "text": ("text", "content", "body", "document", "passage"),
    "id": ("id", "_id", "doc_id", "uuid"),
    "title": ("title", "headline", "name"),
    "url": ("url", "link", "source_url"),
    "topic": ("topic", "label", "category"),
}
"""For each field of a document the columns that are taken for it, the first that is there."""
WINDOW = 1_000
"""Rows in which a column must occur to be found: JSON records need not all have the same ones."""
SHOWN = 30


@dataclass(frozen=True)
class Columns:
    """The corpus's name for each field; None means the first of the defaults that is there."""

    text: str | None = None
    id: str | None = None
    title: str | None = None
    url: str | None = None
    topic: str | None = None

    def named(self) -> dict[str, str]:
        return {name: column for name in DEFAULTS if (column := getattr(self, name)) is not None}


@dataclass(frozen=True)
class ColumnChoice:
    """The column of each field that has one, and all columns that were seen until the last of them was found."""

    mapping: dict[str, str]
    present: tuple[str, ...]


class _Enough(Exception):
    """A window full of bad records was seen."""


def first_rows(source: Source) -> Iterator[Mapping[str, object]]:
    """The columns of the source's first rows; what is wrong with records is reported when they are read in earnest."""
    bad = 0

    def pass_over(sentence: str) -> None:
        nonlocal bad
        bad += 1
        if bad == WINDOW:
            raise _Enough

    with suppress(_Enough, Mistake):
        for number, row in enumerate(source.rows(pass_over), start=1):
            yield row.columns
            if number == WINDOW:
                return


def find_columns(fields: Iterable[str], named: Mapping[str, str], rows: Iterable[Mapping[str, object]]) -> ColumnChoice:
    """For each field its named column, or else the first default in the first row that has one.

    Reads no more rows than it needs.
    """
    taken, mapping, present = set(named.values()), dict(named), dict[str, None]()
    sought = [name for name in fields if name not in mapping]
    for columns in rows:
        present |= dict.fromkeys(columns)
        for name in sought:
            column = next((each for each in DEFAULTS[name] if each in columns and each not in taken), None)
            if column is not None:
                mapping.setdefault(name, column)
        if taken <= present.keys() and all(name in mapping for name in sought):
            break
    return ColumnChoice(mapping, tuple(present))


def choose_columns(asked: Columns, rows: Iterable[Mapping[str, object]], label: str) -> dict[str, str]:
    """The column of each field of a document that has one."""
    named = asked.named()
    found = find_columns(DEFAULTS, named, rows)
    shown = [repr(name) for name in found.present[:SHOWN]]
    if len(found.present) > SHOWN:
        shown.append(f"and {len(found.present) - SHOWN} more")
    has = f"it has {', '.join(shown) or 'no columns'}"
    for name, column in named.items():
        if column not in found.present:
            raise Mistake(f"{label} has no column {column!r}: {has}. Name yours with --{name}-column.")
    if "text" not in found.mapping:
        raise Mistake(f"{label} has no text column: {has}. Name yours with --text-column.")
    return found.mapping
