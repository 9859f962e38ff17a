"""One job at a time on a run: a file that the system locks, and frees when its holder ends, however it ends."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

from core.errors import Mistake
from core.files import write_mistake
from core.lock_note import said_by, sign, sign_off


@contextlib.contextmanager
def locked(path: Path, run: str, shared: bool = False, mark: str = "") -> Iterator[None]:
    """Holds the lock, alone or with others who share it, or refuses with who holds it.

    Whoever holds it has written down who that is. What a killed job has left there holds nobody up: the system's lock
    decides. On a network file system it must be one that all hosts see, as NFS 4's is.
    """
    import fcntl

    with _opened(path) as file:
        for tries_left in range(9, -1, -1):  # whoever only asks, in is_locked, holds it for a moment
            try:
                fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if not tries_left:
                    raise Mistake(
                        f"Another job is at work on run '{run}'{said_by(file)}. Wait until it has ended."
                    ) from error
                time.sleep(0.05)
        if shared:  # who they are is not for one of them to say
            yield
            return
        sign(file, path, mark)
        yield
        sign_off(file)


@contextlib.contextmanager
def turn(path: Path, wait: bool) -> Iterator[bool]:
    """Whether it is this process that does what only one may do at a time; with ``wait`` it always is, in the end."""
    import fcntl

    with _opened(path) as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if wait:
                    time.sleep(0.05)
                    continue
                yield False
                return
            yield True
            return


def _opened(path: Path) -> FileIO:
    """The lock's file, made if need be; not through a link, for it is written to."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    except OSError as error:
        raise write_mistake(path, error) from error
    return open(descriptor, "r+b", buffering=0)


def is_locked(path: Path) -> bool:
    """Whether somebody holds the lock right now."""
    import fcntl

    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
