"""Versions of a run in an object store and in its mirror: files are uploaded, a new version takes a run's place.

In the store nothing can be renamed: a version is published file by file, the manifest last. Who fetches a file in the
meantime finds that it is not the one that files.json promises, and refuses it. The decision is stored first: whoever
works on the run next, on any machine, ends what a kill has left. In the mirror one folder takes the other one's place
in one step, with all files that both versions have.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from core.remote.copies import Copies
from core.remote.listing import (
    anew,
    as_json,
    by_size,
    entries_of,
    is_copy,
    is_finished,
    is_shared,
    is_version_of,
    local_entries,
    read_entries,
    run_of,
    stored_entries,
)
from core.remote.objects import Entry
from core.runs.files import FILES, MADE_FROM, MANIFEST, is_listed, is_local, replacing_here, sha256_of
from core.runs.replace import put_in_place

_DECIDED = "publishing.json"
AT_ONCE = 8


def upload(mirror: Copies, temporary: Path, path: Path) -> None:
    """A file that is about to take its place in the mirror goes to the store first: the mirror is never ahead of it."""
    top, rest = mirror.split(path)
    if not rest or not is_shared(top) or is_local(rest) or (is_copy(top) and not is_listed(rest)):
        return
    if rest == MANIFEST:
        _list(mirror, top, temporary.read_bytes())
    entry = mirror.store.put(f"{top}/{rest}", temporary)
    mirror.written.setdefault(top, {})[rest] = entry


def _list(mirror: Copies, top: str, manifest: bytes) -> None:
    """Writes files.json, in the store and here, before the manifest that goes with it."""
    lease = mirror.held.get(run_of(top))
    if lease is not None:
        lease.check()
    before = local_entries(mirror.folder / top)
    entries: dict[str, Entry] = {}
    if is_finished(manifest):  # until then parts come from several machines, and may be replaced
        found = stored_entries(mirror.store, top, before, mirror.written.get(top, {}))
        entries = {**(before if is_copy(top) else {}), **found}
    entries[MANIFEST] = Entry(len(manifest), hashlib.sha256(manifest).hexdigest())
    mirror.store.put(f"{top}/{FILES}", as_json(entries))
    _write(mirror.folder / top / FILES, as_json(entries))


def remove(mirror: Copies, path: Path) -> None:
    """A file, or a folder with all that is in it, from the store; here it is removed by whoever calls this."""
    top, rest = mirror.split(path)
    if not is_shared(top) or is_local(f"{rest}/"):
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
        _write(mirror.folder / top / FILES, as_json(kept))
    for each in gone:
        mirror.store.delete(f"{top}/{each}")


def publish(mirror: Copies, draft: str) -> None:
    """Makes the draft of that folder name the run, in the store; the mirror's own folders are the caller's."""
    name = run_of(draft)
    if name in mirror.held:
        mirror.held[name].check()
    entries = local_entries(mirror.folder / draft)
    there = mirror.store.listing(draft)
    run = _entries(mirror, name) or by_size(mirror.store.listing(name))
    for rest, entry in entries.items():
        if run.get(rest) == entry or (rest in there and there[rest].size == entry.size):
            continue
        if not (mirror.folder / draft / rest).is_file():  # another machine has cleared away what this one had begun
            raise mirror.being_replaced(draft)
        entries[rest] = mirror.store.put(f"{draft}/{rest}", mirror.folder / draft / rest)
    _write(mirror.folder / draft / FILES, as_json(entries))
    mirror.store.put(f"{draft}/{FILES}", as_json(entries))
    mirror.store.put(f"{draft}/{_DECIDED}", b"{}\n")
    _carry_out(mirror, draft)


def finish_publishing(mirror: Copies, name: str, drafts: Iterable[str]) -> None:
    """Ends what was decided when a job was killed, on this machine or another."""
    for draft in drafts:
        if mirror.store.get(f"{draft}/{_DECIDED}") is not None:
            _carry_out(mirror, draft)


def _carry_out(mirror: Copies, draft: str) -> None:
    """Each step may be done twice."""
    store, name = mirror.store, run_of(draft)
    new, there = _entries(mirror, draft), store.listing(draft)
    if MANIFEST in there:  # otherwise only the draft itself is left to be removed
        taken = [rest for rest in there if rest in new and rest != MANIFEST]
        gone = [rest for rest in store.listing(name) if rest not in new and rest not in (FILES, MANIFEST)]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda rest: store.copy(f"{draft}/{rest}", f"{name}/{rest}", there[rest].size), taken))
            list(pool.map(lambda rest: store.delete(f"{name}/{rest}"), gone))
        for rest in (FILES, MANIFEST):
            store.copy(f"{draft}/{rest}", f"{name}/{rest}", there[rest].size)
    store.delete(f"{draft}/{MANIFEST}")
    store.delete(f"{draft}/{_DECIDED}")
    store.delete_folder(draft)
    for top in (draft, name):
        mirror.written.pop(top, None)


def _entries(mirror: Copies, top: str) -> dict[str, Entry]:
    found = read_entries(mirror.store.get(f"{top}/{FILES}")) or {}
    return {rest: entry for rest, entry in found.items() if is_listed(rest)}


def switch(mirror: Copies, name: str) -> bool:
    """Makes the mirrored run the version that the store has; its other files come when they are read.

    False where the store is between two versions: nothing was changed, and it is to be asked again.
    """
    manifest, folder = mirror.store.get(f"{name}/{MANIFEST}"), mirror.folder / name
    before = _read(folder / MANIFEST)
    if manifest == before:
        return True
    if manifest is None:
        with mirror.switching(name):
            _clear(mirror, folder)
        return True
    mine = Entry(len(manifest), hashlib.sha256(manifest).hexdigest())
    files = mirror.store.get(f"{name}/{FILES}")
    entries = read_entries(files)
    if files is None:  # the run was copied there by other means
        entries = by_size(mirror.store.listing(name))
        entries[MANIFEST] = mine
    if entries is None or entries.get(MANIFEST) != mine:  # one of the two is about to be replaced
        return False
    with mirror.switching(name):
        if is_finished(manifest) or (before is not None and is_finished(before)):
            _take_version(mirror, folder, manifest, entries)
        else:  # it is being made, perhaps by this machine, too: nothing of it is taken away
            _write(folder / FILES, as_json(entries))
            _write(folder / MANIFEST, manifest)
    return True


def begin(mirror: Copies, name: str) -> None:
    """Before a job works on a run, under its lease: the mirror has what the store has, whoever worked on it last."""
    drafts = [top for top in mirror.store.folders() if is_version_of(top, name)]
    finish_publishing(mirror, name, drafts)
    switch(mirror, name)
    _reconcile(mirror, name)
    draft = mirror.folder / anew(name)
    manifest = mirror.store.get(f"{draft.name}/{MANIFEST}")
    if manifest is None:
        shutil.rmtree(draft, ignore_errors=True)
    else:
        draft.mkdir(parents=True, exist_ok=True)
        _reconcile(mirror, draft.name)
        for rest in (MADE_FROM, FILES, MANIFEST):
            if (data := mirror.store.get(f"{draft.name}/{rest}")) is not None:
                _write(draft / rest, data)
    for top in drafts:  # what another machine has begun cannot be gone on with without its own files
        if not (mirror.folder / top).is_dir():
            mirror.store.delete_folder(top)


def _reconcile(mirror: Copies, top: str) -> None:
    """Removes files that are not what the store has: of a run that was being made, when somebody was killed."""
    folder = mirror.folder / top
    if not mirror.is_open(top) or not folder.is_dir():
        return
    here = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    here = {rest: path for rest, path in here.items() if not is_local(rest) and rest not in (FILES, MANIFEST)}
    there = entries_of(mirror.store, top, here)
    for rest, path in here.items():
        if rest not in there or there[rest].sha256 != sha256_of(path):
            path.unlink(missing_ok=True)


def _take_version(mirror: Copies, folder: Path, manifest: bytes, entries: Mapping[str, Entry]) -> None:
    had = local_entries(folder)
    new = mirror.folder / f".new-{folder.name}-{uuid.uuid4().hex[:8]}"
    try:
        new.mkdir(parents=True)
        for rest, entry in entries.items():
            if entry.sha256 and had.get(rest) == entry and rest != MANIFEST:
                (new / rest).parent.mkdir(parents=True, exist_ok=True)
                with contextlib.suppress(OSError):  # it was never fetched; or there are no links: fetched again
                    os.link(folder / rest, new / rest)
        _write(new / FILES, as_json(entries))
        _write(new / MANIFEST, manifest)
        if folder.is_dir():
            shutil.rmtree(put_in_place(new, folder, mirror.folder / f".old-{folder.name}"), ignore_errors=True)
        else:
            os.rename(new, folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _clear(mirror: Copies, folder: Path) -> None:
    gone = mirror.folder / f".gone-{uuid.uuid4().hex[:8]}"
    with contextlib.suppress(OSError):
        os.rename(folder, gone)
    shutil.rmtree(gone, ignore_errors=True)


def _write(path: Path, data: bytes) -> None:
    """In the mirror."""
    with replacing_here(path) as temporary:
        temporary.write_bytes(data)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
