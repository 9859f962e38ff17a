"""Parts for many hands: who is idle is given the next one, who dies is replaced, and what they held is given again."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from core.errors import Mistake
from core.model.embedder import ModelInfo
from precompute.engines.task import Task
from precompute.steps.embed.part_spec import Event, PartDone, Tell

_LOSSES = 6
"""Workers that one part may cost, and that may die in a row before any has a model: two more than any part needs."""


@dataclass(frozen=True)
class Dead:
    """A worker is no more."""

    how: str


@dataclass(frozen=True)
class Word:
    """What was heard of a worker: an event, its death, or that it cannot go on."""

    hand: Hashable
    said: Event | Dead | Mistake


class Crew(Protocol):
    """Workers somewhere; each tells of its loaded model first."""

    def hire(self) -> Hashable:
        """Starts a worker; it need not come up at once, nor ever."""
        ...

    def give(self, hand: Hashable, number: int) -> None: ...

    def hear(self) -> Iterable[Word]:
        """Waits for some words, but not for ever."""
        ...

    def dismiss(self, hand: Hashable) -> None: ...


def make_parts(task: Task, tell: Tell, crew: Crew, size: int) -> None:
    """Has all parts made by at most ``size`` workers; goes on with fewer where the others do not come up."""
    work = _Work(task, tell, crew)
    try:
        for _ in range(size):
            work.hire()
        while not work.is_done():
            for word in crew.hear():
                work.heard(word)
    finally:
        for hand in list(work.hands):
            crew.dismiss(hand)


class _Work:
    def __init__(self, task: Task, tell: Tell, crew: Crew) -> None:
        self._task, self._tell, self._crew = task, tell, crew
        self.hands: dict[Hashable, int | None] = {}
        """Everybody, with the part that they are at."""
        self._idle: deque[Hashable] = deque()
        self._again: deque[int] = deque()
        self._lost: Counter[int | None] = Counter()
        self._numbers: Iterator[int] | None = None
        self._all_given = False

    def hire(self) -> None:
        self.hands[self._crew.hire()] = None

    def is_done(self) -> bool:
        return self._all_given and not self._again and all(part is None for part in self.hands.values())

    def heard(self, word: Word) -> None:
        said = word.said
        if isinstance(said, Mistake):
            raise said
        if isinstance(said, Dead):
            self._replace(word.hand, said)
        elif isinstance(said, ModelInfo):
            self._lost[None] = 0
            if self._numbers is None:
                self._tell(said)
                self._numbers = self._task.reader.numbers()
            self._idle.append(word.hand)
        else:
            self._tell(said)
        if isinstance(said, PartDone):
            self.hands[word.hand] = None
            self._idle.append(word.hand)
        self._give()

    def _give(self) -> None:
        """Work to all who have none, as long as there is some; a part may come back from another, so that they stay."""
        while self._idle and (number := self._again.popleft() if self._again else self._next()) is not None:
            hand = self._idle.popleft()
            self.hands[hand] = number
            self._crew.give(hand, number)

    def _next(self) -> int | None:
        assert self._numbers is not None
        number = next(self._numbers, None)
        self._all_given = number is None
        return number

    def _replace(self, hand: Hashable, dead: Dead) -> None:
        part = self.hands.pop(hand)
        if hand in self._idle:
            self._idle.remove(hand)
        self._crew.dismiss(hand)
        self._lost[part] += 1
        if self._lost[part] >= _LOSSES:
            at = "before they had loaded a model" if part is None else f"at part {part + 1}"
            raise Mistake(
                f"{_LOSSES} workers have died {at}. {dead.how} See what they wrote above, and start the same command "
                "again: what is finished is kept."
            )
        self._tell(f"a worker has died, and is replaced. {dead.how}")
        if part is not None:
            self._again.append(part)
        self.hire()
