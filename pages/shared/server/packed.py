"""Scripts and styles that are packed once and kept, because they are the same for all readers.

Streamlit sends its own as they are (3 MB for a first visit), read from the disk in small pieces for each reader.
"""

from __future__ import annotations

import asyncio
import functools
import gzip
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import FileResponse, Response
from starlette.types import Scope

from pages.shared.server.front_end import STATIC

_TYPES = {".js": "text/javascript", ".css": "text/css"}
_HEADERS = {"Cache-Control": "public, immutable, max-age=31536000", "Vary": "Accept-Encoding"}
"""The address of each changes with what is in it."""


def front_end_file(scope: Scope, path: str) -> Path | None:
    """The script or style of Streamlit's that is asked for at this path."""
    return _front_end().get(path) if scope["type"] == "http" and scope["method"] == "GET" else None


async def packed(path: Path, headers: Headers) -> Response:
    """The file as an answer, which a browser may keep for good."""
    kind = _TYPES[path.suffix]
    if "gzip" not in headers.get("accept-encoding", ""):
        return FileResponse(path, media_type=kind, headers=_HEADERS)
    body = await asyncio.to_thread(_gzip, path)
    return Response(body, media_type=kind, headers={**_HEADERS, "Content-Encoding": "gzip"})


@functools.cache
def _front_end() -> dict[str, Path]:
    """By address: those whose names have a digest of what is in them."""
    files = (path for path in (STATIC / "static").rglob("*") if path.suffix in _TYPES)
    return {f"/{path.relative_to(STATIC).as_posix()}": path for path in files}


@functools.cache
def _gzip(path: Path) -> bytes:
    return gzip.compress(path.read_bytes())
