"""What a person takes away from a page, in a real browser: the link to the view, a figure's picture."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import settle
from tests.support.servers import SLOW


@pytest.fixture(scope="module")
def address(served: Callable[[Path], str], retrieved_cache: Path) -> str:
    return served(retrieved_cache)


def test_the_link_that_is_copied_opens_the_same_view_for_somebody_else(browser: Browser, address: str) -> None:
    mine = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = mine.new_page()
    page.goto(f"{address}/?head=5&stage=2")
    expect(page.get_by_text("Nearest in head 5")).to_be_visible(timeout=SLOW)
    settle(page)
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible(timeout=SLOW)
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == page.url
    mine.close()
    other = browser.new_context()
    page = other.new_page()
    page.goto(link)
    expect(page.get_by_text("Nearest in head 5")).to_be_visible(timeout=SLOW)
    expect(page.get_by_role("radio", name="2 projected").first).to_be_checked(timeout=SLOW)
    other.close()


def test_a_figure_is_saved_as_it_looks(page: Page, address: str) -> None:
    page.goto(f"{address}/stages")
    expect(page.get_by_text("random slicings on 325 documents")).to_be_visible(timeout=SLOW)
    settle(page)
    found = {}
    for kind in ("PNG", "SVG"):
        page.get_by_role("button", name="Save").first.click()
        with page.expect_download() as waiting:
            page.get_by_role("button", name=kind, exact=True).first.click()
        assert waiting.value.suggested_filename == f"random-slices.{kind.lower()}"
        found[kind] = Path(waiting.value.path()).read_bytes()
        settle(page)
    pixels = np.asarray(Image.open(BytesIO(found["PNG"])).convert("RGB"))
    assert pixels.shape[1] > 900  # twice the size on the screen
    assert pixels[0, 0].tolist() == [0xFC, 0xFB, 0xF8]  # the page's ground, not a transparent one
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 50
    assert "random slices" in found["SVG"].decode()
