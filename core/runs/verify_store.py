"""Is a run whole in its object store? The part of ``verify`` for a cache that is mirrored."""

from __future__ import annotations

from collections.abc import Iterator

from core.remote.listing import heads, local_entries
from core.remote.mirrors import mirror_at
from core.runs.run import Run


def check_store(run: Run) -> Iterator[tuple[None, str]]:
    """What each object says it is against files.json; the other checks read what was fetched, perhaps long ago."""
    mirror = mirror_at(run.cache)
    if mirror is None:
        return
    listed = local_entries(run.folder)
    there = heads(mirror.store, run.folder.name, listed)
    for rest, entry in listed.items():
        found = there.get(rest)
        if found is None:
            yield None, f"{rest} is missing at {mirror.address}. Rebuild it with '{run.rebuild}'."
        elif found.size != entry.size or (found.sha256 and entry.sha256 and found.sha256 != entry.sha256):
            yield None, f"{rest} at {mirror.address} is not what files.json says. Rebuild it with '{run.rebuild}'."
