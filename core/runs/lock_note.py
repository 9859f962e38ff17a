"""Who is at work on a run: a line in the file that is locked, for those who are refused.

The files are opened without a buffer: what a full disk did not take would be written, and fail, once more at the end.
"""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from core.runs.files import write_mistake

_LONGEST = 300


def sign(file: BinaryIO, path: Path, mark: str = "") -> None:
    """Writes down host, process and start of the job that holds the lock, and its mark if it has one."""
    try:
        _replace(
            file,
            f"process {os.getpid()} on {socket.gethostname()}, since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
            + (f" ({mark})" if mark else ""),
        )
    except OSError as error:  # the disk is full
        raise write_mistake(path, error) from error


def sign_off(file: BinaryIO) -> None:
    """The job has ended: nobody is at work."""
    _replace(file, "")


def note_in(path: Path) -> str:
    """What a lock's file says; nothing where its holder has removed it."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def said_by(file: BinaryIO) -> str:
    """What the holder has written down, for the middle of a sentence; nothing where it has not come to that."""
    file.seek(0)
    said = file.read(_LONGEST).decode("utf-8", "replace")
    note = "".join(letter for letter in said if letter.isprintable()).strip()
    return f": {note}" if note else ""


def _replace(file: BinaryIO, note: str) -> None:
    file.seek(0)
    file.truncate()
    file.write(note.encode("utf-8", "replace"))
