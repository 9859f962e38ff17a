"""Files on the disk as one source: their rows in order, and a fingerprint of their contents."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from core.errors import Mistake
from precompute.sources.files import SourceFile, UnpackedReader
from precompute.sources.row import OnBad, Row, refuse

OnRead = Callable[[int, int], None]
"""Told how many bytes, as they are on the disk, were read, and of how many."""
ReadFile = Callable[[SourceFile, OnBad], Iterator[Row]]
"""Reads one file; the progress of its rows is that within the file."""

WHOLE = 16 * 2**20
BLOCK = 2**20


@dataclass(frozen=True)
class LocalSource:
    """Files that are read one after the other."""

    label: str
    files: tuple[SourceFile, ...]
    readers: Mapping[str, ReadFile]
    """By the files' kind."""
    on_read: OnRead | None = None
    """Called for every block that is read, also where it holds no record."""

    def fingerprint(self) -> str:
        """SHA-256 over each file's relative name, size and content.

        Of a file over 16 MB only the first, middle and last 1 MiB are read, and its time of change counts as well:
        to read a terabyte at every start would cost more than what an up-to-date step saves.
        """
        digest = hashlib.sha256()
        for file in self.files:
            try:
                _add(file, digest.update)
            except OSError as error:
                raise Mistake(f"{file.name} cannot be read ({error.strerror}). Check the file.") from error
        return digest.hexdigest()

    def rows(self, on_bad: OnBad = refuse) -> Iterator[Row]:
        """Every record of every file."""
        total = sum(file.size for file in self.files) or 1
        before = 0
        seen = False

        def bad(sentence: str) -> None:
            nonlocal seen
            seen = True
            on_bad(sentence)

        for file in self.files:
            for row in self.readers[file.kind](self._heard(file, before, total), bad):
                seen = True
                within = 0.0 if row.progress is None else row.progress
                yield Row(row.columns, row.where, row.key, min(1.0, (before + within * file.size) / total))
            before += file.size
        if not seen:
            raise empty(self.label)

    def _heard(self, file: SourceFile, before: int, total: int) -> SourceFile:
        told = self.on_read
        return file if told is None else replace(file, on_read=lambda done: told(before + done, total))


def empty(label: str) -> Mistake:
    """The sentence for a source without a single record."""
    return Mistake(f"{label} is empty. Name a source with at least one document in it.")


def refuse_empty(file: SourceFile) -> None:
    """Tell an empty file (packed or not) at once; only that of a file named alone is a mistake."""
    with UnpackedReader(file) as stream:
        if not stream.read(1):
            raise empty(file.name)


def _add(file: SourceFile, update: Callable[[bytes], None]) -> None:
    with open(file.path, "rb") as stream:
        stat = file.path.stat()
        # The name's length goes before it, so that no two lists of files give the same bytes.
        name = file.name.encode("utf-8", "surrogateescape")
        update(b"%d:%s:%d:" % (len(name), name, stat.st_size))
        if stat.st_size <= WHOLE:
            while block := stream.read(BLOCK):
                update(block)
            return
        for start in (0, (stat.st_size - BLOCK) // 2, stat.st_size - BLOCK):
            stream.seek(start)
            update(stream.read(BLOCK))
        update(b"%d" % stat.st_mtime_ns)
