"""The app on this machine's cache, in a browser: for the scripts that take pictures of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.app_browser import served
from core.settings import setting
from tests.support.browser import FLAGS, WATCH, settle

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
DOCUMENT = (
    "The night ferry left the harbour an hour late. We had bought bread, cheese and a bag of oranges at the market, "
    "and ate on deck while the lights of the coast grew small. A retired teacher told us which islands still have no "
    "road, how to find a room in August, and why the fishermen vote against the new bridge every time. In the morning "
    "the sea was flat, the engine stopped, and the captain pointed at a family of dolphins."
)
"""A text that the demo corpus does not have, for the page Your document."""


@contextmanager
def opened(width: int, height: int, scheme: str = "light") -> Iterator[Callable[[str], Page]]:
    """A function that opens an address of the app (``/head_map?stage=1``) and returns its page, settled."""
    from playwright.sync_api import sync_playwright

    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with served("app.py", Path(setting("HEADSCOPE_CACHE"))) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            reduced_motion="reduce",
        )
        context.set_default_timeout(300_000)
        context.add_init_script(WATCH)

        def go(view: str) -> Page:
            page = context.new_page()
            page.goto(address + view)
            rest(page)
            return page

        first = go("/")  # the first page of a fresh server is slow, and loads what the others share
        tour = first.get_by_text("Skip the tour")
        if tour.count():  # it would lie over the pictures
            tour.first.click()
            rest(first)
        first.close()
        yield go
        browser.close()


def rest(page: Page) -> None:
    """All that was asked for is drawn, and has faded in."""
    settle(page)
    page.wait_for_timeout(2_500)


def embed_a_text(page: Page) -> None:
    """On the page Your document."""
    box = page.get_by_role("textbox").first
    box.fill(DOCUMENT)
    box.press("Control+Enter")
    page.locator(".hs-words, [data-testid=stAlertContentError]").first.wait_for()
    rest(page)
