"""Full-text search in a run's titles and texts: an SQLite FTS5 index that the job builds and the app only reads.

The index holds words and where they stand, not the texts: those are in documents.parquet already.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import sqlite3
import time
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.errors import Mistake
from core.search.beginnings import SHORTEST_BEGINNING, Branch, branches, pieces

MOST_FOUND = 20_000
"""Documents that one search gives; of a word that most documents have nobody reads all."""
MOST_SCANNED = 20_000
"""Documents that are looked through where a run has no index: more would keep a reader waiting."""
_AT_ONCE = 1_000
_TOKENS = "tokenize='unicode61 remove_diacritics 2'"
_TABLE = f"CREATE VIRTUAL TABLE words USING fts5(title, text, content='', columnsize=0, {_TOKENS})"
_BRANCHES = (
    "CREATE TABLE branches (beginning TEXT PRIMARY KEY, whole INTEGER NOT NULL, letters TEXT NOT NULL) WITHOUT ROWID"
)
_MADE_FROM = "CREATE TABLE made_from (digest TEXT NOT NULL, documents INTEGER NOT NULL)"
_PARTS = {"words_config", "words_data", "words_idx"}
"""What FTS5 makes for such a table itself."""
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3040-\u30ff\u3100-\u318f\u31a0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff])"
)
"""Scripts that put no spaces between words: Thai and its neighbours, Chinese, Japanese, and Korean with its endings."""
_PATIENCE, _STEPS = 5.0, 100_000
"""Seconds after which a file that was made to keep us busy is left; looked at every so many instructions."""


@dataclass(frozen=True)
class SearchHits:
    """Documents in rising order; ``more`` where there are others beyond the first MOST_FOUND."""

    docs: np.ndarray
    more: bool = False
    searched: int | None = None
    """Documents that were looked through, where not all were."""


def spaced(text: str) -> str:
    """Every letter of a script without spaces becomes a word of its own, so that any part of a text can be found."""
    return _UNSPACED.sub(r" \1 ", text) if _UNSPACED.search(text) else text


def build(path: Path, documents: Iterable[tuple[int, str, str]], digest: str) -> int:
    """Writes the index of ``(doc, title, text)`` to a new file; returns how many there were."""
    count = 0
    try:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            # Nothing to be rolled back to: a file that is not finished is thrown away.
            for pragma in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-65536", "page_size=8192"):
                connection.execute(f"PRAGMA {pragma}")
            connection.execute(_TABLE)
            connection.execute(_MADE_FROM)
            connection.execute("BEGIN")

            def rows() -> Iterator[tuple[int, str, str]]:
                nonlocal count
                for doc, title, text in documents:
                    count += 1
                    yield doc, spaced(title), spaced(text)

            connection.executemany("INSERT INTO words(rowid, title, text) VALUES (?, ?, ?)", rows())
            connection.execute("INSERT INTO words(words) VALUES ('optimize')")
            _write_branches(connection)
            connection.execute("INSERT INTO made_from VALUES (?, ?)", (digest, count))
            connection.execute("COMMIT")
    except sqlite3.OperationalError as error:
        if "full" in str(error) or "disk I/O" in str(error):
            raise Mistake(
                "There is not enough space to write the search index. Free some space and start the same command "
                "again: finished parts are kept."
            ) from error
        raise
    return count


def _write_branches(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, words, row)")
    connection.execute(_BRANCHES)
    words = connection.execute("SELECT term, doc FROM temp.vocabulary")
    rows = ((beginning, branch.whole, branch.letters) for beginning, branch in branches(words))
    connection.executemany("INSERT INTO branches VALUES (?, ?, ?)", rows)


def index_digest(path: Path) -> str | None:
    """What an index says it was made from; None where there is no whole one."""
    try:
        with _opened(path) as connection:
            found = connection.execute("SELECT digest FROM made_from").fetchone()
    except (OSError, sqlite3.Error, ValueError):
        return None
    return found[0] if found and isinstance(found[0], str) else None


def problem(path: Path, documents: int, digest: str) -> str:
    """What is wrong with an index of so many documents, in a few words; empty where nothing is."""
    try:
        with _opened(path) as connection:
            if [row[0] for row in connection.execute("PRAGMA quick_check(1)")] != ["ok"]:
                return "is damaged"
            if connection.execute("SELECT digest, documents FROM made_from").fetchall() != [(digest, documents)]:
                return "was made from other documents"
    except FileNotFoundError:
        return "is missing"
    except (OSError, sqlite3.Error, ValueError):
        return "is damaged"
    return ""


def find(path: Path, words: str, documents: int, rebuild: str) -> SearchHits:
    """The documents whose title or text has all of the ``words``, or words that begin so; at most MOST_FOUND.

    What was typed is never read as a query: every word is quoted. Accents and case do not count. ``documents`` is how
    many the run has: others are not believed to be there.
    """
    try:
        with _opened(path) as connection:
            asked = query_of(words, _known_branches(connection))
            if not asked:
                return SearchHits(np.empty(0, dtype=np.int64))
            found = connection.execute(
                "SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN 0 AND ? LIMIT ?",
                (asked, documents - 1, MOST_FOUND + 1),
            ).fetchall()
    except (OSError, sqlite3.Error, ValueError) as error:
        raise Mistake(f"{path.name} is missing or damaged. Rebuild it with '{rebuild}'.") from error
    docs = np.array(sorted({row[0] for row in found}), dtype=np.int64)  # a stranger's file may say one twice
    return SearchHits(docs[:MOST_FOUND], more=len(docs) > MOST_FOUND)


def query_of(words: str, branch: Callable[[str], Branch | None]) -> str:
    """What FTS5 is asked for: each word as a quoted phrase, a beginning where that is not too little to go by."""
    typed = words.replace("\0", " ").encode("utf-8", "replace").decode("utf-8").split()
    asked = []
    for word, (*before, last) in _tokens(typed):
        beginning = len(last) >= SHORTEST_BEGINNING and word[-1].isalnum()
        ends = pieces(last, branch) if beginning else [(last, False)]
        if not ends:
            return ""  # no word begins so
        phrases = [f'"{" ".join([*before, end])}"' + ("*" if more else "") for end, more in ends]
        asked.append(phrases[0] if len(phrases) == 1 else f"({' OR '.join(phrases)})")
    return " AND ".join(asked)


def _tokens(typed: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Each word with what it is in the index; words without letters and digits are none there."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE VIRTUAL TABLE typed USING fts5(word, {_TOKENS})")
        connection.execute("CREATE VIRTUAL TABLE tokens USING fts5vocab(typed, instance)")
        rows = ((number, spaced(word)) for number, word in enumerate(typed))
        connection.executemany("INSERT INTO typed(rowid, word) VALUES (?, ?)", rows)
        found = connection.execute("SELECT doc, term FROM tokens ORDER BY doc, offset").fetchall()
    for number, group in itertools.groupby(found, key=lambda row: row[0]):
        yield typed[number], [term for _, term in group]


def _known_branches(connection: sqlite3.Connection) -> Callable[[str], Branch | None]:
    def branch(beginning: str) -> Branch | None:
        row = connection.execute("SELECT whole, letters FROM branches WHERE beginning = ?", (beginning,)).fetchone()
        return Branch(bool(row[0]), str(row[1])) if row else None

    there = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'branches'").fetchone()
    return branch if there else lambda beginning: None  # an older index finds the same, more slowly


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Read-only, and only where the file has our tables and nothing else: a stranger may have made it."""
    if not path.is_file():  # SQLite would wait for a pipe
        raise FileNotFoundError(path)
    place = f"file:{urllib.parse.quote(str(path.absolute()))}?mode=ro&immutable=1"
    with contextlib.closing(sqlite3.connect(place, uri=True, isolation_level=None)) as connection:
        for pragma in ("trusted_schema=OFF", "query_only=ON", "cell_size_check=ON", "cache_size=-16384"):
            connection.execute(f"PRAGMA {pragma}")
        end = time.monotonic() + _PATIENCE
        connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
        tables = dict(connection.execute("SELECT name, sql FROM sqlite_schema").fetchall())
        ours = {"words": _TABLE, "made_from": _MADE_FROM, "branches": _BRANCHES}
        tables = {"branches": _BRANCHES} | tables  # an older index has none
        if any(tables.pop(name, "") != sql for name, sql in ours.items()) or set(tables) != _PARTS:
            raise ValueError("other tables than ours")
        yield connection


class Documents(Protocol):
    """Rows of documents.parquet, as core.runs.parquet.RowLookup reads them."""

    def __len__(self) -> int: ...

    def rows(self, numbers: np.ndarray, columns: Sequence[str]) -> pa.Table: ...


def scan(documents: Documents, words: str, most: int = MOST_SCANNED) -> SearchHits:
    """Those whose title or text has all of the ``words``, wherever in them; of the first ``most`` documents."""
    count, found = min(len(documents), most), []
    for first in range(0, count, _AT_ONCE):
        rows = documents.rows(np.arange(first, min(first + _AT_ONCE, count)), ["title", "text"])
        hit = np.ones(len(rows), dtype=bool)
        for word in words.split():
            either = [pc.match_substring(rows[column], word, ignore_case=True) for column in ("title", "text")]
            hit &= pc.or_(*either).to_numpy(zero_copy_only=False)
        found.append(first + np.flatnonzero(hit))
    docs = np.concatenate(found) if found else np.empty(0, dtype=np.int64)
    return SearchHits(docs[:MOST_FOUND], searched=count if count < len(documents) else None)
