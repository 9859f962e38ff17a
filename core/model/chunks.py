"""A long text cut into pieces that a model takes whole, at the ends of paragraphs and sentences where it can."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from core.errors import Mistake
from core.model.tokens import Tokens

OVERLAP = 0.1
"""Share of a chunk that the next one repeats, so that no sentence is read only without what came before it."""
_BREAKS = (
    re.compile(r"\n[ \t]*\n\s*"),
    re.compile(r"[.!?…]+[\"'”’)\]]*\s+|[。！？]+[」』”’）]*\s*|\n+"),
    re.compile(r"\s+"),
)
"""Ends of paragraphs, of sentences and lines, of words: the first kind that comes late enough is taken."""
_SPACE = re.compile(r"\s*")
_LATE = 0.5
"""A chunk is cut at a break only if half of what fits comes before it."""


@dataclass(frozen=True)
class Chunk:
    """Characters ``[start, end)`` of the text."""

    start: int
    end: int
    text: str
    tokens: int
    """As the model sees it, special ones and prompt included."""


@dataclass(frozen=True)
class Reach:
    """How far into a text the model reads."""

    seen: int
    """Tokens that the model sees, special ones and prompt included."""
    total: int
    """Tokens of the whole text, likewise."""
    end: int | None
    """The character where the model stops; None where the tokenizer cannot say."""

    @property
    def truncated(self) -> bool:
        return self.total > self.seen

    def __str__(self) -> str:
        return f"first {self.seen:,} of {self.total:,} tokens" if self.truncated else f"all {self.total:,} tokens"


def reach(text: str, tokens: Tokens, prompt: str = "") -> Reach:
    """What of ``text`` the model sees when it is embedded in one piece."""
    spans = tokens.spans(text, prompt)
    ends = [place[1] for place in spans.characters if place is not None]
    seen = min(spans.total, tokens.max_tokens)
    return Reach(seen, spans.total, len(text) if spans.total <= seen else max(ends, default=None))


def chunks(
    text: str, tokens: Tokens, prompt: str = "", overlap: float = OVERLAP, at_most: int | None = None
) -> list[Chunk]:
    """``text`` in chunks of at most the model's length; together they hold every character that is not white space.

    ``overlap`` is the share (0 to 0.5) of a chunk that the next may repeat. A text of more than ``at_most`` chunks is
    refused. Only a single character that is longer than the model's length makes a longer chunk.
    """
    if not 0 <= overlap <= 0.5:
        raise Mistake(f"An overlap of {overlap} is not possible. Give a share between 0 and 0.5.")
    found: list[Chunk] = []
    for chunk in _cut(text, tokens, prompt, overlap):
        found.append(chunk)
        if at_most is not None and len(found) > at_most:
            raise Mistake(
                f"This text is longer than {at_most} chunks of {tokens.max_tokens} tokens. Shorten it, or embed only "
                "its beginning."
            )
    return found


def _cut(text: str, tokens: Tokens, prompt: str, overlap: float) -> Iterator[Chunk]:
    ruler = _Ruler(text, tokens, prompt)
    breaks = _Breaks(text)
    end_of_text = len(text.rstrip())
    start, before = _after_space(text, 0), -1
    while start < end_of_text:
        end, count = end_of_text, ruler.count(start, end_of_text) if ruler.may_fit(start, end_of_text) else None
        if count is None or count > tokens.max_tokens:
            end, count = _longest(ruler, breaks, start, end_of_text, tokens.max_tokens)
        if end <= before:
            # What is repeated took all the room: on without it, for every chunk must say something new.
            start, before = _after_space(text, before), -1
            continue
        before, stop = end, start + len(text[start:end].rstrip())
        yield Chunk(start, stop, text[start:stop], count)
        if end >= end_of_text:
            return
        again = breaks.first_after(end - int(overlap * (end - start)), end) if overlap else end
        start = _after_space(text, max(again, start + 1))


def _longest(ruler: _Ruler, breaks: _Breaks, start: int, limit: int, room: int) -> tuple[int, int]:
    """Where the chunk from ``start`` ends, and its tokens: counted anew, for a part has not just the whole's."""
    furthest = min(limit, ruler.guess(start, room))
    while True:
        end = breaks.last_before(start, furthest)
        count = ruler.count(start, end)
        if count <= room or end <= start + 1:
            return end, count
        # As much shorter as it was too long, and at least by a character.
        furthest = max(start + 1, min(end - 1, start + (end - start) * room // count))


def _after_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return found.end() if found else place


class _Breaks:
    """The places where a text may be cut, by kind, in order."""

    def __init__(self, text: str) -> None:
        self._kinds = [[match.end() for match in kind.finditer(text)] for kind in _BREAKS]

    def last_before(self, start: int, furthest: int) -> int:
        """The last good place to cut in the later part of ``(start, furthest]``; ``furthest`` if there is none."""
        for places in self._kinds:
            place = places[index - 1] if (index := bisect_right(places, furthest)) else 0
            if place > start + _LATE * (furthest - start):
                return place
        return furthest

    def first_after(self, earliest: int, end: int) -> int:
        """The first good place to begin in ``[earliest, end)``; ``end`` if there is none."""
        for places in self._kinds:
            index = bisect_left(places, earliest)
            if index < len(places) and places[index] < end:
                return places[index]
        return end


class _Ruler:
    """Counts tokens of parts of a text; where they lie is looked up in the whole, encoded once."""

    def __init__(self, text: str, tokens: Tokens, prompt: str) -> None:
        self._text, self._tokens, self._prompt = text, tokens, prompt
        spans = tokens.spans(text, prompt, whole=True)
        self._places = [place for place in spans.characters if place is not None]
        self._starts = [place[0] for place in self._places]
        self._extra = spans.total - len(self._places)
        own = sum(not special for special in spans.special)
        self._per_token = len(text) / max(1, own)

    def count(self, start: int, end: int) -> int:
        """Tokens of that part without the white space at its end, special ones and prompt included."""
        return self._tokens.encode([self._text[start:end].rstrip()], self._prompt).totals[0]

    def may_fit(self, start: int, end: int) -> bool:
        """Whether it is worth counting: by far too long a part is not encoded to find that out."""
        return end - start <= 4 * (self.guess(start, self._tokens.max_tokens) - start)

    def guess(self, start: int, room: int) -> int:
        """The character at which ``room`` tokens from ``start`` on end, about, and the white space after them."""
        end = start + max(1, int(self._per_token * room))  # for a tokenizer that knows no characters
        if self._places:
            first = bisect_left(self._starts, start)
            last = min(len(self._places), first + max(1, room - self._extra)) - 1
            end = max(start + 1, self._places[last][1])
        return _after_space(self._text, end)
