"""Which files a path, folder or glob names, and their bytes, unpacked."""

import glob
import gzip
import io
import os
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import Mistake, listed

MAX_RECORD = 64 * 2**20
"""Bytes; a longer line or text file is a bad record, so that one broken file cannot take all memory."""


@dataclass(frozen=True)
class SourceFile:
    """One file of a source."""

    path: Path
    name: str
    """Relative to the folder that was named, with ``/``; of a single file its own name."""
    size: int
    kind: str
    """Extension in lower case without the packing: ``.jsonl`` of ``A.JSONL.gz``."""
    on_read: Callable[[int], None] | None = None
    """Called with the bytes read so far, as they are packed on the disk, once for every block."""


@dataclass(frozen=True)
class SourceFiles:
    """The files that a name stands for, sorted by their relative names."""

    label: str
    files: tuple[SourceFile, ...]
    alone: bool
    """True if the name was that of one file rather than of a folder or a glob."""


def find(name: str, kinds: Collection[str]) -> SourceFiles:
    """The files of the given kinds at a path, in a folder (recursively) or matched by a glob.

    Hidden files and folders are passed over unless they are named themselves.
    """
    path = Path(name).expanduser()
    if path.is_file():
        file = _file(path, path.name)
        if not _readable(file, kinds):
            raise Mistake(f"{path.name} is not of a supported type. {_known(kinds)}")
        return SourceFiles(path.name, (file,), alone=True)
    if path.is_dir():
        return SourceFiles(_name(path), _of_kinds(name, path, _walk(path), kinds), alone=False)
    if path.exists():
        raise Mistake(f"{name!r} is neither a file nor a folder. Name a file, a folder or a glob.")
    if not glob.has_magic(str(path)):
        raise Mistake(f"There is no file or folder {name!r}. Check the path, or name demo or hf:DATASET.")
    parts = path.parts
    fixed = next(i for i, part in enumerate(parts) if glob.has_magic(part))
    root = Path(*parts[:fixed])
    matches = {Path(match) for match in glob.glob(str(path), recursive=True)}
    if not matches:
        raise Mistake(f"No file matches {name!r}. Check the pattern, and quote it so that the shell leaves it alone.")
    label = "/".join(filter(None, [_name(root), *parts[fixed:]]))
    return SourceFiles(label, _of_kinds(name, root, matches, kinds), alone=False)


def _of_kinds(name: str, root: Path, paths: Collection[Path], kinds: Collection[str]) -> tuple[SourceFile, ...]:
    files = [_file(path, path.relative_to(root).as_posix()) for path in paths if path.is_file()]
    files = [file for file in files if _readable(file, kinds)]
    if not files:
        raise Mistake(f"{name!r} contains no file of a supported type. {_known(kinds)}")
    return tuple(sorted(files, key=lambda file: file.name))


def _walk(folder: Path) -> list[Path]:
    def fail(error: OSError) -> None:
        raise Mistake(f"{error.filename} cannot be read ({error.strerror}). Check its permissions.")

    paths = []
    for parent, folders, names in os.walk(folder, onerror=fail):
        folders[:] = [each for each in folders if not each.startswith(".")]
        paths += [Path(parent, each) for each in names if not each.startswith(".")]
    return paths


def _file(path: Path, name: str) -> SourceFile:
    plain = path.with_suffix("") if path.suffix.lower() in UNPACKERS else path
    return SourceFile(path, name, path.stat().st_size, plain.suffix.lower())


def _readable(file: SourceFile, kinds: Collection[str]) -> bool:
    # Parquet packs its own pages, and its reader must seek.
    return file.kind in kinds and not (file.kind == ".parquet" and file.path.suffix.lower() in UNPACKERS)


def _known(kinds: Collection[str]) -> str:
    return f"Supported: {listed(kinds)}; all but .parquet also with {' or '.join(UNPACKERS)}."


def _name(folder: Path) -> str:
    return Path(os.path.abspath(folder)).name


def _zstd(packed: io.RawIOBase) -> Any:
    import pyarrow as pa

    return pa.CompressedInputStream(pa.PythonFile(packed, mode="r"), "zstd")


UNPACKERS: dict[str, Callable[[io.RawIOBase], Any]] = {
    ".gz": lambda packed: gzip.GzipFile(fileobj=packed),
    ".zst": _zstd,
}
"""Both read on after the end of a member or frame, to the end of the file."""


class _Unpacked(io.RawIOBase):
    """A file's plain bytes; whatever keeps them from being read is told as a sentence that names the file."""

    def __init__(self, file: SourceFile) -> None:
        self._name, self._on_read = file.name, file.on_read
        try:
            self.packed = open(file.path, "rb", buffering=0)  # noqa: SIM115 (closed by close)
        except OSError as error:
            raise Mistake(f"{file.name} cannot be opened ({error.strerror}). Check the file.") from error
        unpack = UNPACKERS.get(file.path.suffix.lower())
        self._plain = unpack(self.packed) if unpack else self.packed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            chunk = self._plain.read(len(buffer))
        except (OSError, EOFError, zlib.error) as error:
            raise Mistake(f"{self._name} is cut short or damaged ({error}). Fetch or pack it again.") from error
        buffer[: len(chunk)] = chunk
        if self._on_read is not None:
            self._on_read(self.packed.tell())
        return len(chunk)

    def close(self) -> None:
        if not self.closed and hasattr(self, "packed"):
            self.packed.close()
        super().close()


class UnpackedReader(io.BufferedReader):
    """A file's plain bytes, buffered."""

    def __init__(self, file: SourceFile) -> None:
        self._unpacked = _Unpacked(file)
        self._size = file.size
        super().__init__(self._unpacked, 2**16)

    def fraction(self) -> float:
        """How much of the file, as it is packed on the disk, has been consumed: 0..1."""
        return min(1.0, self._unpacked.packed.tell() / self._size) if self._size else 1.0

    def lines(self) -> Iterator[tuple[int, bytes | None]]:
        """Every line that is not blank, its end included, with its number; None in place of one over MAX_RECORD."""
        number = 0
        while line := self.readline(MAX_RECORD + 1):
            number += 1
            if len(line) > MAX_RECORD:
                while line and not line.endswith(b"\n"):
                    line = self.readline(MAX_RECORD)
                yield number, None
            elif line.isspace():
                number += self._skip_blank()
            else:
                yield number, line

    def _skip_blank(self) -> int:
        """Passes over the blank lines that are in the buffer, all at once, and returns how many."""
        buffered = self.peek()
        blank = buffered[: len(buffered) - len(buffered.lstrip())]
        self.read(blank.rfind(b"\n") + 1)
        return blank.count(b"\n")
