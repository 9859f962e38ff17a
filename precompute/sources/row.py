"""What every source gives: rows, a label for the manifest and a fingerprint."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from core.errors import Mistake

OnBad = Callable[[str], None]
"""Called with one sentence for every bad record; the record is left out if it returns."""


@dataclass(frozen=True, slots=True)
class Row:
    """One record as the source has it; the values are whatever the format holds."""

    columns: dict[str, object]
    where: str
    """For sentences: ``corpus.jsonl line 17``."""
    key: str
    """For a document without an id: ``corpus.jsonl:17``, on the hub ``17``."""
    progress: float | None
    """Fraction 0..1 of the whole source that has been consumed; None where unknown."""


def refuse(sentence: str) -> None:
    """The default for bad records: the first one ends the job."""
    raise Mistake(f"{sentence} Fix it, or pass --skip-bad to leave such records out.")


class Source(Protocol):
    """Rows that can be read again from the start: the same rows in the same order."""

    @property
    def label(self) -> str:
        """A name without an absolute path: a file's or folder's name, ``hf:...`` or ``demo``."""

    def fingerprint(self) -> str:
        """Hexadecimal; another one means that the rows may have changed."""

    def rows(self, on_bad: OnBad = refuse) -> Iterator[Row]:
        """Every record, from the first."""
