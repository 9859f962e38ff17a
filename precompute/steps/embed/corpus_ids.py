"""An id names one document: copies are refused, or numbered."""

from __future__ import annotations

from collections import Counter

from core.errors import Mistake

REFUSE, NUMBER = "refuse", "number"
DUPLICATE_IDS = (REFUSE, NUMBER)
"""What can be done with an id that a document before has; the command line offers them."""


class Ids:
    """The ids that were given so far, as hashes of 8 bytes: about 70 bytes a document."""

    def __init__(self, duplicates: str) -> None:
        self._duplicates = duplicates
        self._seen: set[int] = set()
        self._copies: Counter[str] = Counter()

    def own(self, key: str, title: str, label: str) -> str:
        """The document's own id: ``key``, or where another document has it ``key#2`` and so on."""
        if self._is_new(key):
            return key
        if self._duplicates == REFUSE:
            raise Mistake(
                f"{label} has more than one document with the id '{key[:80]}', the second titled '{title[:80]}'. Make "
                f"ids unique, name another column with --id-column, or pass --duplicate-ids {NUMBER} to number copies."
            )
        while True:
            self._copies[key] += 1
            numbered = f"{key}#{self._copies[key] + 1}"
            if self._is_new(numbered):
                return numbered

    def _is_new(self, key: str) -> bool:
        before = len(self._seen)
        self._seen.add(hash(key))
        return len(self._seen) > before
