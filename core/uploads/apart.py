"""A file parsed in a process of its own, so that what it does to the parser it does not do to the app.

A made-up file can keep a parser busy for hours, fill the memory, or crash a library written in C; other people are
using the app meanwhile. The name and the bytes go over a pipe and the texts come back over one: nothing is written to
the disk, and the list of processes shows no name. All sessions together have one budget: so many parsers at once,
each with so much memory; further files wait.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from core.errors import Mistake
from core.uploads.uploaded import Uploaded, shown

AT_ONCE = 2
"""Parsers at a time, of all sessions together; with their MEMORY the app's whole budget."""
MOST_WAITING = 40
"""More than this would wait longer than anybody does."""
LOOK = 0.5
"""Seconds between two looks at the line, or at a parser: as often is told who waits."""
Watch = Callable[[int], None]
"""Is told again and again how many files come first, 0 from its turn on; what it raises ends the wait or the work."""
SECONDS = 45.0
MEMORY = 640_000_000
"""Bytes of address space of one parser. Most files of 20 MB take a tenth of it, a web page 20 to 40 times its size."""
_PASSED_ON = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "LANG")
"""Of the environment; the app's keys and tokens are none of a parser's business."""


class ParserQueue:
    """A line whose first ``at_once`` members are at work."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._line: list[object] = []
        self._changed = threading.Condition()

    @contextmanager
    def place(self, watch: Watch) -> Iterator[None]:
        """Waits at the end of the line until it is this one's turn; the place is free again at the end of the block."""
        mine = object()
        with self._changed:
            if len(self._line) >= self._at_once + MOST_WAITING:
                raise Mistake(f"{MOST_WAITING} files are waiting to be read already. Try again in a minute.")
            self._line.append(mine)
        try:
            while before := self._before(mine):
                watch(before)
                with self._changed:
                    self._changed.wait_for(lambda: self._before(mine) < before, LOOK)
            yield
        finally:
            with self._changed:
                self._line.remove(mine)
                self._changed.notify_all()

    def _before(self, mine: object) -> int:
        with self._changed:
            return max(0, self._line.index(mine) - self._at_once + 1)


parser_queue = ParserQueue()


def unwatched(_: int) -> None:
    """For who does not look."""


def apart(name: str, suffix: str, data: bytes, watch: Watch = unwatched, seconds: float = SECONDS) -> list[Uploaded]:
    """What the reader of ``suffix`` makes of the file, or its Mistake; ``seconds`` count from its turn on."""
    with parser_queue.place(watch):
        answer = _answer(name, suffix, data, watch, seconds)
        try:
            # A line a text: where one of them needs four bytes a letter, the others do not.
            found = [json.loads(line) for line in answer.splitlines()]
        except ValueError:
            found = []
    if not found:
        # Libraries in C do not say what they died of; it is mostly the limit of memory.
        raise Mistake(
            f"{shown(name)} cannot be read: the parser crashed on this file, or needed more than {MEMORY / 1e6:.0f} MB "
            "of memory. Paste its text."
        )
    if "mistake" in found[0]:
        raise Mistake(found[0]["mistake"])
    return [Uploaded(each["name"], each["text"], tuple(each["notes"])) for each in found]


def _answer(name: str, suffix: str, data: bytes, watch: Watch, seconds: float) -> bytes:
    """What the parser writes, nothing if it crashed; one that is late, or that nobody waits for any more, is ended."""
    deadline = time.monotonic() + seconds
    with subprocess.Popen(
        [sys.executable, "-m", "core.uploads"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).resolve().parent.parent.parent,
        env={key: os.environ[key] for key in _PASSED_ON if key in os.environ},
    ) as process:
        head = json.dumps([suffix, shown(name)]).encode() + b"\n"
        # A thread of its own, for communicate() cannot go on with its input after a look at the clock.
        threading.Thread(target=_feed, args=(process.stdin, head, data), daemon=True).start()
        process.stdin = None
        try:
            while True:
                try:
                    answer, _ = process.communicate(timeout=min(LOOK, max(0.0, deadline - time.monotonic())))
                    return b"" if process.returncode else answer
                except subprocess.TimeoutExpired as error:
                    if time.monotonic() >= deadline:
                        raise Mistake(
                            f"{shown(name)} takes longer than {seconds:.0f} seconds to read. Save it in a simpler "
                            "form, or paste the text."
                        ) from error
                    watch(0)
        finally:
            process.kill()


def _feed(pipe: IO[bytes], *parts: bytes) -> None:
    with contextlib.suppress(OSError), pipe:  # who has been ended reads no more
        for part in parts:
            pipe.write(part)
