"""A queue with one worker: jobs of all sessions are done one after another, and each knows how many come before it.

Answers come before details: nobody waits for what the page of somebody else adds to an answer that is there.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from core.errors import Mistake

Result = TypeVar("Result")
MOST_WAITING = 40
"""More than this would wait longer than anybody does."""


class Stopped(Exception):
    """Raised within a job that nobody wants any more, or whose time is up."""


class Ticket(Generic[Result]):
    """One job: its place in the queue, how far it is, and at last its result or a sentence that says why not.

    Only who holds the ticket sees the result; the queue forgets a job as soon as it is over.
    """

    def __init__(self, work: Callable[[Ticket[Result]], Result], seconds: float, detail: bool = False) -> None:
        self.detail = detail
        """Whether it adds to an answer that is there."""
        self.before = 0
        """Jobs that come first, as the queue counted last; Queue.before counts anew."""
        self.doing = ""
        """What is being done, in words, once it has begun."""
        self.fraction = 0.0
        self.result: Result | None = None
        self.problem = ""
        self.abandoned = False
        """Whether it was given up because its session had gone; who comes back may ask again."""
        self._work: Callable[[Ticket[Result]], Result] | None = work
        self._seconds = seconds
        self._deadline: float | None = None
        self._wanted = True
        self._over = threading.Event()
        self._ending = threading.Lock()

    @property
    def over(self) -> bool:
        """Whether there is a result or a problem. A job whose time is up is over, even if a batch still runs."""
        if not self._over.is_set() and self._deadline is not None and time.monotonic() > self._deadline:
            self._end(problem=self._late())
        return self._over.is_set()

    def wait(self, seconds: float) -> bool:
        """Waits for the end, at most so long; says whether it has come."""
        self._over.wait(seconds)
        return self.over

    def start_clock(self) -> None:
        """From here on the time limit counts: loading a model is no part of a document's time."""
        self._deadline = time.monotonic() + self._seconds

    def check(self, doing: str = "", fraction: float = 0.0) -> None:
        """Called by the work between its batches: ends it where it is no longer wanted."""
        self.doing, self.fraction = doing or self.doing, fraction
        if self.over or not self._wanted:
            raise Stopped

    def cancel(self, abandoned: bool = False) -> None:
        """Takes the job back; one at work ends with its batch."""
        self._wanted = False
        self.abandoned = self.abandoned or abandoned
        self._end(problem="It was cancelled.")

    def do(self) -> None:
        """The work itself, in the worker's thread; nothing that goes wrong in it leaves this method."""
        work = self._work
        if work is None or self.over:
            return
        try:
            self._end(result=work(self))
        except Stopped:
            self._end(problem=self._late())
        except Mistake as mistake:
            self._end(problem=str(mistake))
        except Exception as error:
            # The error's own words may quote the document: they stay out of the log.
            logging.getLogger(__name__).error("a job of the queue failed: %s", type(error).__name__)
            self._end(problem=f"It could not be embedded ({type(error).__name__}). Try again, or a shorter text.")

    def _end(self, result: Result | None = None, problem: str = "") -> None:
        """The first end counts: the worker's, or that of a page which sees that the time is up."""
        with self._ending:
            if not self._over.is_set():
                self.result, self.problem, self._work = result, problem, None
                self._over.set()

    def _late(self) -> str:
        return f"It took longer than {self._seconds:.0f} seconds and was stopped. Try a shorter text."


class Queue:
    """Answers, then details, each in the order in which they came, one at a time, in a thread of its own."""

    def __init__(self) -> None:
        self._waiting: deque[Ticket[Any]] = deque()
        self._at_work: Ticket[Any] | None = None
        self._changed = threading.Condition()
        self._worker: threading.Thread | None = None

    def submit(self, work: Callable[[Ticket[Result]], Result], seconds: float, detail: bool = False) -> Ticket[Result]:
        """Puts a job at the end of its kind; ``work`` is given its ticket, whose ``check`` it calls between batches."""
        ticket = Ticket(work, seconds, detail)
        with self._changed:
            self._count()
            place = sum(detail or not waiting.detail for waiting in self._waiting)
            if place >= MOST_WAITING:
                raise Mistake(f"{MOST_WAITING} documents are waiting to be embedded already. Try again in a minute.")
            self._waiting.insert(place, ticket)
            self._count()
            if self._worker is None or not self._worker.is_alive():
                self._worker = threading.Thread(target=self._serve, name="embedding", daemon=True)
                self._worker.start()
            self._changed.notify_all()
        return ticket

    def before(self, ticket: Ticket[Any]) -> int:
        """How many jobs come before this one, as of now; 0 for the one at work."""
        with self._changed:
            self._count()
        return ticket.before

    def length(self) -> int:
        """Jobs that wait or are at work."""
        with self._changed:
            self._count()
            return len(self._waiting) + (self._at_work is not None)

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._at_work = None
                self._count()
                while not self._waiting:
                    self._changed.wait()
                    self._count()
                self._at_work = self._waiting.popleft()
                self._count()
            self._at_work.do()

    def _count(self) -> None:
        """Tells every job how many come before it; those that were cancelled are none."""
        self._waiting = deque(ticket for ticket in self._waiting if not ticket.over)
        busy = self._at_work is not None
        for place, ticket in enumerate(self._waiting):
            ticket.before = place + busy
        if self._at_work is not None:
            self._at_work.before = 0
