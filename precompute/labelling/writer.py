"""Storing answers while others are on their way: in a thread of its own, and all that wait in one write."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType

from precompute.labelling.answers import Answer, AnswerStore


@dataclass(frozen=True)
class _Put:
    key: str
    answer: Answer
    final: bool
    paid: bool
    stored: asyncio.Future[None]


class Writer:
    """An async context manager; on leaving it, everything is stored.

    A thread, for the disk may take a while, and another process that writes may take seconds, in which requests under
    way would time out. What arrives during one write goes into the next together: a disk that needs 5 ms to be sure
    would otherwise let no more than 200 answers a second through. Nobody goes on before the own answer is on the disk.
    """

    def __init__(self, answers: AnswerStore) -> None:
        self._answers = answers
        self._waiting: list[_Put] = []
        self._writing: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "answers")

    async def put(self, key: str, answer: Answer, final: bool, paid: bool = True) -> None:
        """Returns when the answer is on the disk. It gets there even if the task that waits for it is cancelled."""
        loop = asyncio.get_running_loop()
        put = _Put(key, answer, final, paid, loop.create_future())
        self._waiting.append(put)
        if self._writing is None:
            self._writing = loop.create_task(self._write())
        await asyncio.shield(put.stored)

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            group, self._waiting = self._waiting, []
            try:
                await loop.run_in_executor(self._thread, self._store, group)
            except Exception as error:
                for put in group:
                    put.stored.set_exception(error)
            else:
                for put in group:
                    put.stored.set_result(None)
        self._writing = None

    def _store(self, group: list[_Put]) -> None:
        with self._answers.together():
            for put in group:
                self._answers.put(put.key, put.answer, final=put.final, paid=put.paid)

    async def __aenter__(self) -> Writer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writing is not None:
            await self._writing
        self._thread.shutdown()
