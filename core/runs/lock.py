"""One job at a time on a run: a file that the system locks, and frees when its holder ends, however it ends."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from types import ModuleType

from core.errors import Mistake
from core.runs.files import write_mistake
from core.runs.lock_note import said_by, sign, sign_off


@contextlib.contextmanager
def locked(path: Path, run: str, shared: bool = False, mark: str = "") -> Iterator[None]:
    """Holds the lock, alone or with others who share it, or refuses with who holds it.

    Whoever holds it has written down who that is. What a killed job has left there holds nobody up: the system's lock
    decides. On a network file system it must be one that all hosts see, as NFS 4's is.
    """
    for tries_left in range(9, -1, -1):  # whoever only asks, in is_locked, holds it for a moment
        with _opened(path) as file:
            if not _is_taken(file, path, shared):
                if not tries_left:
                    raise Mistake(f"Another job is at work on run '{run}'{said_by(file)}. Wait until it has ended.")
                time.sleep(0.05)
                continue
            if shared:  # who they are is not for one of them to say; nor is it a job that was killed
                sign_off(file)
                yield
                return
            sign(file, path, mark)
            try:
                yield
            finally:
                sign_off(file)
            return


@contextlib.contextmanager
def turn(path: Path, wait: bool) -> Iterator[bool]:
    """Whether it is this process that does what only one may do at a time; with ``wait`` it always is, in the end."""
    while True:
        with _opened(path) as file:
            mine = _is_taken(file, path)
            if mine or not wait:
                yield mine
                return
        time.sleep(0.05)


def file_locks() -> ModuleType:
    """The system's file locks, which Windows does not have."""
    try:
        import fcntl
    except ImportError:
        raise Mistake(
            "This system has no file locks that Headscope can use. Run it on Linux or macOS; on Windows, use WSL or "
            "Docker."
        ) from None
    return fcntl


def _is_taken(file: FileIO, path: Path, shared: bool = False) -> bool:
    """Whether the lock could be had; of a file that its holder has removed since it was opened, it is nobody's."""
    locks = file_locks()
    try:
        locks.flock(file, (locks.LOCK_SH if shared else locks.LOCK_EX) | locks.LOCK_NB)
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except (BlockingIOError, FileNotFoundError):
        return False


def _opened(path: Path) -> FileIO:
    """The lock's file, made if need be; not through a link, for it is written to."""
    file_locks()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    except OSError as error:
        raise write_mistake(path, error) from error
    return open(descriptor, "r+b", buffering=0)


def is_locked(path: Path) -> bool:
    """Whether somebody holds the lock right now."""
    try:
        locks = file_locks()
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            locks.flock(file, locks.LOCK_SH | locks.LOCK_NB)
    except BlockingIOError:
        return True
    except (OSError, Mistake):  # there is no such file, or nobody here could hold it
        return False
    return False
