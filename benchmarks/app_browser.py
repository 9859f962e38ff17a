"""Servers and a browser to measure with: when a picture is on the screen, and what goes over the wire.

A picture counts as drawn when it says so (the map's ``draw`` or a figure's ``Plotly.react`` has resolved; on plain
pages Plotly has sent ``plotly_afterplot``), its canvases have been read from, which waits for what the graphics driver
still has to do, and two frames have passed, so that the browser has put it on the screen. The clock is the page's own:
from the start of the navigation, or from the press of the button. A screenshot then shows whether there is a picture at
all.
"""

from __future__ import annotations

import io
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, Locator, Page, WebSocket, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
SLOW = 180_000
"""Milliseconds that a picture may take before we give up."""

WATCH = """
(() => {
  const deep = (selector, root = document) => {
    const found = root.querySelector(selector);
    if (found) return found;
    for (const host of root.querySelectorAll("*")) {
      const inner = host.shadowRoot && deep(selector, host.shadowRoot);
      if (inner) return inner;
    }
    return null;
  };
  const frame = () => new Promise(requestAnimationFrame);
  const finish = (canvas) => {
    const gl = canvas.getContext("webgl2") ?? canvas.getContext("webgl");
    if (gl) gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4));
    else canvas.getContext("2d")?.getImageData(0, 0, 1, 1);
  };
  const drawn = async (look) => {
    let canvases;
    while (!(canvases = look())) await frame();
    canvases.forEach(finish);
    await frame();
    await frame();
    return performance.now();
  };
  const plots = [];
  const isShown = (element) => {
    if (!element?.isConnected || !element.checkVisibility({ opacityProperty: true })) return false;
    const { top, bottom, width } = element.getBoundingClientRect();
    return width > 0 && bottom > top && top < innerHeight && bottom > 0;
  };
  const bench = (window.bench = {
    deep,
    pressed: 0,
    map: (stage) => {
      const before = Number(deep("canvas[data-drawn]")?.dataset.drawn ?? 0);
      return drawn(() => {
        const map = deep(".head-map");
        const canvas = map?.dataset.key?.endsWith(`/${stage}`) && map.querySelector("canvas[data-drawn]");
        return canvas && Number(canvas.dataset.drawn) > before ? [canvas] : null;
      });
    },
    heads: (heads) => {
      const before = Number(deep("canvas[data-drawn]").dataset.drawn);
      return drawn(() => {
        const canvas = deep("canvas[data-drawn]");
        return deep(".head-map").dataset.heads === heads && Number(canvas.dataset.drawn) > before ? [canvas] : null;
      });
    },
    cells: () => drawn(() => {
      const canvas = deep(".hs-heat-map[data-version] canvas");
      return canvas && [canvas];
    }),
    seen: (selector) => drawn(() => isShown(deep(selector)) && []),
    figure: () => drawn(() => [...document.querySelectorAll(".hs-figure[data-drawn]")].some(isShown) && []),
    redrawn: (label) => {
      const found = () => [...document.querySelectorAll(`.hs-figure[aria-label^="${label}"][data-drawn]`)];
      const before = new Map(found().map((plot) => [plot, plot.dataset.drawn]));
      return drawn(() => found().some((plot) => plot.dataset.drawn !== before.get(plot) && isShown(plot)) && []);
    },
    heading: (end) => drawn(() => {
      const ends = (one) => one.textContent.trim().endsWith(end) && isShown(one);
      return [...document.querySelectorAll("h3")].some(ends) && [];
    }),
    control: () => drawn(() => document.querySelector("[data-testid=stButtonGroup]") && []),
    plotly: (stage) => {
      const since = plots.length;
      return drawn(() => plots.slice(since).includes(stage) && [...document.querySelectorAll("canvas.gl-canvas")]);
    },
  });
  window.addEventListener("pointerdown", () => { bench.pressed = performance.now(); }, true);
  const hooked = new WeakSet();
  new MutationObserver(() => {
    for (const plot of document.querySelectorAll(".js-plotly-plot")) {
      if (hooked.has(plot) || !plot.on) continue;
      hooked.add(plot);
      plot.on("plotly_afterplot", () => plots.push(plot.layout.meta?.stage));
    }
  }).observe(document, { childList: true, subtree: true, attributes: true, attributeFilter: ["class"] });
})();
"""


