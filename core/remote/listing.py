"""``files.json`` of a run in an object store: what each file is. And a cache's folders by their names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

from core.cache_address import is_run_name
from core.remote.objects import Entry, Listed, Store
from core.runs.files import FILES, MANIFEST, is_listed

_NEW, _ANEW = ".building-", ".building-replace-"
"""How the folders of new versions begin (core.runs.replace), and of those that are embedded anew."""
_AT_ONCE = 16
"""Requests."""


def read_entries(data: bytes | None) -> dict[str, Entry] | None:
    """The entries of a ``files.json``; None where it is missing or damaged."""
    if data is None:
        return None
    try:
        found = json.loads(data)["files"]
        return {str(path): Entry(int(each["size"]), str(each["sha256"])) for path, each in found.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def local_entries(folder: Path) -> dict[str, Entry]:
    """Those of a mirrored run."""
    path = folder / FILES
    try:
        found = path.stat()
        return dict(_local_entries(path, found.st_ino, found.st_mtime_ns, found.st_size))
    except OSError:
        return {}


@lru_cache(maxsize=16)
def _local_entries(path: Path, *version: int) -> dict[str, Entry]:
    """A run of millions of documents has tens of thousands of them."""
    return read_entries(path.read_bytes()) or {}


def as_json(entries: Mapping[str, Entry]) -> bytes:
    found = {path: {"size": each.size, "sha256": each.sha256} for path, each in sorted(entries.items())}
    return (json.dumps({"files": found}, indent=0, ensure_ascii=False) + "\n").encode()


def by_size(listing: Mapping[str, Listed]) -> dict[str, Entry]:
    """The entries of a run without a ``files.json``: files are known by their size alone."""
    return {path: Entry(each.size, "") for path, each in listing.items()}


def is_finished(manifest: bytes) -> bool:
    """Whether all vectors are there: until then several machines may be writing parts."""
    try:
        return bool(json.loads(manifest)["steps"]["embed"]["state"] == "done")
    except (ValueError, KeyError, TypeError):
        return False


def stored_entries(
    store: Store, folder: str, before: Mapping[str, Entry], mine: Mapping[str, Entry]
) -> dict[str, Entry]:
    """What lies in a folder of the store; ``mine`` is what this process has put there itself.

    What files.json said ``before`` is still so of the objects that are older than it is; others are asked about.
    """
    found = store.listing(folder)
    since = found[FILES].modified if FILES in found else 0.0
    listing = {path: each for path, each in found.items() if is_listed(path) and path != MANIFEST}
    known = {**{path: before[path] for path in listing if path in before and listing[path].modified < since}, **mine}
    entries = {path: known[path] for path, each in listing.items() if path in known and known[path].size == each.size}
    asked = sorted(listing.keys() - entries.keys())
    entries.update(entries_of(store, folder, asked))
    return entries


def entries_of(store: Store, folder: str, paths: Iterable[str]) -> dict[str, Entry]:
    """What these objects say they are; those that are not whole are left out."""
    paths = list(paths)
    if not paths:
        return {}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda path: store.head(f"{folder}/{path}"), paths)
        return {path: entry for path, entry in zip(paths, found, strict=True) if entry is not None}


def is_shared(top: str) -> bool:
    """Whether the folder is kept in the store, too; locks and what a mirror keeps for itself are not."""
    return is_run_name(top) or top.startswith(_NEW)


def is_copy(top: str) -> bool:
    """Whether it is a new version that began as a copy of the run: the store has only what is new in it."""
    return top.startswith(_NEW) and not top.startswith(_ANEW)


def run_of(top: str) -> str:
    """The run that a folder is, or is a new version of."""
    return top.split("-", 2)[2] if top.startswith(_NEW) else top


def is_version_of(top: str, name: str) -> bool:
    return top.startswith(_NEW) and run_of(top) == name


def anew(name: str) -> str:
    """The new version in which a run is embedded anew."""
    return f"{_ANEW}{name}"
