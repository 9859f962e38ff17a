"""Parts for several workers: an idle one gets the next part; one that dies is replaced and its part assigned again."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from core.errors import Mistake
from core.model.embedder import ModelInfo
from precompute.engines.task import EmbedTask
from precompute.steps.embed.part_spec import Event, OnEvent, PartDone

_LOSSES = 6
"""Workers that one part may cost, and that may die in a row before any has a model: two more than any part needs."""


@dataclass(frozen=True)
class WorkerDied:
    """A worker is no more."""

    how: str


@dataclass(frozen=True)
class WorkerMessage:
    """What a worker reports: its loaded model, an event, its death, or that it cannot go on."""

    worker: Hashable
    content: ModelInfo | Event | WorkerDied | Mistake


class WorkerPool(Protocol):
    """Workers somewhere; each reports its loaded model first."""

    def start(self) -> Hashable:
        """Starts a worker; it need not come up at once, nor ever."""
        ...

    def assign(self, worker: Hashable, number: int) -> None: ...

    def receive(self) -> Iterable[WorkerMessage]:
        """Waits for some messages, but not for ever."""
        ...

    def stop(self, worker: Hashable) -> None: ...


def make_parts(task: EmbedTask, on_event: OnEvent, pool: WorkerPool, size: int) -> None:
    """Has all parts made by at most ``size`` workers; goes on with fewer where the others do not come up."""
    work = _Schedule(task, on_event, pool)
    try:
        for _ in range(size):
            work.start()
        while not work.is_done():
            for message in pool.receive():
                work.handle(message)
    finally:
        for worker in list(work.workers):
            pool.stop(worker)


class _Schedule:
    def __init__(self, task: EmbedTask, on_event: OnEvent, pool: WorkerPool) -> None:
        self._task, self._on_event, self._pool = task, on_event, pool
        self.workers: dict[Hashable, int | None] = {}
        """Everybody, with the part that they are at."""
        self._idle: deque[Hashable] = deque()
        self._again: deque[int] = deque()
        self._lost: Counter[int | None] = Counter()
        self._numbers: Iterator[int] | None = None
        self._all_given = False

    def start(self) -> None:
        self.workers[self._pool.start()] = None

    def is_done(self) -> bool:
        return self._all_given and not self._again and all(part is None for part in self.workers.values())

    def handle(self, message: WorkerMessage) -> None:
        content = message.content
        if isinstance(content, Mistake):
            raise content
        if isinstance(content, WorkerDied):
            self._replace(message.worker, content)
        elif isinstance(content, ModelInfo):
            self._lost[None] = 0
            if self._numbers is None:
                self._task.begin(content)
                self._numbers = self._task.reader.numbers()
            self._idle.append(message.worker)
        else:
            self._on_event(content)
        if isinstance(content, PartDone):
            self.workers[message.worker] = None
            self._idle.append(message.worker)
        self._give()

    def _give(self) -> None:
        """Work to all who have none, as long as there is some; a part may come back from another, so that they stay."""
        while self._idle and (number := self._again.popleft() if self._again else self._next()) is not None:
            worker = self._idle.popleft()
            self.workers[worker] = number
            self._pool.assign(worker, number)

    def _next(self) -> int | None:
        assert self._numbers is not None
        number = next(self._numbers, None)
        self._all_given = number is None
        return number

    def _replace(self, worker: Hashable, dead: WorkerDied) -> None:
        part = self.workers.pop(worker)
        if worker in self._idle:
            self._idle.remove(worker)
        self._pool.stop(worker)
        self._lost[part] += 1
        if self._lost[part] >= _LOSSES:
            at = "before they had loaded a model" if part is None else f"at part {part + 1}"
            raise Mistake(
                f"{_LOSSES} workers have died {at}. {dead.how} Check their output above, then start the same command "
                "again: finished parts are kept."
            )
        self._on_event(f"a worker died and is being replaced. {dead.how}")
        if part is not None:
            self._again.append(part)
        self.start()
