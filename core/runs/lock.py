"""One job at a time on a run: a file that the system locks, and frees when its holder ends, however it ends.

In the file is a line that says who holds it, for those who are refused. Files are opened without a buffer: what a full
disk did not take would be written, and fail, once more at the end.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from types import ModuleType

from core.errors import Mistake
from core.runs.files import write_mistake

_LONGEST_NOTE = 300


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
                    raise Mistake(f"Another job is working on run '{run}'{_holder(file)}. Wait until it has ended.")
                time.sleep(0.05)
                continue
            if shared:  # who they are is not for one of them to say; nor is it a job that was killed
                _write_note(file, "")
                yield
                return
            _sign(file, path, mark)
            try:
                yield
            finally:
                _write_note(file, "")
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


def _sign(file: FileIO, path: Path, mark: str = "") -> None:
    """Writes down host, process and start of the job that holds the lock, and its mark if it has one."""
    try:
        _write_note(
            file,
            f"process {os.getpid()} on {socket.gethostname()}, since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
            + (f" ({mark})" if mark else ""),
        )
    except OSError as error:  # the disk is full
        raise write_mistake(path, error) from error


def note_in(path: Path) -> str:
    """What a lock's file says; nothing where its holder has removed it."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _holder(file: FileIO) -> str:
    """What the holder has written down, for the middle of a sentence; nothing where it has not come to that."""
    file.seek(0)
    text = file.read(_LONGEST_NOTE).decode("utf-8", "replace")
    note = "".join(letter for letter in text if letter.isprintable()).strip()
    return f": {note}" if note else ""


def _write_note(file: FileIO, note: str) -> None:
    file.seek(0)
    file.truncate()
    file.write(note.encode("utf-8", "replace"))
