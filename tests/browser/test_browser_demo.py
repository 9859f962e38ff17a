"""The demo by one button, in a real browser. Alone in its file: with it the server ends, and the job that goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.support.servers import SLOW


def test_from_an_empty_cache_to_data_by_one_button(page: Page, serve: Callable[[Path], str], tmp_path: Path) -> None:
    page.goto(serve(tmp_path / "fresh"))
    page.get_by_role("button", name="Build the demo").click()
    expect(page.get_by_text("Building the demo:")).to_be_visible(timeout=SLOW)
    expect(page.locator(".hs-cards").first).to_be_visible(timeout=8 * SLOW)
    expect(page.get_by_text("325").first).to_be_visible()
    expect(page.locator(".hs-cards").first.locator(".hs-title")).to_have_count(6)
