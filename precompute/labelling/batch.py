"""Asking by the Batch API: half the price, within a day; batches under way are found again after a restart."""

from __future__ import annotations

import io
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import chain, islice

from core.errors import Mistake
from precompute.labelling.answers import AnswerStore
from precompute.labelling.ask import ask
from precompute.labelling.batch_client import ENDED, BatchClient, State
from precompute.labelling.batch_files import BatchChunk, Line, line_of, read_lines
from precompute.labelling.batch_records import ATTEMPTS, Batch, BatchRecords
from precompute.labelling.config import AskConfig, Tally
from precompute.labelling.counts import AskCounts, Purse
from precompute.labelling.faults import about_the_document
from precompute.labelling.reading import EMPTY, unlabellable, verdict
from precompute.labelling.request import first_dialect, longest_prompt, question, simpler

TOGETHER = 500
"""Answers in one write: a batch's file can be fetched again, so that they need not be on the disk one by one."""


def ask_batch(
    texts_factory: Callable[[], Iterable[str]],
    documents: int,
    config: AskConfig,
    answers: AnswerStore,
    show: Callable[[Tally], None],
    poll_seconds: float = 30.0,
) -> Tally:
    """Submits, waits, collects. What a batch left unanswered goes into one more; bad answers are asked for again one by
    one, as they are few and another batch may take another day.

    Ctrl-C at any time: the batches go on at the server, and the next start collects them.
    """
    run = _BatchRun(texts_factory, documents, config, answers, show)
    try:
        return run.go(poll_seconds)
    finally:
        run.close()


def waiting(texts: Iterable[str], config: AskConfig, answers: AnswerStore) -> int:
    """How many texts a batch under way will answer: asked about singly now, they would be paid for twice."""
    records = BatchRecords(answers, config)
    if not records.open():
        return 0
    return sum(records.waits(question(text, config).key) for text in texts)


