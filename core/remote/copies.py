"""Files of an object store on this machine: which of them are here, and which object each is fetched from."""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from core.cache_address import Address
from core.errors import Mistake, NoAnswer
from core.remote.breaker import Breaker
from core.remote.lease import Lease
from core.remote.listing import is_copy, is_finished, local_entries, run_of
from core.remote.objects import PROBE, Entry, Store
from core.runs.backend import MARKER, Backend
from core.runs.files import MANIFEST, is_listed, is_local, replacing_here, sha256_of, write_mistake
from core.runs.lock import file_locks, is_locked


class Copies(Backend):
    """``top`` is the folder of a run, or of a new version of one, and ``rest`` a path in it, with slashes."""

    def __init__(self, folder: Path, address: Address, identity: str) -> None:
        super().__init__(folder)
        self.address, self.identity = address, identity
        self.store, probe = Store(address), Store(address, PROBE)
        self.breaker = Breaker(address, lambda: probe.get(".probe"))
        self.store.watched = probe.watched = self.breaker.waiting
        self.held: dict[str, Lease] = {}
        """Of this process, by the run's name."""
        self.written: dict[str, dict[str, Entry]] = {}
        """What this process has put into the store, by ``top`` and ``rest``."""
        self.answered: dict[str, float] = {}
        """When the store last answered a question, by what was asked; a run by its name."""

    def mark(self) -> None:
        """Has the folder say what it mirrors; ``identity`` tells it from other mirrors of the same address."""
        if (self.folder / MARKER).is_file():
            return
        try:
            with replacing_here(self.folder / MARKER) as temporary:
                temporary.write_text(json.dumps({"address": str(self.address), "id": self.identity}))
        except OSError as error:
            raise Mistake(
                f"'{self.folder}' cannot be written ({error.strerror}). Name a folder that can with HEADSCOPE_MIRROR."
            ) from error

    def split(self, path: Path) -> tuple[str, str]:
        parts = path.relative_to(self.folder).parts
        return parts[0], "/".join(parts[1:])

    def is_worked_on_here(self, name: str) -> bool:
        """Whether a job of this machine writes to the mirrored run, and so knows best what is in it."""
        return name in self.held or is_locked(self.folder / f".lock-{name}")

    def is_open(self, top: str) -> bool:
        """Whether it is being made: files may be there that files.json does not have yet."""
        if run_of(top) in self.held or top.startswith("."):
            return True
        try:
            return not is_finished((self.folder / top / MANIFEST).read_bytes())
        except OSError:
            return True

    def paths(self, top: str) -> dict[str, int]:
        """The files of a run, or of a new version of one, and their sizes."""
        listed = {path: entry.size for path, entry in local_entries(self.folder / top).items()}
        if not self.is_open(top):
            return listed
        found = self.breaker.share(("listing", top), lambda: self.store.listing(top))
        there = {path: each.size for path, each in found.items()}
        return {**(listed if is_copy(top) else {}), **there}

    def has(self, path: Path) -> bool:
        top, rest = self.split(path)
        return self.is_here(path) or (not is_local(rest) and rest in self.paths(top))

    def files_in(self, folder: Path) -> dict[Path, int]:
        top, rest = self.split(folder)
        inside = f"{rest}/" if rest else ""
        found = self.paths(top).items()
        return {self.folder / top / path: size for path, size in found if path.startswith(inside)}

    def is_here(self, path: Path) -> bool:
        """Whether a file is in the mirror and is what the store has, as far as that is known."""
        top, rest = self.split(path)
        if not path.is_file():
            return False
        if (
            is_local(rest)
            or is_copy(top)
            or rest in self.written.get(top, {})
            or (is_listed(rest) and not self.is_open(top))
            or self.is_worked_on_here(run_of(top))
        ):
            return True
        try:
            entry = self._head(f"{top}/{rest}")
        except NoAnswer:
            if self.breaker.hurried:
                return True
            raise
        return entry is not None and entry.sha256 == sha256_of(path)

    def source(self, path: Path) -> tuple[str, Entry] | None:
        """The object that a file is to be fetched from, and what it must be."""
        top, rest = self.split(path)
        listed = local_entries(self.folder / top).get(rest)
        if listed is not None and is_copy(top):
            return f"{run_of(top)}/{rest}", listed
        if self.is_open(top):
            listed = self._head(f"{top}/{rest}")
        return (f"{top}/{rest}", listed) if listed is not None else None

    def _head(self, name: str) -> Entry | None:
        found: Entry | None = self.breaker.share(("head", name), lambda: self.store.head(name))
        return found

    def bring(self, path: Path) -> None:
        """Fetches a file, or removes it where the store does not have it."""
        top, rest = self.split(path)
        found = self.source(path)
        if found is None:
            path.unlink(missing_ok=True)
            return
        name, entry = found
        temporary = self.folder / ".fetching" / uuid.uuid4().hex
        try:
            brought = self.store.fetch(name, temporary)
            if brought.size != entry.size or entry.sha256 not in ("", brought.sha256):
                raise self.being_replaced(top)
            with self.switching(top):
                # Another version may have come meanwhile, of which this is no file.
                if not self.is_open(top) and local_entries(self.folder / top).get(rest) != entry:
                    raise self.being_replaced(top)
                path.parent.mkdir(parents=True, exist_ok=True)
                os.replace(temporary, path)
        except FileNotFoundError:
            raise self.being_replaced(top) from None
        except OSError as error:
            raise write_mistake(path, error) from error
        finally:
            temporary.unlink(missing_ok=True)

    def footer(self, path: Path) -> pq.FileMetaData | None:
        if self.is_here(path):
            return super().footer(path)
        found = self.source(path)
        return self.breaker.share(("footer", path), lambda: self.store.footer(found[0])) if found is not None else None

    def being_replaced(self, top: str) -> Mistake:
        name = run_of(top)
        self.answered.pop(name, None)
        return Mistake(
            f"The run '{name}' is being replaced at {self.address}. Reload it in a moment; if this persists, run "
            "the command that was replacing it again."
        )

    @contextlib.contextmanager
    def switching(self, top: str) -> Iterator[None]:
        """Only one thread or process at a time changes which version of a run is mirrored."""
        locks = file_locks()
        self.mark()  # the mirror may have been deleted meanwhile
        with (self.folder / f".switch-{run_of(top)}").open("w") as file:
            locks.flock(file, locks.LOCK_EX)
            yield
