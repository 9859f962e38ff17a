"""Streamlit's own scripts and fonts, out of memory, and named to the browser before it finds out that it needs them.

A page is some hundred small files. Streamlit opens each from the disk anew for every reader, and the browser learns of
a third of them only when the first page has run.
"""

from __future__ import annotations

import asyncio
import gzip
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import config, file_util

_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".woff2": "font/woff2"}
"""What is served here; pictures and all else are left to Streamlit."""
_FOR_GOOD = "public, immutable, max-age=31536000"
"""A file's name holds a digest of what is in it."""
_ON_EVERY_PAGE = ("BidiComponent", "Selectbox", "ButtonGroup", "TextInput")
"""Scripts that Streamlit loads once a page asks for such an element: our pages all do."""
_IMPORT = re.compile(r"""(?:from|import)\s*["']\./([\w.-]+\.js)["']""")


@dataclass(frozen=True)
class Asset:
    """A file of Streamlit's, read once; packed once, too, if anybody takes it packed."""

    path: Path

    @cached_property
    def content(self) -> bytes:
        return self.path.read_bytes()

    @cached_property
    def packed(self) -> bytes:
        return gzip.compress(self.content, 6, mtime=0)

    @property
    def is_text(self) -> bool:
        return self.path.suffix != ".woff2"


class Assets:
    """The layer before Streamlit's own server."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        folder = Path(file_util.get_static_dir())
        base = (config.get_option("server.baseUrlPath") or "").strip("/")
        root = f"/{base}" if base else ""
        self._assets = {
            f"{root}/{path.relative_to(folder).as_posix()}": Asset(path)
            for path in sorted(folder.glob("static/*/*"))
            if path.suffix in _TYPES
        }
        self._links = ", ".join(
            f"<{root}/static/js/{name}>; rel=modulepreload; crossorigin" for name in needed_soon(folder)
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        headers, asset = Headers(scope=scope), self._assets.get(scope["path"])
        if asset is not None and "range" not in headers:
            response = await asyncio.to_thread(_response, asset, "gzip" in headers.get("accept-encoding", ""))
            await response(scope, receive, send)
            return

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start" and self._links:
                given = MutableHeaders(scope=message)
                if given.get("content-type", "").startswith("text/html"):
                    given.append("Link", self._links)
            await send(message)

        await self._app(scope, receive, named)


def needed_soon(folder: Path) -> list[str]:
    """The scripts of the elements on every page with all that they import, but for what the first page names itself."""
    scripts = folder / "static" / "js"
    try:
        named = set(re.findall(r"static/js/([\w.-]+\.js)", (folder / "index.html").read_text(encoding="utf-8")))
    except OSError:
        return []
    waiting = [path.name for element in _ON_EVERY_PAGE for path in sorted(scripts.glob(f"{element}.*.js"))]
    found: dict[str, None] = {}
    while waiting:
        name = waiting.pop(0)
        if name not in named and name not in found and (scripts / name).is_file():
            found[name] = None
            waiting += _IMPORT.findall((scripts / name).read_text(encoding="utf-8"))
    return list(found)


def _response(asset: Asset, packed: bool) -> Response:
    headers = {"Cache-Control": _FOR_GOOD, "Content-Type": _TYPES[asset.path.suffix]}
    if asset.is_text:
        headers["Vary"] = "Accept-Encoding"
    if packed and asset.is_text:
        return Response(asset.packed, headers={**headers, "Content-Encoding": "gzip"})
    return Response(asset.content, headers=headers)
