"""The queue of the page that embeds: order, places, time limit, failures, and what one session sees of another."""

from __future__ import annotations

import gc
import logging
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from core.errors import Mistake
from pages.shared.queue import MOST_WAITING, Queue, Ticket

LONG = 60.0
SOON = 20.0
"""Seconds to wait for something that will come; no test asserts a time."""


class Gate:
    """A job that stands still until it is let go, and looks at its ticket as a batch would."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.begun, self.go = threading.Event(), threading.Event()

    def __call__(self, ticket: Ticket[str]) -> str:
        ticket.start_clock()
        self.begun.set()
        while not self.go.wait(0.01):
            ticket.check()
        return self.name


def until(true: Callable[[], bool]) -> bool:
    for _ in range(int(SOON / 0.01)):
        if true():
            return True
        time.sleep(0.01)
    return False


@pytest.fixture
def busy() -> tuple[Queue, Gate, Ticket[str]]:
    """A queue whose worker is at work."""
    queue, gate = Queue(), Gate("first")
    ticket = queue.submit(gate, LONG)
    assert gate.begun.wait(SOON)
    return queue, gate, ticket


def test_jobs_are_done_in_order_and_one_at_a_time() -> None:
    queue, at_work, order = Queue(), [0], []

    def work(number: int) -> Callable[[Ticket[int]], int]:
        def job(_: Ticket[int]) -> int:
            at_work[0] += 1
            assert at_work[0] == 1
            time.sleep(0.005)
            order.append(number)
            at_work[0] -= 1
            return number * number

        return job

    tickets = [queue.submit(work(number), LONG) for number in range(8)]
    assert all(ticket.wait(SOON) for ticket in tickets)
    assert order == list(range(8))
    assert [ticket.result for ticket in tickets] == [0, 1, 4, 9, 16, 25, 36, 49]
    assert not any(ticket.problem for ticket in tickets)


def test_everyone_sees_how_many_come_before(busy: tuple[Queue, Gate, Ticket[str]]) -> None:
    queue, gate, first = busy
    second, third = (queue.submit(lambda _: "x", LONG) for _ in range(2))
    assert [first.before, second.before, third.before] == [0, 1, 2]
    second.cancel()
    assert queue.before(third) == 1  # who was taken back counts no longer
    fourth = queue.submit(lambda _: "x", LONG)
    assert [third.before, fourth.before] == [1, 2]
    gate.go.set()
    assert first.wait(SOON)
    assert third.wait(SOON)
    assert fourth.wait(SOON)
    assert second.result is None
    assert second.problem == "It was cancelled."


def test_a_job_that_fails_costs_only_itself(caplog: pytest.LogCaptureFixture) -> None:
    queue = Queue()

    def breaks(_: Ticket[str]) -> str:
        raise RuntimeError("the secret words of a document")

    def refuses(_: Ticket[str]) -> str:
        raise Mistake("The model is not here. Fetch it.")

    with caplog.at_level(logging.DEBUG):
        broken, refused, fine = queue.submit(breaks, LONG), queue.submit(refuses, LONG), queue.submit(lambda _: 1, LONG)
        assert fine.wait(SOON)
    assert broken.problem == "It could not be embedded (RuntimeError). Try again, or a shorter text."
    assert refused.problem == "The model is not here. Fetch it."
    assert (broken.result, refused.result, fine.result) == (None, None, 1)
    assert "RuntimeError" in caplog.text
    assert "secret" not in caplog.text


def test_a_job_whose_time_is_up_is_stopped_and_the_next_one_is_done() -> None:
    queue, gate = Queue(), Gate()
    late = queue.submit(gate, 0.05)
    after = queue.submit(lambda _: "done", LONG)
    assert until(lambda: late.over)
    assert late.problem == "It took longer than 0 seconds and was stopped. Try a shorter text."
    assert after.wait(SOON)
    assert after.result == "done"


def test_who_waits_for_a_batch_that_does_not_end_is_told_when_the_time_is_up() -> None:
    queue, stuck, begun = Queue(), threading.Event(), threading.Event()

    def work(ticket: Ticket[str]) -> str:
        ticket.start_clock()
        begun.set()
        stuck.wait(SOON)  # never looks at its ticket
        return "too late"

    ticket = queue.submit(work, 0.05)
    assert begun.wait(SOON)
    assert until(lambda: ticket.over)
    assert "was stopped" in ticket.problem
    stuck.set()
    assert queue.submit(lambda _: 1, LONG).wait(SOON)
    assert ticket.result is None  # the first end counts


def test_the_clock_does_not_run_while_a_job_waits_or_loads_its_model(busy: tuple[Queue, Gate, Ticket[str]]) -> None:
    queue, gate, _ = busy
    loaded = threading.Event()

    def work(ticket: Ticket[str]) -> str:
        loaded.wait(SOON)
        ticket.check("Loading …")
        ticket.start_clock()
        ticket.check("Embedding …")
        return "there"

    waiting = queue.submit(work, 0.2)
    time.sleep(0.3)  # longer than its limit, in the queue
    gate.go.set()
    time.sleep(0.3)  # and again while it loads
    assert not waiting.over
    loaded.set()
    assert waiting.wait(SOON)
    assert waiting.result == "there"


def test_a_job_of_a_session_that_has_gone_is_taken_back(busy: tuple[Queue, Gate, Ticket[str]]) -> None:
    queue, gate, first = busy
    first.cancel(abandoned=True)
    assert first.over
    assert first.abandoned
    assert queue.submit(lambda _: 1, LONG).wait(SOON)  # the worker is free again: its batch looked at the ticket
    assert not gate.go.is_set()


def test_answers_come_before_details_and_are_not_refused_for_them(busy: tuple[Queue, Gate, Ticket[str]]) -> None:
    queue, gate, _ = busy
    order: list[str] = []
    details = [queue.submit(lambda _: order.append("detail"), LONG, detail=True) for _ in range(MOST_WAITING)]
    with pytest.raises(Mistake):
        queue.submit(lambda _: None, LONG, detail=True)
    answers = [queue.submit(lambda _: order.append("answer"), LONG) for _ in range(2)]
    assert [answers[0].before, answers[1].before, details[0].before] == [1, 2, 3]
    gate.go.set()
    assert all(ticket.wait(SOON) for ticket in (*answers, *details))
    assert order == ["answer"] * 2 + ["detail"] * MOST_WAITING


def test_a_queue_that_is_full_says_so_and_takes_more_when_somebody_leaves(
    busy: tuple[Queue, Gate, Ticket[str]],
) -> None:
    queue, gate, _ = busy
    waiting = [queue.submit(lambda _: "x", LONG) for _ in range(MOST_WAITING)]
    with pytest.raises(Mistake, match=r"40 documents are waiting .* Try again in a minute\."):
        queue.submit(lambda _: "x", LONG)
    waiting[7].cancel()
    last = queue.submit(lambda _: "x", LONG)
    assert last.before == MOST_WAITING
    gate.go.set()
    assert last.wait(SOON)


def test_the_queue_keeps_nothing_of_a_document() -> None:
    class Document(str):
        __slots__ = ("__weakref__",)

    queue = Queue()

    def submit(text: Document) -> Ticket[Any]:
        return queue.submit(lambda _: len(text), LONG)

    document = Document("a text of one session")
    gone = weakref.ref(document)
    ticket = submit(document)
    assert ticket.wait(SOON)
    assert ticket.result == 21
    del document
    assert until(lambda: gc.collect() >= 0 and gone() is None)
