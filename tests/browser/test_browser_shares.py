"""Stage 4 in a real browser: the Retrieval lab turns heads up and down in the model's own embedding."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import fits, settle
from tests.support.servers import SLOW


@pytest.fixture(scope="module")
def address(serve: Callable[..., str], share_cache: Path) -> str:
    return serve(share_cache)


@pytest.mark.parametrize("width", [1400, 420])
def test_the_rest_can_be_left_out_and_that_is_in_the_link(page: Page, address: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 1000})
    page.goto(f"{address}/retrieval_lab?run=four&stage=4")
    expect(page.get_by_text("rest + Σ weight × share")).to_be_visible(timeout=SLOW)
    expect(page.locator(".hs-strip")).to_contain_text("stage 4, full", timeout=SLOW)
    settle(page)
    page.get_by_text("Keep the rest").click()
    expect(page.get_by_text(re.compile("^Σ weight × share"))).to_be_visible(timeout=SLOW)
    expect(page).to_have_url(re.compile("rest=0"), timeout=SLOW)
    settle(page)
    page.reload()
    expect(page.get_by_text(re.compile("^Σ weight × share"))).to_be_visible(timeout=SLOW)
    fits(page, width)


def test_the_overview_shows_four_stages(page: Page, address: str) -> None:
    page.goto(f"{address}/?run=four")
    expect(page.get_by_role("heading", name="Four stages")).to_be_visible(timeout=SLOW)
    expect(page.get_by_text("4 · share", exact=True)).to_be_visible(timeout=SLOW)
    page.goto(f"{address}/?run=three")
    expect(page.get_by_role("heading", name="Three stages")).to_be_visible(timeout=SLOW)
    expect(page.get_by_text("python -m precompute all three --stages 1 2 3 4")).to_be_visible(timeout=SLOW)
