"""Paid answers of a cache in an object store: fetched before anybody is asked, and put there every minute meanwhile."""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from core.errors import Mistake, RemoteMistake
from core.remote.mirror import Mirror, mirror_at
from precompute.labelling.answers import Answers

ANSWERS = "answers.sqlite"
"""In the cache, for all runs: nobody pays for the same answer twice."""
EVERY = 60.0
"""Seconds of answers that are lost at most with a machine; a kill loses none."""
# What was paid for on either side stays; whoever has asked more often about a document knows more about it.
_MERGE = """
INSERT INTO main.answers SELECT * FROM theirs.answers WHERE true ON CONFLICT (key) DO UPDATE SET
    topic = excluded.topic, confidence = excluded.confidence, reason = excluded.reason, model = excluded.model,
    prompt_tokens = excluded.prompt_tokens, completion_tokens = excluded.completion_tokens, cost = excluded.cost,
    paid = excluded.paid, final = excluded.final
WHERE excluded.paid > answers.paid
"""


@contextlib.contextmanager
def answers_at(cache: Path) -> Iterator[Answers]:
    """The store of paid answers of a cache, wherever it lies."""
    mirror = mirror_at(cache)
    if mirror is None:
        with Answers(cache / ANSWERS) as answers:
            yield answers
        return
    with Answers(cache / ANSWERS) as answers:
        there = _There(mirror, answers)
        there.fetch()
        ended = threading.Event()
        keeping = threading.Thread(target=there.keep, args=(ended,), daemon=True)
        keeping.start()
        try:
            yield answers
        except BaseException:
            ended.set()
            keeping.join()
            with contextlib.suppress(Mistake):  # what is told is why the work ended; they are here, and come next time
                there.put()
            raise
        ended.set()
        keeping.join()
        there.put()


class _There:
    """The copy in the object store: one file, replaced whole. Two machines that put at once: the next put has both."""

    def __init__(self, mirror: Mirror, answers: Answers) -> None:
        self._mirror, self._answers = mirror, answers
        self._seen = ""
        self._put: object = None

    def fetch(self) -> None:
        """Adds what the store has and this machine has not; open batches only where there is nothing here yet."""
        found = self._mirror.store.head(ANSWERS)
        if found is None or found.sha256 == self._seen:
            return
        with tempfile.TemporaryDirectory(dir=self._mirror.folder) as folder, self._answers.told():
            path = Path(folder) / ANSWERS
            got = self._mirror.store.fetch(ANSWERS, path)
            with Answers(path):  # another program's database is refused
                pass
            with contextlib.closing(self._connect()) as connection:
                connection.execute("ATTACH ? AS theirs", (str(path),))
                fresh = not connection.execute("SELECT count(*) FROM main.answers").fetchone()[0]
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(_MERGE)
                for table in ("batches", "batch_keys") if fresh else ():
                    connection.execute(f"INSERT OR IGNORE INTO main.{table} SELECT * FROM theirs.{table}")
                connection.execute("COMMIT")
                if _stamp(connection, "main") == (same := _stamp(connection, "theirs")):
                    self._put = same
            self._seen = got.sha256

    def put(self) -> None:
        """Where there is something new; after what another machine has put there was added."""
        with self._answers.told(), contextlib.closing(self._connect()) as connection:
            if _stamp(connection) == self._put:
                return
        self.fetch()
        with tempfile.TemporaryDirectory(dir=self._mirror.folder) as folder, self._answers.told():
            path = Path(folder) / ANSWERS
            with contextlib.closing(self._connect()) as here, contextlib.closing(sqlite3.connect(path)) as copy:
                here.backup(copy)
                stamp = _stamp(copy)
            self._seen = self._mirror.store.put(ANSWERS, path).sha256
        self._put = stamp

    def keep(self, ended: threading.Event) -> None:
        while not ended.wait(EVERY):
            with contextlib.suppress(RemoteMistake):  # the next time, or at the end
                self.put()

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._answers.path, timeout=30.0, isolation_level=None)


def _stamp(connection: sqlite3.Connection, database: str = "main") -> tuple[int, int]:
    """Changes with every answer that is paid for, and every batch that is sent or collected."""
    paid, batches = f"SELECT coalesce(sum(paid), 0) FROM {database}.answers", f"SELECT count(*) FROM {database}.batches"
    return tuple(int(connection.execute(query).fetchone()[0]) for query in (paid, batches))  # type: ignore[return-value]
