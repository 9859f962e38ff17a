"""An object store through pyarrow: whole objects in and out, each with its SHA-256 in its content type."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from core.cache_address import Address
from core.errors import Mistake
from core.remote.conditional import ConditionalWrites
from core.remote.errors import as_sentences
from core.runs.files import sha256_of, write_mistake


@dataclass(frozen=True)
class Patience:
    """``tries`` of a request; seconds for a connection, of silence, and for all tries at Google's store."""

    tries: int
    connect: float
    silence: float
    altogether: int


JOB, APP, PROBE = Patience(3, 3.0, 20.0, 20), Patience(2, 2.0, 5.0, 10), Patience(1, 1.0, 2.0, 3)
"""A call of the app goes on after its readers have left it (core.remote.breaker); a probe waits for the one before."""
_FIRST, _PIECE, _BEAT = 2**17, 8 * 2**20, 0.3
"""Bytes of a file's first piece and of the largest; and seconds that one should take, by which others are cut."""
_MOST_COPIED = 5 * 10**9
"""Bytes that S3 copies by itself."""
_TYPES = {".parquet": "application/vnd.apache.parquet", ".json": "application/json"}
_SIGNED = re.compile(r"sha256=([0-9a-f]{64}); ?size=(\d+)")


@dataclass(frozen=True)
class Entry:
    """What an object is; ``sha256`` is '' where whoever put it there did not say."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Listed:
    """An object in a listing; ``modified`` is the store's own time, in seconds."""

    size: int
    modified: float


