"""A folder of this machine that stands for a cache in an object store: files are fetched when they are read.

All other code works with the folder as with any cache, and asks here (core.runs.run, core.runs.files) before it
reads, and once it has written. Nothing in the folder is lost with it: the store has everything first.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.cache_address import Address
from core.errors import Mistake
from core.remote.breaker import Breaker
from core.remote.errors import NoAnswer, RemoteMistake
from core.remote.listing import MANIFEST, is_finished, is_kept_here, is_listed, local_entries
from core.remote.mirror_paths import is_copy, run_of
from core.remote.objects import APP, PROBE, Entry, Store, sha256_of
from core.runs.files import is_run_name, write_mistake
from core.runs.lock import file_locks, is_locked

if TYPE_CHECKING:
    from core.remote.lease import Lease

FRESH, AGAIN = 5.0, 15.0
"""Seconds for which the store's word on a run is believed, and after which one that refused is asked again."""
_OLD, _MOMENT = 12, 0.3
"""Times ``FRESH``: until then readers of the app wait but a moment (seconds) for news, and have what was the case."""
_DAY = 86_400


class Mirror:
    """``top`` is a run's or a draft's folder in the mirror, ``rest`` a path in it, with slashes."""

    def __init__(self, folder: Path, address: Address, identity: str) -> None:
        self.folder, self.address, self.identity = folder, address, identity
        self.store, probe = Store(address), Store(address, PROBE)
        self.breaker = Breaker(address, lambda: probe.get(".probe"))
        self.store.watched = probe.watched = self.breaker.waiting
        self.held: dict[str, Lease] = {}
        """Of this process, by the run's name."""
        self.written: dict[str, dict[str, Entry]] = {}
        """What this process has put into the store, by ``top`` and ``rest``."""
        self._answered: dict[str, float] = {}
        self._refused, self._failed = "", -math.inf
        self._names: list[str] = []
        self._leased: dict[str, bool] = {}
        self._writable: bool | None = None
        self._swept = False

    @property
    def trouble(self) -> str:
        """Why the store could not be asked the last time; '' where it could."""
        return self.breaker.trouble or self._refused

    def hurry(self) -> None:
        """This process shows pages to people: nobody waits for a store that says nothing."""
        self.breaker.hurried, self.store.patience = True, APP

    def split(self, path: Path) -> tuple[str, str]:
        parts = path.relative_to(self.folder).parts
        return parts[0], "/".join(parts[1:])

    def names(self) -> list[str]:
        """The runs in the store, and those that were mirrored where it cannot be asked."""
        self._sweep()
        if self.breaker.hurried:  # all at once: readers wait for a slow store's answers together, not one by one
            for name in self._here():
                self.look(name, within=0.0)
        self._ask("the names", self._ask_names)
        return sorted({*self._names, *self._here()})

    def _here(self) -> list[str]:
        try:
            return [path.name for path in self.folder.iterdir() if (path / MANIFEST).is_file()]
        except OSError:
            return []

    def _ask_names(self) -> None:
        self._names = [name for name in self.store.folders() if is_run_name(name)]

    def look(self, name: str, within: float = math.inf) -> None:
        """Makes the mirrored run the one that the store has now; asked at most every few seconds."""
        from core.remote.versions import switch

        if not self.is_worked_on_here(name):
            self._ask(name, lambda: switch(self, name), within)

    def look_again(self, name: str) -> None:
        """The next look does not wait."""
        self._answered.pop(name, None)

    def is_leased(self, name: str) -> bool:
        """Whether a job of another machine is at work on the run."""
        self._ask(f"the lease of {name}", lambda: self._ask_lease(name))
        return self._leased.get(name, False)

    def _ask_lease(self, name: str) -> None:
        from core.remote.lease import is_held

        self._leased[name] = is_held(self, name)

    def is_writable(self) -> bool:
        """Whether the credentials may write there; tried with an object that is removed again, once a process."""
        if self._writable is None:
            try:
                self.breaker.share("writing", self._try_to_write)
            except RemoteMistake:
                return False  # asked again the next time: perhaps it only does not answer
            self._writable = True
        return self._writable

    def _try_to_write(self) -> None:
        name = f".trying-{uuid.uuid4().hex}"
        self.store.put(name, b"")
        self.store.delete(name)

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
        """The files of a run or a draft and their sizes."""
        listed = {path: entry.size for path, entry in local_entries(self.folder / top).items()}
        if not self.is_open(top):
            return listed
        found = self.breaker.share(("listing", top), lambda: self.store.listing(top))
        there = {path: each.size for path, each in found.items()}
        return {**(listed if is_copy(top) else {}), **there}

    def is_there(self, path: Path) -> bool:
        """Whether a run has the file, here or in the store."""
        top, rest = self.split(path)
        return self.is_here(path) or (not is_kept_here(rest) and rest in self.paths(top))

    def is_here(self, path: Path) -> bool:
        """Whether a file is in the mirror and is what the store has, as far as that is known."""
        top, rest = self.split(path)
        if not path.is_file():
            return False
        if (
            is_kept_here(rest)
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

    def fetch(self, path: Path) -> None:
        """Brings a file that is not here, or that another machine has replaced; what the store does not have goes."""
        top, rest = self.split(path)
        if rest == MANIFEST and is_run_name(top):
            self.look(top)
        elif rest and not self.is_here(path) and not is_kept_here(rest):
            self.breaker.share(path, lambda: self._bring(path, top, rest))

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

    def _bring(self, path: Path, top: str, rest: str) -> None:
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

    def footer(self, path: Path) -> Any:
        """A Parquet file's metadata, from the store; None where there is none."""
        found = self.source(path)
        if found is None:
            return None
        return self.breaker.share(("footer", path), lambda: self.store.footer(found[0]))

    def being_replaced(self, top: str) -> Mistake:
        name = run_of(top)
        self.look_again(name)
        return Mistake(
            f"The run '{name}' is being replaced at {self.address}. Load it again in a moment; if that lasts, start "
            "the command that was replacing it again."
        )

    @contextlib.contextmanager
    def switching(self, top: str) -> Iterator[None]:
        """Only one thread or process at a time changes which version of a run is mirrored."""
        from core.remote.mirrors import mark

        locks = file_locks()

        mark(self.folder, self.address, self.identity)  # the mirror may have been deleted meanwhile
        with (self.folder / f".switch-{run_of(top)}").open("w") as file:
            locks.flock(file, locks.LOCK_EX)
            yield

    def _sweep(self) -> None:
        """Removes what processes of this mirror were fetching when they were killed, a day ago or longer."""
        if self._swept:
            return
        self._swept, old = True, time.time() - _DAY
        for path in (*self.folder.glob(".fetching/*"), *self.folder.glob(".new-*"), *self.folder.glob(".gone-*")):
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < old:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _ask(self, key: str, work: Callable[[], bool | None], within: float = math.inf) -> None:
        """Has ``work`` done, unless it was just now; that it fails is noted, and what is here is all that there is.

        It returns False where what the store said is not to be believed.
        """
        now = time.monotonic()
        age = now - self._answered.get(key, -math.inf)
        if not self.breaker.is_running(key) and (age < FRESH or (self._refused and now - self._failed < AGAIN)):
            return
        with contextlib.suppress(RemoteMistake):
            patience = math.inf if age >= _OLD * FRESH else _MOMENT
            self.breaker.share(key, lambda: self._noting(key, work), min(within, patience))

    def _noting(self, key: str, work: Callable[[], bool | None]) -> None:
        try:
            believed = work()
        except RemoteMistake as mistake:
            if not (self.breaker.hurried and isinstance(mistake, NoAnswer)):  # the breaker knows how that goes on
                self._refused, self._failed = str(mistake), time.monotonic()
            raise
        self._refused = ""
        if believed is not False:
            self._answered[key] = time.monotonic()
