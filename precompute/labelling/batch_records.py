"""Which batches are under way and whose answers they will bring, in the store, so that a restart goes on with them."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from precompute.labelling.answers import Answer, AnswerStore
from precompute.labelling.config import AskConfig
from precompute.labelling.endpoint import other_server

ATTEMPTS = 2
"""How often a question goes into a batch, before it counts as failed."""


@dataclass(frozen=True)
class Batch:
    submission: str
    """Our own name for it, given before the server gives its own."""
    id: str | None
    """The server's; None while it is not known whether the server has it."""
    requests: int
    reserved: float
    """US dollars that it costs at most, by estimate."""


class BatchRecords:
    def __init__(self, answers: AnswerStore, config: AskConfig) -> None:
        self._answers = answers
        self._scope = hashlib.sha256(repr((config.model, other_server(config.base_url))).encode()).hexdigest()

    def open(self) -> list[Batch]:
        """Batches of this model at this server that have not been collected."""
        rows = self._all(
            "SELECT submission, id, requests, reserved FROM batches WHERE scope = ? ORDER BY rowid", self._scope
        )
        return [Batch(*row) for row in rows]

    def waits(self, key: str) -> bool:
        """Whether a batch under way will answer this."""
        return bool(self._all("SELECT 1 FROM batch_keys WHERE key = ? AND submission IS NOT NULL", key))

    def waits_in(self, submission: str, key: str) -> bool:
        return bool(self._all("SELECT 1 FROM batch_keys WHERE key = ? AND submission = ?", key, submission))

    def attempts(self, key: str) -> int:
        rows = self._all("SELECT attempt FROM batch_keys WHERE key = ?", key)
        return int(rows[0][0]) if rows else 0

    def begin(self, keys: Sequence[str], reserved: float) -> str:
        """Notes a batch before the server is told of it; returns its submission's name."""
        submission = uuid.uuid4().hex
        with self._answers.together():
            connection = self._answers.connection
            connection.execute(
                "INSERT INTO batches VALUES (?, NULL, ?, ?, ?)", (submission, self._scope, len(keys), reserved)
            )
            connection.executemany(
                "INSERT INTO batch_keys VALUES (?, ?, 1) ON CONFLICT (key) DO UPDATE SET "
                "submission = excluded.submission, attempt = attempt + 1",
                ((key, submission) for key in keys),
            )
        return submission

    def named(self, submission: str, batch_id: str) -> None:
        """The server has it, under this name."""
        self._run("UPDATE batches SET id = ? WHERE submission = ?", batch_id, submission)

    def forget(self, submission: str) -> None:
        """The server has never had it."""
        with self._answers.together():
            self._run("DELETE FROM batch_keys WHERE submission = ?", submission)
            self._run("DELETE FROM batches WHERE submission = ?", submission)

    def answered(self, key: str, answer: Answer, final: bool, paid: bool = True) -> None:
        """Stores an answer and takes its key off the list in one: a file that is read twice is counted once.

        To be called within ``AnswerStore.together``.
        """
        self._answers.put(key, answer, final=final, paid=paid)
        self._run("DELETE FROM batch_keys WHERE key = ?", key)

    def ended(self, submission: str) -> int:
        """The batch is collected; how many of its questions had no answer, and wait for another attempt."""
        with self._answers.together():
            rows = self._all("SELECT count(*) FROM batch_keys WHERE submission = ?", submission)
            self._run("UPDATE batch_keys SET submission = NULL WHERE submission = ?", submission)
            self._run("DELETE FROM batches WHERE submission = ?", submission)
        return int(rows[0][0])

    def start_anew(self) -> None:
        """What had no answer in an earlier start gets all its attempts again."""
        self._run("DELETE FROM batch_keys WHERE submission IS NULL")

    def _all(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self._answers.told():
            return self._answers.connection.execute(statement, values).fetchall()

    def _run(self, statement: str, *values: object) -> None:
        with self._answers.told():
            self._answers.connection.execute(statement, values)
