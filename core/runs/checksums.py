"""SHA-256 of every file of a run, in its manifest: a step writes those of the files it made, ``verify`` compares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from core.errors import Mistake
from core.machine import cores
from core.runs.files import MANIFEST, is_listed, is_local, is_temporary, sha256_of
from core.runs.manifest import Manifest, is_unchanged
from core.runs.manifest_check import MOST_FILES
from core.runs.run import Run
from core.runs.schema import MADE_BY

_WRITES: dict[str, tuple[str, ...]] = {
    "search": ("search.sqlite",),
    "label": ("labels/", "documents.parquet"),
    "analyse": ("topics.parquet", "similarity/", "analysis/original_topics.parquet"),
    "project": ("map/",),
    "retrieve": ("retrieval/",),
    "slim": ("heads/",),
    "layers": (),
    "attention": (),
}
"""By step: its files, and how the paths of others begin; beside its tables of ``analysis/``. The rest is of 'embed'."""


def begun(files: Mapping[str, str], step: str) -> dict[str, str]:
    """The checksums that hold while ``step`` is at work: those of the files that it does not write."""
    return {path: digest for path, digest in files.items() if not _writes(step, path)}


def checksums(run: Run, known: Mapping[str, str]) -> dict[str, str]:
    """The SHA-256 of every file of a run, by path; of those ``known`` they are not worked out again.

    A file of another step keeps the checksum that this step gave it, so that damage is not written down as right.
    """
    stored = run.backend.stored_digests(run.folder)
    if stored is None:
        paths = [path.relative_to(run.folder).as_posix() for path in run.backend.files_in(run.folder)]
        paths = [path for path in paths if _has_checksum(path)]
        found = {path: known[path] for path in paths if path in known}
        found |= _hashed(run, (path for path in paths if path not in known))
    else:
        found = {path: known.get(path, digest) for path, digest in stored.items() if _has_checksum(path)}
    if len(found) > MOST_FILES:  # the parts of tens of millions of documents; their pages have checksums of their own
        found = {path: digest for path, digest in found.items() if not path.startswith("heads/")}
    return dict(sorted(found.items()))


def expected(run: Run, manifest: Manifest) -> Mapping[str, str]:
    """What the files should be: as the manifest says, or else ``files.json`` of the object store."""
    if manifest.files:
        return manifest.files
    listed = run.backend.listed_digests(run.folder)
    return {path: digest for path, digest in listed.items() if _has_checksum(path)}


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


def _writes(step: str, path: str) -> bool:
    if step not in _WRITES:
        return True
    tables = tuple(f"analysis/{name}.parquet" for name in MADE_BY.get(step, ()))
    return path.startswith((*_WRITES[step], *tables))


def _again(run: Run, path: str) -> str:
    step = next((step for step in _WRITES if _writes(step, path)), "")
    if path == "documents.parquet" or step in ("", "slim"):
        return f"Rebuild it with '{run.rebuild}'."
    source = f" --labels {Path(path).stem}" if step == "label" else ""
    return f"Rebuild it with 'python -m precompute {step} {run.name}{source} --again'."


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


def _has_checksum(path: str) -> bool:
    """Not the manifest, which has its own, nor what is there only while a step is at work."""
    unfinished = is_local(path) or not is_listed(path) or is_temporary(path) or Path(path).name.startswith(".")
    return path != MANIFEST and not unfinished
