"""A window of questions under way, over a stream of texts of which only those under way are held."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from core.errors import Mistake
from precompute.labelling.answers import Answer, AnswerStore
from precompute.labelling.client import Client, Unanswered, Unlabellable
from precompute.labelling.config import AskConfig
from precompute.labelling.counts import AskCounts, Purse
from precompute.labelling.reading import EMPTY, unlabellable, verdict
from precompute.labelling.request import AskedQuestion, question
from precompute.labelling.writer import Writer

GRACE = 3.0
"""Seconds after Ctrl-C in which answers that are under way, and will be billed, may still arrive."""
SILENT = 20
"""After so many documents without an answer in a row, the server counts as gone."""
_LOOK = 0.05
"""Seconds between two looks into the purse."""
_BREATH = 50
"""Documents found in the store before requests under way get their turn."""


@dataclass
class _Flight:
    """A question under way."""

    asked: AskedQuestion
    promised: float
    """US dollars set aside for its answer."""
    documents: int = 1
    """How many have this very text: they wait for one answer, and pay once."""


class Window:
    """At most ``concurrency`` questions under way; texts are read one by one as room comes free."""

    def __init__(
        self,
        config: AskConfig,
        answers: AnswerStore,
        counts: AskCounts,
        purse: Purse,
        client: Client,
        writer: Writer,
    ) -> None:
        self._config, self._answers, self._counts = config, answers, counts
        self._purse, self._client, self._writer = purse, client, writer
        self._flights: dict[str, _Flight] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._error: Exception | None = None
        self._answered, self._silent, self._last_fault = False, 0, ""
        self._poor = 0
        """How many wait for money, to ask once more."""

    async def feed(self, texts: Iterable[str]) -> None:
        """Puts every text on its way, until all are or something stops the asking."""
        for number, text in enumerate(texts):
            if number % _BREATH == 0:
                await asyncio.sleep(0)
            asked = question(text, self._config)
            if (found := self._answers.get(asked.key)) is not None:
                self._counts.done(found, reused=1)
            elif asked.key in self._flights:
                self._flights[asked.key].documents += 1
            elif asked.is_empty:
                answer = unlabellable(EMPTY, self._config)
                await self._writer.put(asked.key, answer, final=True, paid=False)
                self._counts.done(answer, reused=1)
            elif not await self._start(asked):
                return

    async def _start(self, asked: AskedQuestion) -> bool:
        """Puts one question on its way as soon as there is room and money; False if the asking is over."""
        while len(self._tasks) >= self._config.concurrency:
            await self._one_less()
        price = self._purse.price(asked, again=self._answers.tries(asked.key) > 0)
        # Answers that come back may have cost less than was set aside for them: only an empty window is out of money.
        while not self._over and not self._purse.promise(price):
            if self._tasks:
                await self._one_less()
            else:
                self._counts.stopped = self._purse.sentence
        if self._over:
            return False
        self._flights[asked.key] = flight = _Flight(asked, price)
        task = asyncio.create_task(self._fly(flight))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def _fly(self, flight: _Flight) -> None:
        answer, counted = None, False
        try:
            answer = await self._answer(flight)
            counted = answer is not None
        except Unanswered as silence:
            counted = not self._client.closing
            self._not_heard(str(silence))
        except Exception as error:  # it ends the asking, whoever made it; the others' answers are kept
            self._stop(error)
        finally:
            self._purse.release(flight.promised)
            del self._flights[flight.asked.key]
        if counted:
            self._counts.done(answer, flight.documents, reused=flight.documents - 1 if answer else 0)

    async def _answer(self, flight: _Flight) -> Answer | None:
        """A topic, or the reason why there is none; None if the asking ends between a bad answer and the next one.

        Each answer is on the disk before anything else happens to it.
        """
        asked, key = flight.asked, flight.asked.key
        paid = self._answers.tries(key)
        while True:
            try:
                reply = await self._client.complete(asked, again=paid > 0)
            except Unlabellable as refused:
                self._heard()
                answer = unlabellable(str(refused), self._config)
                await self._writer.put(key, answer, final=True, paid=False)
                return answer
            self._heard()
            found = verdict(reply, self._config, self._client.secret, asked.tokens, paid)
            await self._writer.put(key, found.answer, found.final)
            self._counts.paid(found.answer)
            self._purse.learn(asked, found.answer.prompt_tokens)
            paid += 1
            if found.final:
                return found.answer
            if not await self._promise_again(flight):
                return None

    async def _promise_again(self, flight: _Flight) -> bool:
        """Sets aside what a second answer costs, in place of what the first one has; False if the asking is over."""
        self._purse.release(flight.promised)
        flight.promised = 0.0
        price = self._purse.price(flight.asked, again=True)
        self._poor += 1
        try:
            while not self._client.closing and not self._over:
                if self._purse.promise(price):
                    flight.promised = price
                    return True
                if self._poor == len(self._tasks):  # nobody is under way who could leave something over
                    self._counts.stopped = self._purse.sentence
                else:
                    await self._client.idly(asyncio.sleep(_LOOK))
        finally:
            self._poor -= 1
        return False

    def _heard(self) -> None:
        self._answered, self._silent = True, 0

    def _not_heard(self, fault: str) -> None:
        self._silent, self._last_fault = self._silent + 1, fault
        # A server that has answered before may be away for a moment, in which the whole window fails together.
        enough = max(SILENT, 2 * self._config.concurrency) if self._answered else SILENT
        if self._silent >= enough and not self._client.closing:
            self._stop(self._gone())

    def _gone(self) -> Mistake:
        return Mistake(
            f"The last {self._silent} documents had no answer. {self._last_fault} Check the server and the "
            "connection, then start the same command again: what has been paid for is kept."
        )

    def _stop(self, error: Exception) -> None:
        """The first error ends the asking; what is under way may still come in, but nothing is tried again."""
        self._error = self._error or error
        self._client.closing = True

    @property
    def _over(self) -> bool:
        return self._error is not None or self._counts.stopped is not None

    async def _one_less(self) -> None:
        await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)

    async def settle(self, grace: float | None = None) -> None:
        """Waits for what is under way: after Ctrl-C for ``grace`` seconds, and without trying anything again."""
        loop = asyncio.get_running_loop()
        end = None if grace is None else loop.time() + grace
        self._client.closing |= grace is not None
        while self._tasks and (end is None or loop.time() < end):
            if self._client.closing:
                for task in self._tasks & self._client.idle:
                    task.cancel()
            left = None if end is None else max(0.0, end - loop.time())
            await asyncio.wait(self._tasks, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def check(self) -> None:
        """Raises what ended the asking; that nobody has answered anything, ever, is such a thing too."""
        if self._error is None and self._silent and not self._answered and not self._counts.labelled:
            self._error = self._gone()
        if self._error is not None:
            raise self._error
