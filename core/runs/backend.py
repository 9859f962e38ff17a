"""Where the files of a cache are: in its folder alone, or in an object store, too, which the folder mirrors.

A run asks its cache's backend before it reads, and hands it what it writes. ``core.remote.mirror`` attaches a mirror to
its folder where a cache is opened (``cache_at``); every other folder is a ``Backend`` as it stands here.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import Mistake

MARKER = ".mirror.json"
"""In the folder of a mirror: what it mirrors."""


class Backend:
    """A folder: nothing has to be fetched, and nobody else is told what is written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def place(self) -> str:
        """The cache as people know it."""
        return str(self.folder.absolute())

    @property
    def trouble(self) -> str:
        """Why the object store does not answer, in a sentence; '' where it does."""
        return ""

    @property
    def last_answer(self) -> str:
        """When the object store last answered, as people read it; '' where it never has since the start."""
        return ""

    def names(self) -> list[str]:
        """Of folders that may be runs, with those that are being replaced this moment."""
        try:
            return sorted({path.name.removeprefix(".old-") for path in self.folder.iterdir()})
        except OSError:  # there is no cache, or it has gone
            return []

    def fetch(self, path: Path) -> None:
        """Brings a file that is about to be read."""

    def has(self, path: Path) -> bool:
        """Whether there is such a file, fetched or not."""
        return path.is_file()

    def files_in(self, folder: Path) -> dict[Path, int]:
        """All files in a folder of a run, fetched or not, and their bytes."""
        found = {}
        for path in folder.rglob("*"):
            with contextlib.suppress(FileNotFoundError):  # a job at work renames and removes
                if path.is_file():
                    found[path] = path.stat().st_size
        return found

    def footer(self, path: Path) -> pq.FileMetaData | None:
        """A Parquet file's metadata; None where there is no whole file."""
        try:
            return pq.read_metadata(path)
        except (OSError, pa.ArrowException):
            return None

    def upload(self, temporary: Path, path: Path) -> None:
        """``temporary`` is about to be renamed to ``path``."""

    def remove(self, path: Path) -> None:
        """A file, or a folder with all that is in it, is about to be removed."""

    def lease(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Held while a job works on a run, against jobs of other machines."""
        return contextlib.nullcontext()

    def is_leased(self, name: str) -> bool:
        """Whether a job of another machine is at work on the run."""
        return False

    def publish(self, folder: Path) -> None:
        """The new version of a run in ``folder`` is about to take its place."""

    def stored_digests(self, folder: Path) -> dict[str, str] | None:
        """The SHA-256 of a run's files, by path, where they are known without reading the files; else None."""
        return None

    def listed_digests(self, folder: Path) -> dict[str, str]:
        """Those that were recorded outside the manifest."""
        return {}

    def problems(self, folder: Path) -> Iterator[str]:
        """What is wrong with a run in the object store: '<file> is …'."""
        return iter(())

    def is_writable(self) -> bool:
        folder = next((each for each in (self.folder, *self.folder.parents) if each.exists()), Path("/"))
        return os.access(folder, os.W_OK | os.X_OK)


_ATTACHED: dict[Path, Backend] = {}


def attach(backend: Backend) -> Backend:
    """Makes it the backend of its folder in this process, unless there is one."""
    return _ATTACHED.setdefault(backend.folder, backend)


def attached(cache: Path) -> Backend | None:
    return _ATTACHED.get(cache)


def backend_at(cache: Path) -> Backend:
    """The backend of a cache."""
    found = _ATTACHED.get(cache)
    if found is None and (cache / MARKER).is_file():
        # Read as a folder, it would lack whatever was not fetched.
        raise Mistake(f"'{cache}' mirrors an object store. Open the cache by its address, as in --cache s3://….")
    return found or Backend(cache)


def backend_of(path: Path) -> Backend:
    """The backend of the cache that a file lies in."""
    return next((_ATTACHED[folder] for folder in path.parents if folder in _ATTACHED), None) or Backend(path.parent)


def trouble_at(cache: Path) -> str:
    """Why the object store of a cache does not answer; '' where it does, or the cache is a folder."""
    return backend_at(cache).trouble


def fetched_by(cache: Path) -> str:
    """When the object store of a cache last answered, as people read it; '' where it never has since the start."""
    return backend_at(cache).last_answer