class _BatchRun:
    def __init__(
        self,
        texts_factory: Callable[[], Iterable[str]],
        documents: int,
        config: AskConfig,
        answers: AnswerStore,
        show: Callable[[Tally], None],
    ) -> None:
        self._texts, self._config, self._answers, self._show = texts_factory, config, answers, show
        self._counts = AskCounts(documents, config, show)
        self._purse = Purse(config, self._counts, batch=True)
        self._records = BatchRecords(answers, config)
        self._client = BatchClient(config)
        self._dialect = first_dialect(config)
        self._trouble, self._left = "", 0

    def close(self) -> None:
        self._client.close()

    def go(self, poll_seconds: float) -> Tally:
        self._records.start_anew()
        self._find_lost()
        for batch in self._records.open():
            self._purse.set_aside(batch.reserved)
        for attempt in range(ATTEMPTS):
            if attempt and not self._left:
                break
            self._submit(first=attempt == 0)
            while self._records.open():
                self._poll()
                if self._records.open():
                    time.sleep(poll_seconds)
        self._ask_again()
        return self._final()

    def _find_lost(self) -> None:
        """Batches that were being made when the process died: the server has them, or they never came to be."""
        for batch in self._records.open():
            if batch.id is None:
                found = self._client.find(batch.submission)
                if found is None:
                    self._records.forget(batch.submission)
                else:
                    self._records.named(batch.submission, found)

    def _submit(self, first: bool) -> None:
        """Puts every question into a batch that has no answer, waits in no batch, and has attempts left."""
        with tempfile.TemporaryFile() as file:
            chunk = BatchChunk(file)
            for text in self._texts():
                asked = question(text, self._config)
                if (found := self._answers.get(asked.key)) is not None:
                    if first:
                        self._counts.done(found, reused=1)
                elif asked.is_empty:
                    self._answers.put(asked.key, unlabellable(EMPTY, self._config), paid=False)
                elif self._counts.stopped is None and self._is_new(asked.key) and asked.key not in chunk.keys:
                    line = line_of(asked, self._config, self._dialect)
                    if not chunk.takes(line):
                        self._send(chunk)
                    price = self._purse.price(asked)
                    if self._purse.promise(price):
                        chunk.add(asked.key, line, price)
                    else:
                        self._counts.stopped = self._purse.sentence
            if chunk.keys:
                self._send(chunk)

    def _is_new(self, key: str) -> bool:
        return not self._records.waits(key) and not self._answers.tries(key) and self._records.attempts(key) < ATTEMPTS

    def _send(self, chunk: BatchChunk) -> None:
        """The batch is noted before it is made, and its id right after: killed in between, it is found by our name."""
        uploaded = self._client.upload(chunk.file)
        submission = self._records.begin(list(chunk.keys), chunk.reserved)
        self._records.named(submission, self._client.create(uploaded, submission))
        chunk.clear()

    def _poll(self) -> None:
        """Looks at every batch once, and collects those that are over."""
        under_way = 0
        for batch in self._records.open():
            assert batch.id is not None
            state = self._client.state(batch.id)
            if state.status in ENDED:
                self._collect(batch, state)
            else:
                under_way += state.finished
        tally = self._counts.tally()
        self._show(replace(tally, done=min(tally.documents, tally.done + under_way)))

    def _collect(self, batch: Batch, state: State) -> None:
        for file_id in filter(None, (state.output_file, state.error_file)):
            with tempfile.TemporaryFile() as file:
                self._client.fetch(file_id, file)
                lines = read_lines(io.TextIOWrapper(file, encoding="utf-8", errors="replace"))
                while group := list(islice(lines, TOGETHER)):
                    with self._answers.together():
                        for line in group:
                            self._take(batch, line)
        left = self._records.ended(batch.submission)
        self._left += left
        self._purse.release(batch.reserved)
        if left and state.status != "completed":
            self._trouble = f"The batch {batch.id} was {state.status}" + (f": {state.message}" if state.message else "")

    def _take(self, batch: Batch, line: Line) -> None:
        """Stores what one line says; what it leaves open waits for another attempt."""
        if not self._records.waits_in(batch.submission, line.key):
            return  # taken before, when this file was read the first time; or not ours
        secret, config = self._client.secret, self._config
        if line.reply is not None:
            found = verdict(line.reply, config, secret, longest_prompt(config), paid_before=0, batch=True)
            self._records.answered(line.key, found.answer, found.final)
            self._counts.paid(found.answer)
            if found.final:
                self._counts.done(found.answer)
            return
        said = secret.clean(line.error.get("message") or line.error.get("code") or "no reason given")
        complaint = " ".join(str(line.error.get(name)) for name in ("code", "type", "param", "message")).lower()
        if line.status in (400, 413, 422):
            if (reason := about_the_document(complaint)) is not None:
                self._records.answered(line.key, unlabellable(f"{reason}: {said}", config), final=True, paid=False)
                return
            self._dialect = simpler(self._dialect, complaint) or self._dialect
        self._trouble = f"Requests of the batch {batch.id} had no answer: {said}"

    def _ask_again(self) -> None:
        """Documents whose answer in a batch was bad have their second chance, at the full price."""
        bad = (text for text in self._texts() if self._is_bad(text))
        if (first := next(bad, None)) is None:
            return
        before = self._counts.tally()
        limit = self._config.max_cost
        left = None if limit is None else max(0.0, limit - (before.spent or 0.0))
        after = ask(
            chain([first], bad),
            before.documents,
            replace(self._config, max_cost=left),
            self._answers,
            lambda tally: self._show(_both(before, tally)),
        )
        both = _both(before, after)
        self._counts.spent, self._counts.stopped = both.spent, both.stopped
        self._counts.prompt_tokens, self._counts.completion_tokens = both.prompt_tokens, both.completion_tokens

    def _is_bad(self, text: str) -> bool:
        key = question(text, self._config).key
        return self._answers.tries(key) > 0 and self._answers.get(key) is None

    def _final(self) -> Tally:
        """Counted by document: while batches come in, only different texts can be counted."""
        labelled = failed = unanswered = 0
        for text in self._texts():
            key = question(text, self._config).key
            found = self._answers.get(key)
            labelled += found is not None and found.topic is not None
            failed += found is not None and found.topic is None
            unanswered += found is None and (self._records.attempts(key) > 0 or self._answers.tries(key) > 0)
        self._counts.labelled, self._counts.failed = labelled, failed + unanswered
        if unanswered and self._trouble:
            sentence = f"{self._trouble.rstrip('.')}."
            if not labelled and not failed:
                raise Mistake(f"{sentence} No document was answered. Fix this, then start again.")
            self._counts.stopped = self._counts.stopped or sentence
        self._counts.show(now=True)
        return self._counts.tally()


def _both(before: Tally, after: Tally) -> Tally:
    return replace(
        before,
        done=before.done + after.done,
        labelled=before.labelled + after.labelled,
        failed=before.failed + after.failed,
        spent=None if before.spent is None or after.spent is None else before.spent + after.spent,
        prompt_tokens=before.prompt_tokens + after.prompt_tokens,
        completion_tokens=before.completion_tokens + after.completion_tokens,
        stopped=before.stopped or after.stopped,
    )
