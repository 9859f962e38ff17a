"""Writing so that a killed job leaves no half file, and a full disk is told in a sentence."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from core.errors import Mistake

_TEMPORARY = ".writing"
_RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def is_run_name(name: str) -> bool:
    """Whether ``name`` is one plain folder name."""
    return bool(_RUN_NAME.fullmatch(name)) and ".." not in name and not name.endswith(".")


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


def check_run_name(name: str) -> str:
    """A run's name is one plain folder name: no separators, no leading dot, nothing that leaves the cache."""
    if not is_run_name(name):
        raise Mistake(
            f"{name[:80]!r} cannot name a run. Use 1–64 letters, digits, dots, dashes and underscores, "
            "beginning with a letter or digit."
        )
    return name


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path to write to, renamed to ``path`` once everything is on the disk."""
    # Processes on several machines may have the same number.
    temporary = path.with_name(f"{path.name}{_TEMPORARY}{os.getpid()}-{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        _to_store(temporary, path)
        os.replace(temporary, path)
    except OSError as error:
        raise write_mistake(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def remove_file(path: Path) -> None:
    """A file that may be there, from a cache; and from the object store where the cache lies in one."""
    _from_store(path)
    path.unlink(missing_ok=True)


def remove_folder(folder: Path) -> None:
    """The same for a folder with all that is in it."""
    _from_store(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _to_store(temporary: Path, path: Path) -> None:
    from core.remote.mirror_write import upload
    from core.remote.mirrors import mirror_of

    if (mirror := mirror_of(path)) is not None:
        upload(mirror, temporary, path)


def _from_store(path: Path) -> None:
    from core.remote.mirror_write import remove
    from core.remote.mirrors import mirror_of

    if (mirror := mirror_of(path)) is not None:
        remove(mirror, path)


def remove_leftovers(folder: Path) -> None:
    """Removes what a killed job was in the middle of writing."""
    for path in folder.rglob(f"*{_TEMPORARY}*"):
        path.unlink(missing_ok=True)


def write_mistake(path: Path, error: OSError) -> Mistake:
    """Why ``path`` could not be written, and what to do."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return Mistake(
            f"There is no room to write {path.name} ({os.strerror(error.errno)}). Free some space and start the same "
            "command again: what is finished is kept."
        )
    return Mistake(
        f"{path.name} cannot be written in '{path.parent}' ({error.strerror or error}). Give a folder that can be "
        "written with --cache or HEADSCOPE_CACHE."
    )
