"""From a folder of files that came from elsewhere to a run of the cache: verified, then moved in, the manifest last."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from core.cache_address import check_run_name
from core.errors import Mistake
from core.runs import verify
from core.runs.backend import attached
from core.runs.files import MANIFEST, replacing, write_mistake
from core.runs.run import Run
from precompute.job.fingerprint import part_digest


@contextmanager
def room_for_run(cache: Path) -> Iterator[Path]:
    """A folder beside the cache's runs that nobody takes for one, removed in the end."""
    # In a mirror, whatever is read is asked of the object store: there it is a folder beside the mirror.
    place = cache if attached(cache) is None else cache.parent
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=place, ignore_cleanup_errors=True) as folder:
            yield Path(folder)
    except OSError as error:
        raise write_mistake(cache / "run", error) from error


def install(folder: Path, cache: Path, name: str, on_file: Callable[[str], None] = lambda name: None) -> Run:
    """Makes the files of ``folder`` the run ``name``; what is not whole is refused, and a run that exists stays."""
    check_run_name(name)
    refuse_existing(cache, name)
    verdict = verify.verify(Run(folder.parent, folder.name), part_digest)
    if verdict.problems:
        raise Mistake(f"The run is incomplete and was not installed: {verdict.problems[0]}")
    run = Run(cache, name)
    with run.lock():
        refuse_existing(cache, name)
        run.remove()  # what an earlier, interrupted start has left
        paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != MANIFEST]
        for path in (*paths, folder / MANIFEST):
            rest = path.relative_to(folder).as_posix()
            with replacing(run.folder / rest) as temporary:
                _move(path, temporary)
            on_file(rest)
    return run


def refuse_existing(cache: Path, name: str) -> None:
    if Run(cache, name).exists():
        raise Mistake(f"There is a run '{name}' in the cache already. Give the new one another name with --as NAME.")


def _move(path: Path, to: Path) -> None:
    try:
        os.replace(path, to)
    except OSError:  # another file system
        shutil.copyfile(path, to)
