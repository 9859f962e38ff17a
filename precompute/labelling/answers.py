"""The store of paid answers: one SQLite file for all runs; an answer is on the disk before anything goes on."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from core.errors import Mistake
from precompute.labelling.endpoint import other_server
from precompute.labelling.prompt import PROMPT_VERSION

_SCHEMA_VERSION = 1
_APPLICATION = 0x48655363  # "HeSc": another program's database is not written to
PATIENCE = 30.0
"""Seconds to wait for another process that is writing."""
_TABLES = (
    """
    CREATE TABLE IF NOT EXISTS answers (
        key TEXT PRIMARY KEY, topic TEXT, confidence REAL, reason TEXT, model TEXT NOT NULL,
        prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, cost REAL,
        paid INTEGER NOT NULL, final INTEGER NOT NULL
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE IF NOT EXISTS batches (
        submission TEXT PRIMARY KEY, id TEXT UNIQUE, scope TEXT NOT NULL, requests INTEGER NOT NULL,
        reserved REAL NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS batch_keys (
        key TEXT PRIMARY KEY, submission TEXT, attempt INTEGER NOT NULL
    ) WITHOUT ROWID
    """,
    "CREATE INDEX IF NOT EXISTS batch_keys_by_submission ON batch_keys (submission)",
)
# A label that is there stays; what was paid adds up, whoever paid.
_PUT = """
INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET
    topic = coalesce(topic, excluded.topic),
    confidence = CASE WHEN topic IS NULL THEN excluded.confidence ELSE confidence END,
    reason = CASE WHEN topic IS NULL THEN excluded.reason ELSE reason END,
    model = CASE WHEN topic IS NULL THEN excluded.model ELSE model END,
    prompt_tokens = prompt_tokens + excluded.prompt_tokens,
    completion_tokens = completion_tokens + excluded.completion_tokens,
    cost = cost + excluded.cost,
    paid = paid + excluded.paid,
    final = max(final, excluded.final)
"""


@dataclass(frozen=True)
class Answer:
    topic: str | None
    confidence: float | None
    reason: str | None
    """Why there is no topic; None where there is one."""
    model: str
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    """US dollars; None where the price is not known."""


def key_of(excerpt: str, topics: Sequence[str], model: str, base_url: str | None, aspect: Sequence[str] = ()) -> str:
    """What an answer depends on, as 64 hexadecimal digits; ``aspect`` is its name and definitions, if not the topic.

    A server that is not OpenAI's counts too: a local model under the name of gpt-4o must not pass for the real one.
    """
    digest = hashlib.sha256()
    for field in (PROMPT_VERSION, model, other_server(base_url) or "", str(len(topics)), *topics, excerpt, *aspect):
        data = field.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data))  # so that no two lists of fields look the same side by side
        digest.update(data)
    return digest.hexdigest()


class AnswerStore:
    """A context manager over the file; one thread may write while another reads.

    Reads and writes have a connection each: a write that waits for the disk, or for another process, holds no read up.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self.told():
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise Mistake(
                    f"The folder '{path.parent}' cannot be created ({error.strerror}). Give another one with --cache."
                ) from error
            self.connection = self._connect()
            self._reading = self._connect()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        try:
            _keep_a_log(connection)
            connection.execute("PRAGMA synchronous = FULL")
            self._set_up(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _set_up(self, connection: sqlite3.Connection) -> None:
        if _written_by(connection) == (_APPLICATION, _SCHEMA_VERSION):
            return
        # Looked at again behind the lock: between the two, another job may have set up the same new file.
        connection.execute("BEGIN IMMEDIATE")
        application, version = _written_by(connection)
        if application not in (0, _APPLICATION) or version > _SCHEMA_VERSION:
            raise Mistake(
                f"'{self.path}' was not written by this version of Headscope. Move it elsewhere, or use that version."
            )
        if application == 0 and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise Mistake(f"'{self.path}' is another program's database. Move it elsewhere.")
        for statement in _TABLES:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        connection.execute("COMMIT")

    def get(self, key: str) -> Answer | None:
        """The answer, if it is final; its tokens and its cost are those of all tries together."""
        with self.told():
            row = self._reading.execute(
                "SELECT topic, confidence, reason, model, prompt_tokens, completion_tokens, cost FROM answers "
                "WHERE key = ? AND final",
                (key,),
            ).fetchone()
        return Answer(*row) if row else None

    def put(self, key: str, answer: Answer, *, final: bool = True, paid: bool = True) -> None:
        """Stores one answer, whose tokens and cost are its own; it is on the disk when this returns.

        ``final=False``: a bad answer, paid for, after which the document is asked about once more.
        """
        row = (
            key,
            answer.topic,
            answer.confidence,
            answer.reason,
            answer.model,
            answer.prompt_tokens,
            answer.completion_tokens,
            answer.cost,
            int(paid),
            int(final),
        )
        with self.told():
            self.connection.execute(_PUT, row)

    def tries(self, key: str) -> int:
        """How many answers have been paid for this key, good or bad."""
        with self.told():
            row = self._reading.execute("SELECT paid FROM answers WHERE key = ?", (key,)).fetchone()
        return int(row[0]) if row else 0

    def count(self) -> int:
        """Final answers."""
        with self.told():
            return int(self._reading.execute("SELECT count(*) FROM answers WHERE final").fetchone()[0])

    def paid(self) -> int:
        """Answers that were paid for, bad ones included."""
        with self.told():
            return int(self._reading.execute("SELECT coalesce(sum(paid), 0) FROM answers").fetchone()[0])

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """What is written inside is written as one, or not at all."""
        with self.told():
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                with contextlib.suppress(sqlite3.Error):  # SQLite has done it already after some errors
                    self.connection.execute("ROLLBACK")
                raise
            self.connection.execute("COMMIT")

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """SQLite's errors as sentences with a remedy."""
        try:
            yield
        except sqlite3.Error as error:
            raise Mistake(self._sentence(error)) from error

    def _sentence(self, error: sqlite3.Error) -> str:
        said = str(error)
        for words, remedy in _REMEDIES.items():
            if words in said:
                return f"The file of paid answers '{self.path}' {remedy}"
        return f"The file of paid answers '{self.path}' cannot be used ({said}). Give another cache with --cache."

    def close(self) -> None:
        self._reading.close()
        self.connection.close()

    def __enter__(self) -> AnswerStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _keep_a_log(connection: sqlite3.Connection) -> None:
    """Write-ahead logging; two who switch a new file to it at once are told "locked" without the usual waiting."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
        time.sleep(0.01)


def _written_by(connection: sqlite3.Connection) -> tuple[int, int]:
    """The program, and the version of its tables."""
    application, version = (
        connection.execute(f"PRAGMA {field}").fetchone()[0] for field in ("application_id", "user_version")
    )
    return application, version


_DAMAGED = "is damaged. Restore a copy of it, or move it elsewhere: without it, every answer has to be paid for again."
_REMEDIES = {
    "locked": "is locked by another process. Wait until that has finished, then start again.",
    "readonly": "cannot be written. Make it writable, or give another cache with --cache.",
    "unable to open": "cannot be opened or created. Give a folder that can be written with --cache.",
    "full": "cannot grow: the disk is full. Free some space and start the same command again: paid answers are kept.",
    "malformed": _DAMAGED,
    "not a database": _DAMAGED,
    "disk I/O": "caused a disk error. Check the disk, then start the same command again.",
}
"""SQLite says what went wrong only in words (extended codes came with Python 3.11 for some of them)."""
