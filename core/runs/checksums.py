"""SHA-256 of every file of a run, in its manifest: a step writes those of the files it made, ``verify`` compares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from core.cores import cores
from core.errors import Mistake
from core.remote.listing import MANIFEST, found_in, is_kept_here, is_listed, local_entries
from core.remote.mirror_paths import is_copy
from core.remote.mirrors import mirror_at
from core.remote.objects import sha256_of
from core.runs.manifest import Manifest, is_unchanged
from core.runs.manifest_check import MOST_FILES
from core.runs.run import Run
from core.runs.steps import STEPS, command, writes


def begun(files: Mapping[str, str], step: str) -> dict[str, str]:
    """The checksums that hold while ``step`` is at work: those of the files that it does not write."""
    return {path: digest for path, digest in files.items() if not writes(step, path)}


def checksums(run: Run, known: Mapping[str, str]) -> dict[str, str]:
    """The SHA-256 of every file of a run, by path; of those ``known`` they are not worked out again.

    A file of another step keeps the checksum that this step gave it, so that damage is not written down as right.
    """
    mirror = mirror_at(run.cache)
    if mirror is None:
        paths = _paths(run.folder)
        found = {path: known[path] for path in paths if path in known}
        found |= _hashed(run, (path for path in paths if path not in known))
    else:  # what was put there was hashed on the way
        top = run.folder.name
        before = local_entries(run.folder)
        there = found_in(mirror.store, top, before, mirror.written.get(top, {}))
        entries = {**(before if is_copy(top) else {}), **there}
        summed = {path: entry.sha256 for path, entry in entries.items() if entry.sha256 and _has_checksum(path)}
        found = {path: known.get(path, digest) for path, digest in summed.items()}
    if len(found) > MOST_FILES:  # the parts of tens of millions of documents; their pages have checksums of their own
        found = {path: digest for path, digest in found.items() if not path.startswith("heads/")}
    return dict(sorted(found.items()))


def expected(run: Run, manifest: Manifest) -> Mapping[str, str]:
    """What the files should be: as the manifest says, or else ``files.json`` of the object store."""
    if manifest.files:
        return manifest.files
    entries = local_entries(run.folder) if mirror_at(run.cache) is not None else {}
    return {path: entry.sha256 for path, entry in entries.items() if entry.sha256 and _has_checksum(path)}


def check_checksums(run: Run, manifest: Manifest) -> Iterator[tuple[Path, str]]:
    """Each file that has a checksum, with what is wrong with it, if anything is; and the manifest itself."""
    if not is_unchanged((run.folder / MANIFEST).read_bytes()):
        yield run.folder / MANIFEST, f"manifest.json {_CHANGED}. {_again(run, MANIFEST)}"
    listed = expected(run, manifest)
    there = []
    for path in listed:
        try:
            if run.inside(run.folder / path).is_file():
                there.append(path)
            else:
                yield run.folder / path, f"{path} is missing. {_again(run, path)}"
        except Mistake as mistake:
            yield run.folder / path, str(mistake)
    for path, digest in _hashed(run, there).items():
        wrong = digest != listed[path]
        yield run.folder / path, f"{path} {_CHANGED}. {_again(run, path)}" if wrong else ""


_CHANGED = "has changed since it was written: its SHA-256 differs from the recorded one"


def _again(run: Run, path: str) -> str:
    step = next((step for step in STEPS if step != "embed" and writes(step, path)), "")
    if path == "documents.parquet" or step in ("", "slim"):
        return f"Rebuild it with '{run.rebuild}'."
    source = ("--labels", Path(path).stem) if step == "label" else ()
    return f"Rebuild it with '{command(step, run.name, *source, '--again')}'."


def _hashed(run: Run, paths: Iterable[str]) -> dict[str, str]:
    """A file that goes while it is read is no file of the run."""

    def hashed(path: str) -> str:
        try:
            return sha256_of(run.folder / path)
        except FileNotFoundError:
            return ""

    paths = list(paths)
    with ThreadPoolExecutor(cores()) as pool:  # hashing lets other threads run
        return {path: digest for path, digest in zip(paths, pool.map(hashed, paths), strict=True) if digest}


def _paths(folder: Path) -> list[str]:
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return [path for path in found if _has_checksum(path)]


def _has_checksum(path: str) -> bool:
    """Not the manifest, which has its own, nor what is there only while a step is at work."""
    name = Path(path).name
    unfinished = is_kept_here(path) or not is_listed(path) or ".writing" in name or name.startswith(".")
    return path != MANIFEST and not unfinished
