"""A run as one file: a tar archive, compressed by zstd. Archives of strangers are read with care."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

import pyarrow as pa

from core.cache_address import is_run_name
from core.errors import Mistake
from core.runs.files import MANIFEST, replacing_here, write_mistake
from core.runs.manifest import Manifest, is_unchanged, read_manifest
from core.runs.manifest_check import MOST_BYTES
from precompute.publish.contents import RunContents

ENDINGS = {".tar.zst": "zstd", ".tar": ""}
MOST_GB = 100
_PIECE = 2**20
_LONGEST_HEADER = 2**16
_PART = re.compile(r"heads/stage=[1-4]/part-\d{5}\.parquet")


def ending_of(path: Path) -> str | None:
    return next((ending for ending in ENDINGS if path.name.endswith(ending)), None)


def write_archive(contents: RunContents, path: Path) -> None:
    """The manifest first, then all files in order; the same run gives the same bytes."""
    compression = ENDINGS[ending_of(path) or ".tar"]
    try:
        with (
            replacing_here(path) as temporary,
            _compressed(temporary, compression) as stream,
            tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive,
        ):
            for name, source in contents.files.items():
                member = tarfile.TarInfo(f"{contents.run.name}/{name}")
                member.size, member.mode = source.stat().st_size, 0o644
                with source.open("rb") as file:
                    archive.addfile(member, file)
    except OSError as error:
        raise write_mistake(path, error) from error


@contextmanager
def _compressed(path: Path, compression: str) -> Iterator[Any]:
    with pa.OSFile(str(path), "wb") as file:
        if not compression:
            yield file
            return
        with pa.CompressedOutputStream(file, compression) as stream:
            yield stream


class ArchivedRun:
    """An archive while it is read: the name of its run, its manifest, then file after file."""

    def __init__(self, path: Path, most_gb: float = MOST_GB) -> None:
        self.path, self._left = path, int(most_gb * 10**9)
        self._most_gb = most_gb

    def extract(self, folder: Path) -> tuple[str, Manifest]:
        """Writes all files below ``folder``; returns the run's name in the archive, and its manifest.

        Only what the manifest names is written, each file once, as a plain file, with the SHA-256 that the manifest
        gives it: no path leads elsewhere, nothing is a link, and a bomb ends at the limit.
        """
        try:
            with self._open() as stream, tarfile.open(fileobj=stream, mode="r|", tarinfo=_Member) as archive:
                return self._members(archive, folder)
        except (tarfile.TarError, pa.ArrowException, EOFError, ValueError) as error:
            raise self._bad("is damaged or not an archive of a run") from error
        except FileNotFoundError as error:
            raise Mistake(f"There is no file '{self.path}'. Check its name.") from error
        except OSError as error:  # pyarrow says so of bytes that are not zstd, too
            if error.errno is None:
                raise self._bad("is damaged or not an archive of a run") from error
            raise write_mistake(folder, error) from error

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        ending = ending_of(self.path)
        if ending is None:
            raise Mistake(
                f"'{self.path.name}' is not an archive of a run: its name must end in {' or '.join(ENDINGS)}."
            )
        with pa.OSFile(str(self.path), "rb") as file:
            if not ENDINGS[ending]:
                yield file
                return
            with pa.CompressedInputStream(file, ENDINGS[ending]) as stream:
                yield _Reader(stream)  # type: ignore[misc]

    def _members(self, archive: tarfile.TarFile, folder: Path) -> tuple[str, Manifest]:
        name, manifest, seen = "", None, set()
        for member in archive:
            top, _, rest = member.name.partition("/")
            if manifest is None:
                if not is_run_name(top) or rest != MANIFEST or not _is_file(member) or member.size > MOST_BYTES:
                    raise self._bad(f"does not begin with the {MANIFEST} of a run")
                name = top
                self._write(archive, member, folder / MANIFEST, None)
                if not is_unchanged((folder / MANIFEST).read_bytes()):
                    raise self._bad(f"has a {MANIFEST} that was changed after it was written")
                manifest = read_manifest(folder / MANIFEST, name)
                continue
            named = is_plain(rest) and rest not in seen and may_have(manifest, rest)
            if top != name or not _is_file(member) or not named:
                raise self._bad(f"contains a file that its {MANIFEST} does not list ({member.name[:120]!r})")
            seen.add(rest)
            self._write(archive, member, folder / rest, manifest.files.get(rest))
        if manifest is None:
            raise self._bad("is empty")
        if missing := sorted(set(manifest.files) - seen):
            raise self._bad(f"is incomplete: {missing[0]} is missing, which its {MANIFEST} lists")
        return name, manifest

    def _write(self, archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path, expected: str | None) -> None:
        source, digest = archive.extractfile(member), hashlib.sha256()
        assert source is not None  # it is a regular file
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            while piece := source.read(_PIECE):
                self._left -= len(piece)
                if self._left < 0:
                    raise Mistake(
                        f"'{self.path.name}' holds more than {self._most_gb:g} GB and was not unpacked. If you trust "
                        "it, raise the limit with --most-gb."
                    )
                digest.update(piece)
                file.write(piece)
        if expected is not None and digest.hexdigest() != expected:
            raise self._bad(f"has a {member.name.partition('/')[2]} that does not match its {MANIFEST} (SHA-256)")

    def _bad(self, what: str) -> Mistake:
        return Mistake(f"'{self.path.name}' {what}. Get the file again.")


class _Member(tarfile.TarInfo):
    """A header that is read into memory whole, such as that of a long name, is short, or is none of ours."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type not in tarfile.REGULAR_TYPES and self.size > _LONGEST_HEADER:
            raise tarfile.ReadError("a header is too long")
        return super()._proc_member(archive)  # type: ignore[misc]


def _is_file(member: tarfile.TarInfo) -> bool:
    return member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse()


class _Reader(io.RawIOBase):
    """A compressed stream as tarfile wants it: fewer bytes than asked for only at the end."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        found: list[bytes] = []
        while size != 0 and (piece := self._stream.read(size if size > 0 else None)):
            found.append(piece)
            size -= len(piece) if size > 0 else 0
        return b"".join(found)


def is_plain(path: str) -> bool:
    """Whether it is a path inside a run, and nothing else on any system."""
    parts = PurePosixPath(path).parts
    plain = all(re.fullmatch(r"[\w=-][\w.= -]*", part, re.ASCII) for part in parts)
    return bool(parts) and len(parts) <= 6 and plain and "/".join(parts) == path


def may_have(manifest: Manifest, path: str) -> bool:
    """Whether the run has this file: it has a checksum, or is a part of a run whose parts have none."""
    return path in manifest.files or bool(_PART.fullmatch(path))