@dataclass(frozen=True)
class Server:
    """A Streamlit server: where it is, and its process."""

    address: str
    pid: int


@contextmanager
def served(script: str, cache: Path) -> Iterator[str]:
    """The address of ``streamlit run script``, on a port of its own, until the block ends."""
    with server(script, cache) as started:
        yield started.address


@contextmanager
def server(script: str, cache: Path) -> Iterator[Server]:
    """The same, with its process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--server.headless=true", "--server.address=127.0.0.1", "--server.fileWatcherType=none"]
    process = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", script, f"--server.port={port}", *options],
        cwd=ROOT,
        env={**os.environ, "HEADSCOPE_CACHE": str(cache), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(f"http://127.0.0.1:{port}/_stcore/health")
        yield Server(f"http://127.0.0.1:{port}", process.pid)
    finally:
        process.terminate()
        process.wait(20)


def processor(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _wait_for(url: str) -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(url, timeout=2).read()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("Streamlit did not start. Start the same page by hand to see why: streamlit run app.py")


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless Chromium with WebGL in software."""
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not path:
        raise SystemExit("Chromium is missing: 'make chromium' installs it where it may.")
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-background-networking", "--enable-unsafe-swiftshader"]
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        yield browser
        browser.close()


@contextmanager
def fresh_page(browser: Browser) -> Iterator[Page]:
    """A page of a browser context that has seen nothing yet."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    context.set_default_timeout(SLOW)
    context.add_init_script(WATCH)
    yield context.new_page()
    context.close()


def opened(page: Page, url: str, drawn: str) -> float:
    """Seconds from the start of the navigation until the picture is drawn; ``drawn`` as in ``bench`` above."""
    page.goto(url, wait_until="commit")
    return float(page.evaluate(f"bench.{drawn}")) / 1000


def first_drawn(browser: Browser, urls: dict[str, str], rounds: int) -> dict[str, float]:
    """Median seconds until each address shows its map, turn by turn, after a round that only warms the server up."""
    found: dict[str, list[float]] = {name: [] for name in urls}
    for turn in range(1 + rounds):
        for name, url in urls.items():
            with fresh_page(browser) as page:
                seconds = opened(page, url, "map(1)")
            if turn:
                found[name].append(seconds)
    for name, times in found.items():
        print(f"  first drawn, {name}: {', '.join(f'{value:.2f}' for value in times)} s", flush=True)
    return {name: statistics.median(times) for name, times in found.items()}


def pressed(page: Page, button: Locator, drawn: str) -> float:
    """Seconds from the press of a button until the picture is drawn again; then waits until the page is at rest."""
    button.scroll_into_view_if_needed()
    page.evaluate(f"() => {{ bench.awaited = bench.{drawn}; }}")  # before the press, for it may take but a few frames
    button.click()
    seconds = float(page.evaluate("bench.awaited.then((at) => at - bench.pressed)")) / 1000
    settle(page)
    return seconds


def settle(page: Page) -> None:
    """Waits until the script has run and nothing on the page is from before."""
    page.wait_for_function(
        "document.querySelector('[data-testid=stApp]').dataset.testScriptState === 'notRunning'"
        " && !document.querySelector('[data-stale=true]')"
    )


def share_painted(picture: Locator) -> float:
    """The share of a picture's pixels that are not of its commonest colour: next to nothing where it is empty."""
    from PIL import Image

    pixels = np.asarray(Image.open(io.BytesIO(picture.screenshot())).convert("RGB")).reshape(-1, 3)
    _, counts = np.unique(pixels, axis=0, return_counts=True)
    return 1 - float(counts.max() / counts.sum())


class Traffic:
    """Bytes over a page's websocket since ``clear``; made before the page is opened."""

    def __init__(self, page: Page) -> None:
        self.sent = self.received = 0
        page.on("websocket", self._listen)

    def _listen(self, socket: WebSocket) -> None:
        socket.on("framesent", lambda frame: self._count(len(frame), 0))
        socket.on("framereceived", lambda frame: self._count(0, len(frame)))

    def _count(self, sent: int, received: int) -> None:
        self.sent += sent
        self.received += received

    def clear(self) -> None:
        self.sent = self.received = 0
