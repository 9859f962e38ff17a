"""Files of a run: atomic writes, and which of them belong to the finished run."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from core.errors import Mistake
from core.runs.backend import backend_of

MANIFEST, MADE_FROM, FILES = "manifest.json", "made-from.json", "files.json"
"""``made-from.json`` is in a new version until it is published, ``files.json`` only in an object store."""
_TEMPORARY = ".writing"


def is_inside(path: Path, folder: Path) -> bool:
    """Whether ``path`` is something in ``folder``, once all symbolic links have been followed."""
    try:
        found, root = path.resolve(), folder.resolve()
    except (OSError, RuntimeError):  # links that lead in a circle
        return False
    return root in found.parents


def is_regular(path: Path) -> bool:
    """Whether there is a file; not a folder, and not a pipe, which would be waited for."""
    try:
        return path.is_file()
    except OSError:
        return False


def is_listed(path: str) -> bool:
    """Whether a finished run has this file: not what is only there while it is being made."""
    return not path.startswith("staging/") and path not in (FILES, MADE_FROM)


def is_local(path: str) -> bool:
    """Whether a file is this machine's alone: what a later step has staged for itself."""
    folders = PurePosixPath(path).parts[:-1]
    return any("staging" in folder for folder in folders) and folders[:1] != ("staging",)


def is_temporary(path: str) -> bool:
    """Whether a file is being written, or was when its job was killed."""
    return _TEMPORARY in PurePosixPath(path).name


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path to write to, renamed to ``path`` once everything is on the disk, and in the object store."""
    try:
        with replacing_here(path, backend_of(path).upload) as temporary:
            yield temporary
    except OSError as error:
        raise write_mistake(path, error) from error


@contextlib.contextmanager
def replacing_here(path: Path, upload: Callable[[Path, Path], None] | None = None) -> Iterator[Path]:
    """The same on this machine alone; errors stay what they are."""
    # Processes on several machines may have the same number.
    temporary = path.with_name(f"{path.name}{_TEMPORARY}{os.getpid()}-{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        if upload is not None:
            upload(temporary, path)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def remove_file(path: Path) -> None:
    """A file that may be there, from a cache; and from the object store where the cache lies in one."""
    backend_of(path).remove(path)
    path.unlink(missing_ok=True)


def remove_folder(folder: Path) -> None:
    """The same for a folder with all that is in it."""
    backend_of(folder).remove(folder)
    shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers(folder: Path) -> None:
    """Removes what a killed job was in the middle of writing."""
    for path in folder.rglob(f"*{_TEMPORARY}*"):
        path.unlink(missing_ok=True)


def write_mistake(path: Path, error: OSError) -> Mistake:
    """Why ``path`` could not be written, and what to do."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return Mistake(
            f"There is not enough space to write {path.name} ({os.strerror(error.errno)}). Free some space and start "
            "the same command again: finished parts are kept."
        )
    return Mistake(
        f"{path.name} cannot be written in '{path.parent}' ({error.strerror or error}). Give a folder that can be "
        "written with --cache or HEADSCOPE_CACHE."
    )
