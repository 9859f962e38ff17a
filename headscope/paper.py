"""A figure as a file for a paper: drawn by a browser of this machine, with the scripts that the app's Save uses."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from core import VERSION
from core.errors import Mistake, listed
from core.runs.files import replacing_here, write_mistake

if TYPE_CHECKING:
    import plotly.graph_objects as go

FORMATS = ("svg", "pdf")
WIDTHS = ("column", "page")
"""88 and 180 mm; any other width is a number of millimetres."""
SECONDS = 120.0
"""After which a browser that has not answered is ended."""
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge", "firefox")
_PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Firefox.app/Contents/MacOS/firefox",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
    "C:/Program Files (x86)/Microsoft/Edge/Application/msedge.exe",
)
_PAGE = """<!doctype html><meta charset="utf-8"><title>Headscope</title>
<script src="plotly.js"></script>
<script type="module">
const answer = (name, body) => fetch(name, { method: "POST", body });
try {
  const { paper, pixelsOf } = await import("./paper.js");
  const { figure, width, height, format, about } = await (await fetch("job.json")).json();
  const size = { width: pixelsOf(width, figure.layout), height };
  const drawn = await Plotly.toImage(figure, { ...size, format: "svg", imageDataOnly: true });
  await answer("done", await paper(drawn, format, width, about));
} catch (error) {
  await answer("failed", String(error));
}
</script>
"""


def save_figure(
    figure: go.Figure,
    path: str | Path,
    width: str | float = "column",
    caption: str | None = None,
    browser: str | None = None,
) -> Path:
    """Writes a figure as SVG or PDF, its fonts and caption inside. It needs Chromium, Chrome, Edge or Firefox.

    ``width`` is 'column' (88 mm), 'page' (180 mm) or a number of millimetres; text is 8 points high at any width.
    Without ``caption``, the one that ``OpenedRun.figure`` gives its figures: numbers, run, commit and command.

    >>> import headscope
    >>> drawn = headscope.open_run("example").figure("probe")
    >>> headscope.save_figure(drawn, "probe.png")
    Traceback (most recent call last):
    core.errors.Mistake: 'probe.png' is not a figure for a paper: its name must end with .svg or .pdf.
    """
    path = Path(path)
    format_ = path.suffix.lower().removeprefix(".")
    if format_ not in FORMATS:
        raise Mistake(f"'{path.name}' is not a figure for a paper: its name must end with .svg or .pdf.")
    if width not in WIDTHS and not (isinstance(width, (int, float)) and 20 <= width <= 1000):
        raise Mistake(f"The width '{width}' is not valid: {listed(WIDTHS)} or a number of millimetres from 20 to 1000.")
    job = {
        "figure": json.loads(figure.to_json()),
        "width": width,
        "height": figure.layout.height or 340,
        "format": format_,
        "about": {
            "title": path.stem,
            "caption": caption_of(figure) if caption is None else caption,
            "creator": f"Headscope {VERSION}",
        },
    }
    data = _drawn(json.dumps(job), _browser(browser))
    try:
        with replacing_here(path) as temporary:
            temporary.write_bytes(data)
    except OSError as error:
        raise write_mistake(path, error) from error
    return path


def caption_of(figure: go.Figure) -> str:
    """The caption that travels with a figure of ``OpenedRun.figure``; empty for any other figure."""
    meta = figure.layout.meta
    return str(meta.get("caption", "")) if isinstance(meta, dict) else ""


@dataclass
class _Answer:
    ready: threading.Event = field(default_factory=threading.Event)
    data: bytes = b""
    problem: str = ""


def _drawn(job: str, browser: str) -> bytes:
    answer = _Answer()
    with _served(job, answer) as address, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        started = subprocess.Popen(
            _command(browser, profile, address), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            for _ in range(int(SECONDS / 0.25)):
                if answer.ready.wait(0.25) or started.poll() not in (None, 0):
                    break
        finally:
            started.terminate()
            try:
                started.wait(10)
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait()
    if not answer.ready.is_set():
        raise Mistake(f"The browser '{browser}' did not draw the figure. Try another one: browser='/path/to/chromium'.")
    if answer.problem:
        raise Mistake(f"The browser could not draw the figure: {answer.problem[:300]}")
    return answer.data


def _browser(given: str | None) -> str:
    if given is not None:
        found = shutil.which(given)
        if found is None:
            raise Mistake(f"There is no browser '{given}'. Give the path of Chromium, Chrome, Edge or Firefox.")
        return found
    for name in (*_BROWSERS, *_PLACES):
        if found := shutil.which(name):
            return found
    raise Mistake(
        "No browser to draw the figure with: install Chromium, Chrome, Edge or Firefox, or save the figure from the "
        "app, which uses the browser that you have open."
    )


def _command(browser: str, profile: str, address: str) -> list[str]:
    if "firefox" in Path(browser).name.lower():
        return [browser, "--headless", "--no-remote", "--profile", profile, address]
    unboxed = ["--no-sandbox"] if sys.platform == "linux" and os.geteuid() == 0 else []  # root has no sandbox
    options = ["--headless=new", "--no-first-run", "--enable-unsafe-swiftshader", f"--user-data-dir={profile}"]
    return [browser, *options, *unboxed, address]


@contextmanager
def _served(job: str, answer: _Answer) -> Iterator[str]:
    """The page, its scripts and the figure on this machine alone, below an address that nobody else knows."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    from plotly.offline import get_plotlyjs

    from pages.shared.paper import FILES, TYPES

    files = {"page.html": _PAGE.encode(), "job.json": job.encode(), "plotly.js": get_plotlyjs().encode()}
    files |= {name: path.read_bytes() for name, path in FILES.items()}
    types = {**TYPES, ".html": "text/html; charset=utf-8", ".json": "application/json"}
    secret = secrets.token_urlsafe(24)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self._name()
            if name not in files:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", types[Path(name).suffix])
            self.send_header("Content-Length", str(len(files[name])))
            self.end_headers()
            self.wfile.write(files[name])

        def do_POST(self) -> None:
            name, body = self._name(), self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if name not in ("done", "failed"):
                self.send_error(404)
                return
            self.send_response(204)
            self.end_headers()
            answer.data, answer.problem = (body, "") if name == "done" else (b"", body.decode(errors="replace"))
            answer.ready.set()

        def _name(self) -> str:
            given, _, name = self.path.removeprefix("/").partition("/")
            return name if secrets.compare_digest(given.encode(), secret.encode()) else ""

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: whoever saves a figure does not read a server's log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/{secret}/page.html"
    finally:
        server.shutdown()
        server.server_close()
