"""A cache and its runs: the files of a run, its documents and vectors, and the lock of the job that makes them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.cache_address import check_run_name, is_run_name
from core.errors import Mistake
from core.model.shape import ModelShape
from core.model.stages import check_head, check_stage, split_heads
from core.runs.backend import Backend, backend_at, trouble_at
from core.runs.files import MANIFEST, is_inside, is_regular, write_mistake
from core.runs.lock import is_locked, locked, note_in, turn
from core.runs.manifest import Manifest, read_manifest
from core.runs.parquet import RowLookup, read_columns
from core.runs.parts import digest_of, is_finite, read_part, write_part
from core.runs.schema import documents_schema, heads_schema

_PATIENCE = 20
"""Hundredths of a second in which a run that is being replaced must be back."""


def run_names(cache: Path) -> list[str]:
    """The runs in a cache, finished or not, in alphabetical order."""
    names = backend_at(cache).names()
    return [name for name in names if is_run_name(name) and _lies_in(cache / name, cache) and Run(cache, name).exists()]


def open_run(cache: Path, name: str) -> Run:
    """The run ``name``, or a sentence that lists the ones there are."""
    run = Run(cache, name)
    if not run.exists():
        if run.aside.is_dir():
            raise Mistake(f"The run '{name}' was being replaced when its job was killed. Start the same command again.")
        known = run_names(cache)
        if trouble := trouble_at(cache):
            raise Mistake(trouble)
        remedy = f"There are: {', '.join(known)}." if known else "The cache is empty: build one with 'make demo'."
        raise Mistake(f"There is no run '{name}' in the cache. {remedy}")
    return run


@dataclass(frozen=True)
class Run:
    """A folder ``cache/<name>``; the name is checked, and a symbolic link may not lead out of the cache."""

    cache: Path
    name: str

    def __post_init__(self) -> None:
        check_run_name(self.name)
        if not _lies_in(self.folder, self.cache):
            raise Mistake(f"The run '{self.name}' lies outside the cache folder. Choose another run.")

    def inside(self, path: Path) -> Path:
        """``path``, unless a symbolic link leads from it out of the cache; fetched, if the cache is a mirror."""
        self.backend.fetch(path)
        if not is_inside(path, self.cache):
            raise Mistake(
                f"{path.relative_to(self.folder)} of run '{self.name}' points outside the cache folder through a "
                "symbolic "
                "link. Put the file itself there."
            )
        return path

    @property
    def backend(self) -> Backend:
        return backend_at(self.cache)

    @property
    def folder(self) -> Path:
        return self.cache / self.name

    @property
    def rebuild(self) -> str:
        return f"python -m precompute embed {self.name} --source … --replace"

    def exists(self) -> bool:
        """Whether there is a run; where it is being replaced this moment, the new one is waited for."""
        self.backend.fetch(self._manifest_path)
        for _ in range(_PATIENCE):
            if is_regular(self._manifest_path):
                return True
            if not self.aside.is_dir():
                return is_regular(self._manifest_path)
            time.sleep(0.01)
        return False

    @property
    def _manifest_path(self) -> Path:
        return self.folder / MANIFEST

    def manifest(self) -> Manifest:
        self.exists()  # it may be on its way
        return read_manifest(self.inside(self._manifest_path), self.name)

    def manifest_version(self) -> tuple[int, ...]:
        """Changes whenever the manifest is written again, and costs less than reading it; empty where there is none."""
        self.exists()
        try:
            found = self._manifest_path.stat()
        except OSError:
            return ()
        return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size

    def write_manifest(self, manifest: Manifest) -> None:
        manifest.write(self._manifest_path)

    @property
    def documents_path(self) -> Path:
        return self.folder / "documents.parquet"

    @property
    def staging(self) -> Path:
        """Documents by part, while the run is being made."""
        return self.folder / "staging"

    @property
    def failed_path(self) -> Path:
        """Documents that could not be embedded, where there are any."""
        return self.folder / "failed.parquet"

    @property
    def share_basis_path(self) -> Path:
        """What the numbers of stage 4 mean; see core.runs.shares."""
        return self.folder / "heads" / "share_basis.parquet"

    def part_path(self, stage: int, number: int) -> Path:
        return self.folder / "heads" / f"stage={stage}" / f"part-{number:05d}.parquet"

    def parts(self, stage: int) -> list[Path]:
        return self.parts_in(self.part_path(stage, 0).parent)

    def parts_in(self, folder: Path) -> list[Path]:
        """The parts in one of the run's folders, fetched or not, in order."""
        found = self.backend.files_in(folder)
        return sorted(path for path in found if path.parent == folder and path.match("part-*.parquet"))

    def has(self, path: Path) -> bool:
        """Whether the run has this file, fetched or not."""
        return self.backend.has(path)

    def labels_path(self, source: str) -> Path:
        return self.folder / "labels" / f"{source}.parquet"

    @property
    def topics_path(self) -> Path:
        return self.folder / "topics.parquet"

    @property
    def original_topics_path(self) -> Path:
        return self.folder / "analysis" / "original_topics.parquet"

    def similarity_path(self, stage: int) -> Path:
        return self.folder / "similarity" / f"stage={stage}.parquet"

    def map_path(self, stage: int, by_head: bool = False) -> Path:
        """Of all heads together, or of each head by itself."""
        return self.folder / "map" / ("by-head" if by_head else "") / f"stage={stage}.parquet"

    @property
    def preview_path(self) -> Path:
        """The points of small maps, of all stages."""
        return self.folder / "map" / "preview.parquet"

    @property
    def search_path(self) -> Path:
        """The full-text index; see core.search.index."""
        return self.folder / "search.sqlite"

    @property
    def queries_path(self) -> Path:
        return self.folder / "retrieval" / "queries.parquet"

    def analysis_path(self, name: str) -> Path:
        return self.folder / "analysis" / f"{name}.parquet"

    def bytes(self, under: str = "") -> int:
        """Of all the run's files, or of those of one folder."""
        return sum(self.backend.files_in(self.folder / under).values())

    def documents(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The documents, in order of ``doc``; only the columns asked for are read."""
        manifest = self.manifest()  # once: the run may be replaced between two reads
        corpus = manifest.corpus
        # While a run is being made the manifest does not say yet how many there will be.
        rows = int(corpus["documents"]) if manifest.is_done("embed") else None
        schema = documents_schema(corpus["extra"])
        table = read_columns(self.inside(self.documents_path), schema, self.rebuild, rows, columns)
        if "doc" in table.column_names and not np.array_equal(table["doc"].to_numpy(), np.arange(len(table))):
            raise Mistake(f"documents.parquet is not in order of 'doc'. Rebuild it with '{self.rebuild}'.")
        return table

    def document_lookup(self) -> RowLookup:
        """Single documents of a finished run, however large it is: row ``doc`` of documents.parquet."""
        corpus = self.manifest().corpus
        schema = documents_schema(corpus["extra"])
        return RowLookup(self.inside(self.documents_path), schema, self.rebuild, int(corpus["documents"]))

    def vectors(self, stage: int, only: int | None = None) -> Iterator[np.ndarray]:
        """Rows ``[doc, width]`` of one stage, float16 or float32, a part at a time, in order; or ``only`` one part.

        Row i is of document ``vector_docs()[i]``.
        """
        yield from self._vectors(self.manifest(), stage, only)

    def _vectors(self, manifest: Manifest, stage: int, only: int | None = None) -> Iterator[np.ndarray]:
        check_stage(stage, manifest.stages)
        schema = heads_schema(manifest.shape.width(stage), manifest.vectors["dtype"], manifest.shape.heads)
        paths = self.parts(stage)
        expected = manifest.parts if manifest.is_done("embed") else len(paths)
        # A part that is missing in the middle would give every later document another one's vectors.
        if paths != [self.part_path(stage, number) for number in range(expected)]:
            raise Mistake(f"heads/stage={stage} does not have its {expected} parts. Rebuild it with '{self.rebuild}'.")
        size, count = int(manifest.vectors["part_size"]), manifest.with_vectors
        for number, path in enumerate(paths):
            if only not in (None, number):
                continue
            rows = min(size, count - number * size) if manifest.is_done("embed") else None
            yield read_part(self.inside(path), schema, self.rebuild, rows)

    def finite_vectors(self, stage: int) -> Iterator[np.ndarray]:
        """``vectors``, for pages: a stranger's may not be finite. Steps check theirs, and name the head."""
        for number, found in enumerate(self.vectors(stage)):
            self._refuse_not_finite(found, stage, number)
            yield found

    def _refuse_not_finite(self, vectors: np.ndarray, stage: int, part: int) -> None:
        if not is_finite(vectors):
            name = f"heads/stage={stage}/{self.part_path(stage, part).name}"
            raise Mistake(f"{name} holds a number that is not finite. Rebuild it with '{self.rebuild}'.")

    def vector_docs(self) -> np.ndarray:
        """The documents that have vectors, in order: all, unless the run keeps those of a sample."""
        return self._vector_docs(self.manifest())

    def _vector_docs(self, manifest: Manifest) -> np.ndarray:
        documents = int(manifest.corpus["documents"])
        if not manifest.is_sampled:
            return np.arange(documents)
        stage = manifest.stages[0]
        schema = heads_schema(manifest.shape.width(stage), manifest.vectors["dtype"], manifest.shape.heads)
        paths = (self.inside(self.part_path(stage, number)) for number in range(manifest.parts))
        parts = [read_columns(path, schema, self.rebuild, None, ["doc"])["doc"].to_numpy() for path in paths]
        docs = np.concatenate(parts).astype(np.int64)
        in_order = len(docs) == manifest.with_vectors and (np.diff(docs) > 0).all()
        if not in_order or docs[0] < 0 or docs[-1] >= documents:
            raise Mistake(
                f"heads/stage={stage} lists documents that are not in the run. Rebuild it with '{self.rebuild}'."
            )
        return docs

    def document_vectors(self, stage: int, doc: int) -> np.ndarray:
        """One document's row ``[width]``: only its part is read."""
        manifest = self.manifest()
        row = row_among(self._vector_docs(manifest), doc) if manifest.is_sampled else doc
        if row < 0:
            raise Mistake(
                f"The vectors of document {doc + 1:,} are not stored; those of {manifest.with_vectors:,} others are. "
                "Choose one of these, or embed the corpus again."
            )
        part, row = divmod(row, int(manifest.vectors["part_size"]))
        found: np.ndarray = next(self._vectors(manifest, stage, only=part))[row]
        self._refuse_not_finite(found, stage, part)
        return found

    def head_vectors(self, stage: int, head: int) -> np.ndarray:
        """One head's vectors, ``[doc, dim]`` in float32; ``head`` from 1, or 0 for the full embedding's rows.

        Row i is of document ``vector_docs()[i]``.
        """
        manifest = self.manifest()
        shape = manifest.shape
        if head:
            check_head(head, shape.heads)
        slices = [
            (split_heads(rows, stage, shape)[:, head - 1] if head else rows).astype(np.float32)
            for rows in self._vectors(manifest, stage)
        ]
        if not slices:
            raise Mistake(f"The run '{self.name}' has no head vectors at stage {stage} yet. Run '{self.rebuild}'.")
        return np.concatenate(slices)

    def to_float32(self, shape: ModelShape) -> None:
        """Rewrites every float16 part, one at a time; may be interrupted and repeated."""
        for stage in shape.possible_stages:
            narrow = heads_schema(shape.width(stage), "float16")
            for path in self.parts(stage):
                digest = digest_of(self.inside(path))
                if digest is None or pq.read_schema(path).field("vector").type.value_type != pa.float16():
                    continue
                docs = pq.read_table(path, columns=["doc"])["doc"].to_numpy()
                write_part(path, docs, read_part(path, narrow, self.rebuild), "float32", digest)

    def remove(self) -> None:
        """Removes all that is in the run's folder."""
        self.backend.remove(self.folder)
        self._manifest_path.unlink(missing_ok=True)  # first: killed halfway, it is no finished run
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()

    @property
    def real_name(self) -> str:
        """The folder's, where the run's name is a link to another folder of the cache."""
        return (self.cache / self.name).resolve().name

    @property
    def aside(self) -> Path:
        """Where the run lies for a moment while another one takes its place; see core.runs.replace."""
        return self.cache / f".old-{self.real_name}"

    @property
    def _lock_path(self) -> Path:
        """Beside the folder, not in it: it is held while another folder takes its place."""
        return self.cache / f".lock-{self.real_name}"

    @contextlib.contextmanager
    def lock(self, shared: bool = False) -> Iterator[None]:
        """Only one job at a time works on a run, or several that share it."""
        with locked(self._lock_path, self.name, shared), self.backend.lease(self.name):
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise write_mistake(self.folder, error) from error
            try:
                self.refuse_links()
                yield
            finally:
                with contextlib.suppress(OSError):  # nothing came of it: the name is free again
                    self.folder.rmdir()

    def refuse_links(self) -> None:
        """A job writes: into no folder and over no file that lies elsewhere."""
        for folder, folders, files in os.walk(self.folder):
            for name in (*folders, *files):
                path = Path(folder, name)
                if path.is_symlink():
                    self.inside(path)

    def is_locked(self) -> bool:
        """Whether a job is at work on this run right now."""
        here = is_locked(self._lock_path) or any(map(is_locked, self._rank_paths()))
        return here or self.backend.is_leased(self.name)

    @contextlib.contextmanager
    def rank(self, number: int, mark: str) -> Iterator[None]:
        """One of several jobs that share the run; each number is there once, and all have the same mark."""
        path = self.cache / f".rank{number}-{self.real_name}"
        with locked(path, f"{self.name}' as rank '{number}", mark=mark):
            try:
                for other in self._rank_paths():
                    note = note_in(other)
                    if note and f"({mark})" not in note and is_locked(other):
                        raise Mistake(
                            f"Other processes are building the run '{self.name}' from different inputs. Give all of "
                            "them the same command, "
                            "or wait until they have ended."
                        )
                yield
            finally:
                path.unlink(missing_ok=True)

    def turn(self, to: str, wait: bool = False) -> contextlib.AbstractContextManager[bool]:
        """Among jobs that share the run: whether this one is the one to do something; see core.runs.lock.turn."""
        return turn(self.cache / f".{to}-{self.real_name}", wait)

    def _rank_paths(self) -> list[Path]:
        pattern = re.compile(rf"\.rank\d+-{re.escape(self.real_name)}")
        try:
            return [path for path in self.cache.iterdir() if pattern.fullmatch(path.name)]
        except OSError:
            return []


def row_among(docs: np.ndarray, doc: int) -> int:
    """Where a document stands among others, ``docs`` in order; -1 where it is not among them."""
    row = int(np.searchsorted(docs, doc))
    return row if row < len(docs) and docs[row] == doc else -1


def _lies_in(folder: Path, cache: Path) -> bool:
    """Whether a run is a folder of the cache itself, once symbolic links have been followed."""
    return is_inside(folder, cache) and folder.resolve().parent == cache.resolve()
