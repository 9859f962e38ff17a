"""Beginnings of words that very many documents have, taken apart so that a search need not read all of their places.

FTS5 reads a word list by list, as far as is asked; but of "the…" it first merges everything that begins so, whatever
the limit. Where that is much, it is asked for "the" or "thea…" or "theb…" instead, and so on within those: what is
merged is little each time, and the common words themselves are read as far as is asked. To find a beginning that comes
just after a common word FTS5 reads that word's list to its end: the next word is asked for by its whole name.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

SHORTEST_BEGINNING = 3
"""Letters from which on a word's beginning is enough: shorter ones begin a good part of all words."""
LIGHT = 10_000
"""Places of words in documents that are merged at once without anybody's waiting."""
LONGEST_BEGINNING = 24
"""Letters; what is longer is taken apart no further."""
MOST_PIECES = 500
"""Into which a beginning is taken apart; each is looked at for every document that is found."""


@dataclass(frozen=True)
class Branch:
    """How a beginning goes on: as a ``whole`` word, and with which ``letters``."""

    whole: bool
    letters: str


@dataclass
class _Open:
    beginning: str
    documents: int = 0
    whole: bool = False
    behind: bool = False
    letters: list[str] = field(default_factory=list)


def branches(words: Iterable[tuple[str, int]]) -> Iterator[tuple[str, Branch]]:
    """The beginnings to be taken apart, of ``(word, documents)`` in their order: of more than LIGHT, or just behind."""
    path: list[_Open] = []  # each begins as the one before it, with one letter more
    behind = False
    for word, documents in words:
        longest = min(len(word), LONGEST_BEGINNING)
        while path and not word.startswith(path[-1].beginning):
            yield from _closed(path)
        for length in range(len(path) + SHORTEST_BEGINNING, longest + 1):
            if path:
                path[-1].letters.append(word[length - 1])
            path.append(_Open(word[:length], behind=behind))
        if path:  # shorter words are never taken for a beginning
            path[-1].whole |= path[-1].beginning == word
            path[-1].documents += documents
        behind = documents > LIGHT
    while path:
        yield from _closed(path)


def _closed(path: list[_Open]) -> Iterator[tuple[str, Branch]]:
    last = path.pop()
    if path:
        path[-1].documents += last.documents
    # A beginning of so many letters may go on in ways that were not looked at.
    if (last.documents > LIGHT or last.behind) and len(last.beginning) < LONGEST_BEGINNING:
        yield last.beginning, Branch(last.whole, "".join(last.letters))


def pieces(beginning: str, branch: Callable[[str], Branch | None]) -> list[tuple[str, bool]]:
    """Words and beginnings (True) that together are all words that begin so; ``branch`` knows which are taken apart."""
    for length in range(SHORTEST_BEGINNING, len(beginning)):
        above = branch(beginning[:length])
        if above is None:
            break
        if beginning[length] not in above.letters:
            return []
    found: list[tuple[str, bool]] = []
    ends = deque([beginning])
    while ends:
        end = ends.popleft()
        known = branch(end)
        if known is None or len(found) + len(ends) + len(known.letters) >= MOST_PIECES:
            found.append((end, True))
            continue
        if known.whole:
            found.append((end, False))
        ends.extend(end + letter for letter in known.letters)
    return sorted(found)