class Store:
    def __init__(self, address: Address, patience: Patience = JOB) -> None:
        self.address, self.patience = address, patience
        self.watched: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
        """Around each request."""

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        with self.watched(), as_sentences(self.address):
            yield

    @cached_property
    def _fs(self) -> Any:
        from pyarrow import fs

        with as_sentences(self.address):
            if self.address.scheme == "gs":
                return fs.GcsFileSystem(retry_time_limit=timedelta(seconds=self.patience.altogether))
            where = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
            given = {}
            if where:  # MinIO, Ceph and others that speak S3
                found = urlsplit(where if "://" in where else f"https://{where}")
                if not found.hostname or "@" in found.netloc:
                    raise Mistake(
                        "AWS_ENDPOINT_URL is not a valid address. Write http://host:port, without name or password."
                    )
                given = {"endpoint_override": found.netloc, "scheme": found.scheme}
            region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
            return fs.S3FileSystem(
                region=region or ("us-east-1" if where else None),
                connect_timeout=self.patience.connect,
                request_timeout=self.patience.silence,
                retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=self.patience.tries),
                allow_delayed_open=True,  # a small object is one request
                background_writes=False,  # which would copy a large file into memory, whole
                **given,
            )

    @cached_property
    def conditional(self) -> ConditionalWrites:
        return ConditionalWrites(self.address, self.patience.connect, self.patience.silence)

    def get(self, name: str) -> bytes | None:
        """An object whole; None where there is none."""
        try:
            return b"".join(self._pieces(name))
        except FileNotFoundError:
            return None

    def put(self, name: str, data: bytes | Path) -> Entry:
        """An object is there whole or not at all: it is given in one call, which no signal interrupts."""
        digest = sha256_of(data) if isinstance(data, Path) else hashlib.sha256(data).hexdigest()
        size = data.stat().st_size if isinstance(data, Path) else len(data)
        kind = _TYPES.get(Path(name).suffix, "application/octet-stream")
        signed = {"Content-Type": f"{kind}; sha256={digest}; size={size}"}
        # An empty file cannot be mapped.
        whole = pa.memory_map(str(data)).read_buffer() if isinstance(data, Path) and size else data
        with self._asking():
            stream = self._fs.open_output_stream(self.address.path(name), metadata=signed)
            stream.write(b"" if isinstance(whole, Path) else whole)
            stream.close()
        return Entry(size, digest)

    def head(self, name: str) -> Entry | None:
        """What an object says it is; None where there is none, or only a part of it."""
        try:
            with self._asking(), self._fs.open_input_file(self.address.path(name)) as file:
                size, said = file.size(), file.metadata() or {}
        except FileNotFoundError:
            return None
        found = _SIGNED.search(bytes(said.get("Content-Type", b"")).decode("ascii", "replace"))
        if found is None:
            return Entry(size, "")
        return Entry(size, found[1]) if int(found[2]) == size else None

    def fetch(self, name: str, to: Path) -> Entry:
        """Copies an object into a file, and says what it was."""
        digest, size = hashlib.sha256(), 0
        to.parent.mkdir(parents=True, exist_ok=True)
        with to.open("wb") as file:
            for piece in self._pieces(name):
                digest.update(piece)
                size += len(piece)
                try:
                    file.write(piece)
                except OSError as error:
                    raise write_mistake(to, error) from error
        return Entry(size, digest.hexdigest())

    def _pieces(self, name: str) -> Iterator[bytes]:
        """An object's bytes, in pieces that come a few times a second: silence is told from a slow line by them."""
        size = _FIRST
        with self._asking():
            stream = self._fs.open_input_stream(self.address.path(name))
        with stream:
            while True:
                began = time.monotonic()
                with self._asking():
                    piece = stream.read(size)
                if not piece:
                    return
                fitting = size * _BEAT / max(time.monotonic() - began, _BEAT / 4)
                size = int(min(max(fitting, _FIRST / 4), _PIECE))
                yield piece

    def footer(self, name: str) -> Any:
        """A Parquet object's metadata, without the rest of it; None where there is no whole one."""
        import pyarrow.parquet as pq

        try:
            with self._asking(), self._fs.open_input_file(self.address.path(name)) as file:
                try:
                    return pq.read_metadata(file)
                except pa.ArrowInvalid:
                    return None
        except FileNotFoundError:
            return None

    def listing(self, folder: str) -> dict[str, Listed]:
        """The objects under a folder, by their path in it."""
        from pyarrow import fs

        root = self.address.path(folder)
        try:
            with self._asking():
                found = self._fs.get_file_info(fs.FileSelector(root, recursive=True))
        except FileNotFoundError:
            return {}
        return {
            info.path[len(root) + 1 :]: Listed(info.size, (info.mtime_ns or 0) / 1e9)
            for info in found
            if info.type == fs.FileType.File
        }

    def folders(self) -> list[str]:
        """The names beside each other at the address; a missing bucket is an error."""
        from pyarrow import fs

        try:
            with self._asking():
                found = self._fs.get_file_info(fs.FileSelector(self.address.path()))
        except FileNotFoundError:
            found = []
        if not found:
            with self._asking():
                if self._fs.get_file_info(self.address.bucket).type == fs.FileType.NotFound:
                    raise OSError("NO_SUCH_BUCKET")
        return sorted(info.base_name for info in found if info.type == fs.FileType.Directory)

    def copy(self, name: str, to: str, size: int) -> None:
        """Within the store, where it can; an object larger than that goes through this machine."""
        with self._asking():
            if size <= _MOST_COPIED:
                self._fs.copy_file(self.address.path(name), self.address.path(to))
                return
        signed = self.head(name)
        with self._asking():
            kind = f"{_TYPES['.parquet']}; sha256={signed.sha256 if signed else ''}; size={size}"
            stream = self._fs.open_output_stream(self.address.path(to), metadata={"Content-Type": kind})
            for piece in self._pieces(name):
                stream.write(piece)
            stream.close()

    def delete(self, name: str) -> None:
        try:
            with self._asking():
                self._fs.delete_file(self.address.path(name))
        except FileNotFoundError:
            pass

    def delete_folder(self, name: str) -> None:
        try:
            with self._asking():
                self._fs.delete_dir(self.address.path(name))
        except FileNotFoundError:
            pass
