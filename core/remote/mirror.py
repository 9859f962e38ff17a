"""A folder of this machine that stands for a cache in an object store: the backend of its runs.

Files are fetched when they are read, and are in the store before they are here: nothing is lost with the folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from core.cache_address import Address, is_address, is_run_name, parse
from core.errors import Mistake, NoAnswer, RemoteMistake
from core.remote import versions
from core.remote.breaker import clock
from core.remote.copies import Copies
from core.remote.lease import Lease, is_held
from core.remote.listing import entries_of, is_copy, local_entries, run_of, stored_entries
from core.remote.objects import APP
from core.runs.backend import MARKER, attach, attached, backend_at
from core.runs.files import MANIFEST, is_local
from core.settings import Settings, setting

FRESH, AGAIN = 5.0, 15.0
"""Seconds for which the store's word on a run is believed, and after which one that refused is asked again."""
_OLD, _MOMENT = 12, 0.3
"""Times ``FRESH``: until then readers of the app wait but a moment (seconds) for news, and have what was the case."""
_DAY = 86_400


class Mirror(Copies):
    def __init__(self, folder: Path, address: Address, identity: str) -> None:
        super().__init__(folder, address, identity)
        self._refused, self._failed = "", -math.inf
        self._names: list[str] = []
        self._leased: dict[str, bool] = {}
        self._writable: bool | None = None
        self._swept = False

    @property
    def place(self) -> str:
        return str(self.address)

    @property
    def trouble(self) -> str:
        return self.breaker.trouble or self._refused

    @property
    def last_answer(self) -> str:
        return clock(self.breaker.heard) if self.breaker.heard > -math.inf else ""

    def hurry(self) -> None:
        """This process shows pages to people: nobody waits for a store that says nothing."""
        self.breaker.hurried, self.store.patience = True, APP

    def names(self) -> list[str]:
        """The runs in the store, and those that were mirrored where it cannot be asked."""
        self._sweep()
        if self.breaker.hurried:  # all at once: readers wait for a slow store's answers together, not one by one
            for name in self._here():
                self.refresh(name, within=0.0)
        self._ask("the names", self._ask_names)
        return sorted({*self._names, *self._here()})

    def _here(self) -> list[str]:
        try:
            return [path.name for path in self.folder.iterdir() if (path / MANIFEST).is_file()]
        except OSError:
            return []

    def _ask_names(self) -> None:
        self._names = [name for name in self.store.folders() if is_run_name(name)]

    def refresh(self, name: str, within: float = math.inf) -> None:
        """Makes the mirrored run the one that the store has now; asked at most every few seconds."""
        if not self.is_worked_on_here(name):
            self._ask(name, lambda: versions.switch(self, name), within)

    def fetch(self, path: Path) -> None:
        """Brings a file that is not here, or that another machine has replaced; what the store does not have goes."""
        top, rest = self.split(path)
        if rest == MANIFEST and is_run_name(top):
            self.refresh(top)
        elif rest and not self.is_here(path) and not is_local(rest):
            self.breaker.share(path, lambda: self.bring(path))

    def upload(self, temporary: Path, path: Path) -> None:
        versions.upload(self, temporary, path)

    def remove(self, path: Path) -> None:
        versions.remove(self, path)

    def publish(self, folder: Path) -> None:
        versions.publish(self, folder.name)

    @contextlib.contextmanager
    def lease(self, name: str) -> Iterator[None]:
        """Held, and the mirror has what the store has."""
        lease = Lease(self, name)
        self.held[name] = lease
        try:
            versions.begin(self, name)
            yield
        finally:
            del self.held[name]
            for top in [top for top in self.written if run_of(top) == name]:
                del self.written[top]
            lease.release()
            self.answered.pop(name, None)  # the next reader asks

    def is_leased(self, name: str) -> bool:
        self._ask(f"the lease of {name}", lambda: self._ask_lease(name))
        return self._leased.get(name, False)

    def _ask_lease(self, name: str) -> None:
        self._leased[name] = is_held(self, name)

    def stored_digests(self, folder: Path) -> dict[str, str]:
        """What was put there was hashed on the way."""
        top, before = folder.name, local_entries(folder)
        there = stored_entries(self.store, top, before, self.written.get(top, {}))
        entries = {**(before if is_copy(top) else {}), **there}
        return {path: entry.sha256 for path, entry in entries.items() if entry.sha256}

    def listed_digests(self, folder: Path) -> dict[str, str]:
        return {path: entry.sha256 for path, entry in local_entries(folder).items() if entry.sha256}

    def problems(self, folder: Path) -> Iterator[str]:
        """What each object says it is against files.json; other checks read what was fetched, perhaps long ago."""
        listed = local_entries(folder)
        there = entries_of(self.store, folder.name, listed)
        for rest, entry in listed.items():
            found = there.get(rest)
            if found is None:
                yield f"{rest} is missing at {self.address}"
            elif found.size != entry.size or (found.sha256 and entry.sha256 and found.sha256 != entry.sha256):
                yield f"{rest} at {self.address} does not match files.json"

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
        age = now - self.answered.get(key, -math.inf)
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
            self.answered[key] = time.monotonic()


def cache_at(place: str | Path | Address, mirrors: Path) -> Path:
    """The folder of a cache: the one that is named, or an address's mirror in ``mirrors``, made if need be."""
    if isinstance(place, str):
        place = parse(place) if is_address(place) else Path(place).expanduser()
    if isinstance(place, Path):
        folder = place
    else:
        folder = mirrors.expanduser().resolve() / hashlib.sha256(str(place).encode()).hexdigest()[:16]
        Copies(folder, place, uuid.uuid4().hex).mark()
    mirror_at(folder)
    return folder


def default_cache() -> Path:
    """HEADSCOPE_CACHE, or ``cache/`` of the project."""
    return cache_at(setting("HEADSCOPE_CACHE"), setting("HEADSCOPE_MIRROR"))


def mirror_at(cache: Path) -> Mirror | None:
    """The mirror that a cache folder is, if it is one; in a process always the same object."""
    if (found := attached(cache)) is None:
        try:
            record = json.loads((cache / MARKER).read_text(encoding="utf-8"))
            address = parse(record["address"])
            if not isinstance(address, Address):
                return None
            found = attach(Mirror(cache, address, str(record["id"])))
        except (OSError, ValueError, KeyError, TypeError, Mistake):
            return None
    return found if isinstance(found, Mirror) else None


def for_readers(cache: Path) -> Path:
    """The cache itself, of which this process shows pages to people who wait."""
    if (mirror := mirror_at(cache)) is not None:
        mirror.hurry()
    return cache


def is_read_only(settings: Settings) -> bool:
    """Whether the app leaves the cache alone: because it was asked to, or because it could not write there anyway."""
    return settings.read_only or not backend_at(cache_at(settings.cache, settings.mirror)).is_writable()
