"""A draft takes a run's place in an object store, where nothing can be renamed: file by file, the manifest last.

A reader who fetches a file in the meantime finds that it is not the one that files.json promises, and refuses it. What
is to be done is written down first, so that whoever works on the run next, on any machine, ends what a kill has left.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from core.remote.listing import FILES, MANIFEST, by_size, is_listed, local_entries, read_entries, written
from core.remote.mirror import Mirror
from core.remote.mirror_paths import run_of
from core.remote.mirror_write import list_here
from core.remote.objects import Entry

_DECIDED = "publishing.json"
_AT_ONCE = 8


def publish(mirror: Mirror, draft: str) -> None:
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
    list_here(mirror, draft, entries)
    mirror.store.put(f"{draft}/{FILES}", written(entries))
    mirror.store.put(f"{draft}/{_DECIDED}", b"{}\n")
    _carry_out(mirror, draft)


def finish_publishing(mirror: Mirror, name: str, drafts: Iterable[str]) -> None:
    """Ends what was decided when a job was killed, on this machine or another."""
    for draft in drafts:
        if mirror.store.get(f"{draft}/{_DECIDED}") is not None:
            _carry_out(mirror, draft)


def _carry_out(mirror: Mirror, draft: str) -> None:
    """Each step may be done twice."""
    store, name = mirror.store, run_of(draft)
    new, there = _entries(mirror, draft), store.listing(draft)
    if MANIFEST in there:  # otherwise only the draft itself is left to be removed
        taken = [rest for rest in there if rest in new and rest != MANIFEST]
        gone = [rest for rest in store.listing(name) if rest not in new and rest not in (FILES, MANIFEST)]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(lambda rest: store.copy(f"{draft}/{rest}", f"{name}/{rest}", there[rest].size), taken))
            list(pool.map(lambda rest: store.delete(f"{name}/{rest}"), gone))
        for rest in (FILES, MANIFEST):
            store.copy(f"{draft}/{rest}", f"{name}/{rest}", there[rest].size)
    store.delete(f"{draft}/{MANIFEST}")
    store.delete(f"{draft}/{_DECIDED}")
    store.delete_folder(draft)
    for top in (draft, name):
        mirror.written.pop(top, None)


def _entries(mirror: Mirror, top: str) -> dict[str, Entry]:
    found = read_entries(mirror.store.get(f"{top}/{FILES}")) or {}
    return {rest: entry for rest, entry in found.items() if is_listed(rest)}
