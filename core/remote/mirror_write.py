"""What is written in a mirror goes to the object store, and what is removed goes from it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from core.remote.listing import FILES, MANIFEST, found_in, is_finished, is_kept_here, is_listed, local_entries, written
from core.remote.mirror import Mirror
from core.remote.mirror_paths import is_copy, is_shared, run_of
from core.remote.objects import Entry


def upload(mirror: Mirror, temporary: Path, path: Path) -> None:
    """A file that is about to take its place in the mirror goes to the store first: the mirror is never ahead of it."""
    top, rest = mirror.split(path)
    if not rest or not is_shared(top) or is_kept_here(rest) or (is_copy(top) and not is_listed(rest)):
        return
    if rest == MANIFEST:
        _list(mirror, top, temporary.read_bytes())
    entry = mirror.store.put(f"{top}/{rest}", temporary)
    mirror.written.setdefault(top, {})[rest] = entry


def _list(mirror: Mirror, top: str, manifest: bytes) -> None:
    """Writes files.json, in the store and here, before the manifest that goes with it."""
    lease = mirror.held.get(run_of(top))
    if lease is not None:
        lease.check()
    before = local_entries(mirror.folder / top)
    entries: dict[str, Entry] = {}
    if is_finished(manifest):  # until then parts come from several machines, and may be replaced
        found = found_in(mirror.store, top, before, mirror.written.get(top, {}))
        entries = {**(before if is_copy(top) else {}), **found}
    entries[MANIFEST] = Entry(len(manifest), hashlib.sha256(manifest).hexdigest())
    mirror.store.put(f"{top}/{FILES}", written(entries))
    list_here(mirror, top, entries)


def list_here(mirror: Mirror, top: str, entries: dict[str, Entry]) -> None:
    """files.json in the mirror."""
    folder = mirror.folder / top
    temporary = folder / f"{FILES}.writing{os.getpid()}"
    folder.mkdir(parents=True, exist_ok=True)
    temporary.write_bytes(written(entries))
    os.replace(temporary, folder / FILES)


def remove(mirror: Mirror, path: Path) -> None:
    """A file, or a folder with all that is in it, from the store; here it is removed by whoever calls this."""
    top, rest = mirror.split(path)
    if not is_shared(top) or is_kept_here(f"{rest}/"):
        return
    if not rest:
        mirror.store.delete(f"{top}/{MANIFEST}")  # first: what a kill leaves then is no run
        mirror.store.delete_folder(top)
        mirror.written.pop(top, None)
        return
    put = mirror.written.get(top, {})
    gone = {each for each in mirror.paths(top) if each == rest or each.startswith(f"{rest}/")}
    for each in gone:
        put.pop(each, None)
    if is_copy(top) and gone:  # the run itself keeps them until the draft takes its place
        kept = {each: entry for each, entry in local_entries(mirror.folder / top).items() if each not in gone}
        list_here(mirror, top, kept)
    for each in gone:
        mirror.store.delete(f"{top}/{each}")
