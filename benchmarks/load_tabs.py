"""Real Chromium tabs among the readers of benchmarks.load: they draw what the others only receive.

Playwright's synchronous interface wants a thread of its own: all tabs live in one, and take turns there. What comes
over their websockets is searched like the other readers' messages.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass, field

from playwright.sync_api import Error, Page, WebSocket

from benchmarks.app_browser import chromium, fresh_page, settle
from tests.support.session_client import SessionRecord

_EXPLORE = ("", "head_map", "heat_map", "head_profile")
_UNDERSTAND = ("stages", "topics", "aspects", "layers", "attention", "ablation")
PATHS = (*_EXPLORE, *_UNDERSTAND, "your_document", "retrieval_lab")


@dataclass
class Tab:
    """A browser context with one page, and what went wrong in it."""

    page: Page
    own: bytes
    words: Collection[bytes]
    seen: SessionRecord
    leaving: bool = False
    """While the tab itself goes to another address its old websocket is closed, which is no fault."""

    def listen(self) -> None:
        self.page.on("websocket", self._open)
        self.page.on("pageerror", lambda error: self.seen.errors.append(f"a tab: {error}"))

    def _open(self, socket: WebSocket) -> None:
        socket.on("framereceived", self._read)
        socket.on("close", lambda _: None if self.leaving else self.seen.errors.append("a tab was disconnected"))

    def _read(self, frame: str | bytes) -> None:
        raw = frame if isinstance(frame, bytes) else frame.encode()
        self.seen.received += len(raw)
        self.seen.errors += [
            f"a tab: another reader's word: {word.decode()}" for word in self.words if word != self.own and word in raw
        ]

    def show(self, url: str) -> None:
        self.leaving = True
        self.page.goto(url)
        self.leaving = False
        began = time.perf_counter()
        self.page.get_by_role("heading", level=1).first.wait_for()
        settle(self.page)
        self.seen.runs.append(1000 * (time.perf_counter() - began))
        if self.page.get_by_test_id("stException").count():
            self.seen.errors.append(f"a tab: an exception on {url.rpartition('/')[2]}")


@dataclass
class Tabs:
    """The tabs' thread: started by ``start``, walking until ``stop``."""

    address: str
    run: str
    own: Collection[bytes]
    """The tabs' own words, one each."""
    words: Collection[bytes]
    """Everybody's."""
    seen: SessionRecord = field(default_factory=SessionRecord)
    _stop: threading.Event = field(default_factory=threading.Event)
    _open: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Returns when all tabs are open."""
        self._thread = threading.Thread(target=self._walk, name="tabs", daemon=True)
        self._thread.start()
        if not self._open.wait(600):
            self.seen.errors.append("the tabs did not open")

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(600)

    def _walk(self) -> None:
        try:
            with chromium() as browser, ExitStack() as stack:
                tabs = [Tab(stack.enter_context(fresh_page(browser)), word, self.words, self.seen) for word in self.own]
                for tab in tabs:
                    tab.listen()
                    tab.show(f"{self.address}/?run={self.run}")
                self._open.set()
                for number, tab in zip(itertools.count(), itertools.cycle(tabs), strict=False):
                    if self._stop.is_set():
                        break
                    path = PATHS[(number // len(tabs) + number) % len(PATHS)]
                    tab.show(f"{self.address}/{path}?run={self.run}&stage={number % 3 + 1}")
                    if path == "head_map":
                        tab.page.get_by_role("textbox", name="Highlight documents").fill(tab.own.decode())
                        tab.page.keyboard.press("Enter")
                        settle(tab.page)
                for tab in tabs:
                    tab.leaving = True
        except Error as error:
            self.seen.errors.append(f"a tab: {error.message.splitlines()[0]}")
        finally:
            self._open.set()
