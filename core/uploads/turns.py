"""Who parses when: a few files at once in the whole app, the others in the order in which they came."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from core.errors import Mistake

AT_ONCE = 2
"""Parsers at a time, of all sessions together; with their memory (core/uploads/apart.py) the app's whole budget."""
MOST_WAITING = 40
"""More than this would wait longer than anybody does."""
LOOK = 0.5
"""Seconds between two looks at the line, or at a parser: as often is told who waits."""
Watch = Callable[[int], None]
"""Is told again and again how many files come first, 0 from its turn on; what it raises ends the wait or the work."""


class Turns:
    """A line whose first ``at_once`` members are at work."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._line: list[object] = []
        self._changed = threading.Condition()

    @contextmanager
    def turn(self, watch: Watch) -> Iterator[None]:
        """Waits at the end of the line until it is this one's turn; the place is free again at the end of the block."""
        mine = object()
        with self._changed:
            if len(self._line) >= self._at_once + MOST_WAITING:
                raise Mistake(f"{MOST_WAITING} files are waiting to be read already. Try again in a minute.")
            self._line.append(mine)
        try:
            while before := self._before(mine):
                watch(before)
                with self._changed:
                    self._changed.wait_for(lambda: self._before(mine) < before, LOOK)
            yield
        finally:
            with self._changed:
                self._line.remove(mine)
                self._changed.notify_all()

    def _before(self, mine: object) -> int:
        with self._changed:
            return max(0, self._line.index(mine) - self._at_once + 1)
