"""A new version of a run: made beside the one that people read, and put into its place when it is finished."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from core.errors import Mistake, RemoteMistake
from core.runs.files import MADE_FROM, MANIFEST, is_regular, remove_folder, replacing, write_mistake
from core.runs.run import Run

ANEW = "replace"
"""The kind of new version in which a run is embedded anew; others begin as a copy, and are named by their command."""
_NOT_COPIED = (MADE_FROM, ".lock")
_HERE = -100
"""AT_FDCWD: paths are as they are written."""
_EXCHANGE = 2
"""RENAME_EXCHANGE."""


@dataclass(frozen=True)
class NewVersion(Run):
    """A folder ``cache/.building-<kind>-<name>``: a run's name begins with no dot, so that no reader is shown it."""

    kind: str = ANEW

    @property
    def folder(self) -> Path:
        return self.cache / f".building-{self.kind}-{self.real_name}"

    def remove(self) -> None:
        """Empties it, and marks it as a new version."""
        super().remove()
        self.mark()

    def mark(self) -> None:
        of = Run(self.cache, self.name)
        with replacing(self.folder / MADE_FROM) as temporary:
            temporary.write_bytes(_manifest_of(of))

    def is_begun(self) -> bool:
        return is_regular(self.inside(self.folder / MADE_FROM)) and self.exists()

    def is_of(self, run: Run) -> bool:
        """Whether the run is still as it was when the new version was begun as a copy of it."""
        try:
            return self.is_begun() and (self.folder / MADE_FROM).read_bytes() == _manifest_of(run)
        except OSError:
            return False

    def is_untouched(self) -> bool:
        """Whether no step has begun in this copy: it says no more than the run does."""
        made_from = self.folder / MADE_FROM
        return is_regular(made_from) and made_from.read_bytes() == _manifest_of(self)


def new_versions(run: Run) -> list[NewVersion]:
    """The new versions of a run that are being made, or were when their job was stopped."""
    found = []
    for kind in _kinds(run):
        with contextlib.suppress(Mistake):  # a link that leads elsewhere
            found.append(NewVersion(run.cache, run.name, kind))
    return [version for version in found if version.is_begun()]


def is_being_renewed(run: Run) -> bool:
    """Whether a job is making a new version while people read this one; no where that cannot be asked."""
    try:
        return bool(new_versions(run)) and run.is_locked()
    except RemoteMistake:
        return False


def clear_up(run: Run) -> None:
    """What a killed job has left: an exchange is ended, a copy of what the run no longer is goes; under its lock."""
    try:
        bring_back(run.aside, _place(run), run.exists())
        (run.folder / MADE_FROM).unlink(missing_ok=True)
    except OSError as error:
        raise write_mistake(run.folder, error) from error
    for kind in _kinds(run):
        version = NewVersion(run.cache, run.name, kind)
        if not (version.is_begun() if kind == ANEW else version.is_of(run)):
            discard(version.folder)


def begin_copy(run: Run, kind: str) -> NewVersion:
    """A version with all that the run has; or the one that an earlier, interrupted start has begun.

    Files are shared by hard links where the file system has them: no file of a run is ever written to, only replaced.
    """
    version = NewVersion(run.cache, run.name, kind)
    if version.is_of(run):
        version.refuse_links()
        return version
    discard(version.folder)
    try:
        for folder, folders, files in os.walk(run.folder):
            copy = version.folder / Path(folder).relative_to(run.folder)
            copy.mkdir()
            for name in (*folders, *files):
                _copy(Path(folder, name), copy / name)
        version.mark()  # last: a copy that is not whole is not a new version
    except OSError as error:
        discard(version.folder)
        raise write_mistake(version.folder, error) from error
    except Mistake:
        discard(version.folder)
        raise
    return version


def publish(version: NewVersion) -> None:
    """Makes the new version the run; whoever has files of the old one open reads on in them."""
    run = Run(version.cache, version.name)
    run.backend.publish(version.folder)
    try:
        old = put_in_place(version.folder, _place(run), run.aside)
    except OSError as error:
        raise write_mistake(run.folder, error) from error
    # Only now: killed before, it is a new version that the next start finishes.
    (run.folder / MADE_FROM).unlink(missing_ok=True)
    discard(old)


def _kinds(run: Run) -> list[str]:
    """Of the new versions' folders that are there; a command's name has no dash, so that they are this run's alone."""
    pattern = re.compile(rf"\.building-([a-z]+)-{re.escape(run.real_name)}")
    try:
        return sorted(found[1] for path in run.cache.iterdir() if (found := pattern.fullmatch(path.name)))
    except OSError:  # the cache has gone
        return []


def _place(run: Run) -> Path:
    """Where the run lies, if its name is a link to another folder of the cache."""
    return run.folder.resolve()


def _copy(path: Path, to: Path) -> None:
    if path.is_symlink():
        os.symlink(os.readlink(path), to)
    elif path.is_file() and path.name not in _NOT_COPIED:
        try:
            os.link(path, to)
        except OSError:  # a file system without links, or somebody else's file
            shutil.copy2(path, to)


def _manifest_of(run: Run) -> bytes:
    with contextlib.suppress(OSError):
        return (run.folder / MANIFEST).read_bytes()
    return b""


def put_in_place(new: Path, place: Path, aside: Path) -> Path:
    """Makes ``new`` the folder at ``place``; returns where the one that was there lies now: at ``new``, or ``aside``.

    Without such a step, as on NFS, there are two renames, and for a moment there is nothing at ``place``: ``aside``
    is what a reader finds then, and whoever comes after a kill (``bring_back``).
    """
    if exchanged(new, place):
        return new
    discard(aside)
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
        discard(aside)
    elif aside.is_dir():
        os.rename(aside, place)  # over an empty folder, which is what the lock makes of a run that is not there


def discard(folder: Path) -> None:
    """A folder with all that is in it; what cannot be removed now is removed by the next start."""
    with contextlib.suppress(RemoteMistake):
        remove_folder(folder)


def exchanged(one: Path, other: Path) -> bool:
    """By the system's renameat2, which Linux has, and most of its file systems."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):  # macOS has no such call, Windows no such library
        return False
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return bool(call(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0)
