"""Which version of a run a mirror has: another one takes its place in one step, with all files that both have."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path

from core.remote.listing import (
    FILES,
    MADE_FROM,
    MANIFEST,
    by_size,
    heads,
    is_finished,
    is_kept_here,
    local_entries,
    read_entries,
)
from core.remote.listing import written as as_json
from core.remote.mirror import Mirror
from core.remote.mirror_paths import anew, is_draft_of
from core.remote.mirror_publish import finish_publishing
from core.remote.mirror_write import list_here
from core.remote.objects import Entry, sha256_of
from core.runs.replace import put_in_place


def switch(mirror: Mirror, name: str) -> bool:
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
            _exchange(mirror, folder, manifest, entries)
        else:  # it is being made, perhaps by this machine, too: nothing of it is taken away
            folder.mkdir(parents=True, exist_ok=True)
            list_here(mirror, name, entries)
            _write(folder / MANIFEST, manifest)
    return True


def begin(mirror: Mirror, name: str) -> None:
    """Before a job works on a run, under its lease: the mirror has what the store has, whoever worked on it last."""
    drafts = [top for top in mirror.store.folders() if is_draft_of(top, name)]
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


def _reconcile(mirror: Mirror, top: str) -> None:
    """Removes files that are not what the store has: of a run that was being made, when somebody was killed."""
    folder = mirror.folder / top
    if not mirror.is_open(top) or not folder.is_dir():
        return
    here = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    here = {rest: path for rest, path in here.items() if not is_kept_here(rest) and rest not in (FILES, MANIFEST)}
    there = heads(mirror.store, top, here)
    for rest, path in here.items():
        if rest not in there or there[rest].sha256 != sha256_of(path):
            path.unlink(missing_ok=True)


def _exchange(mirror: Mirror, folder: Path, manifest: bytes, entries: Mapping[str, Entry]) -> None:
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


def _clear(mirror: Mirror, folder: Path) -> None:
    gone = mirror.folder / f".gone-{uuid.uuid4().hex[:8]}"
    with contextlib.suppress(OSError):
        os.rename(folder, gone)
    shutil.rmtree(gone, ignore_errors=True)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_name(f"{path.name}.writing{os.getpid()}")
    temporary.write_bytes(data)
    os.replace(temporary, path)
