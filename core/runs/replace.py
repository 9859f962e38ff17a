"""A folder takes another one's place, in one step where the system can do that: nobody finds none, or half of each."""

from __future__ import annotations

import contextlib
import ctypes
import os
from pathlib import Path

from core.remote.errors import RemoteMistake
from core.runs.files import remove_folder

_HERE = -100
"""AT_FDCWD: paths are as they are written."""
_EXCHANGE = 2
"""RENAME_EXCHANGE."""


def put_in_place(new: Path, place: Path, aside: Path) -> Path:
    """Makes ``new`` the folder at ``place``; returns where the one that was there lies now: at ``new``, or ``aside``.

    Without such a step, as on NFS, there are two renames, and for a moment there is nothing at ``place``: ``aside``
    is what a reader finds then, and whoever comes after a kill (``bring_back``).
    """
    if _exchanged(new, place):
        return new
    remove(aside)
    os.rename(place, aside)
    try:
        os.rename(new, place)
    except OSError:
        os.rename(aside, place)
        raise
    return aside


def bring_back(aside: Path, place: Path, is_there: bool) -> None:
    """After a kill between the two renames, the old folder again; after a later one (``is_there``), its remains go."""
    if aside.is_dir() and is_there:
        remove(aside)
    elif aside.is_dir():
        os.rename(aside, place)  # over an empty folder, which is what the lock makes of a run that is not there


def remove(folder: Path) -> None:
    """A folder with all that is in it; what cannot be removed now is removed by the next start."""
    with contextlib.suppress(RemoteMistake):
        remove_folder(folder)


def _exchanged(one: Path, other: Path) -> bool:
    """By the system's renameat2, which Linux has, and most of its file systems."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):  # macOS has no such call, Windows no such library
        return False
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return bool(call(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0)
