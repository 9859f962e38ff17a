"""The Ablation page in Chromium: a click on a head, its documents, and a narrow screen."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.runs.run import Run
from tests.support.browser import draw_all, fits
from tests.support.planted_ablation import planted_ablation
from tests.support.servers import SLOW


@pytest.fixture(scope="module")
def address(analysed_cache: Path, tmp_path_factory: pytest.TempPathFactory, serve: Callable[..., str]) -> str:
    cache = tmp_path_factory.mktemp("ablation")
    shutil.copytree(analysed_cache / "demo", cache / "demo")
    planted_ablation(Run(cache, "demo"))
    return serve(cache)


def test_a_click_shows_a_head_and_its_documents_and_is_in_the_address(page: Page, address: str) -> None:
    page.goto(f"{address}/ablation", timeout=SLOW)
    expect(page.get_by_role("heading", name="Layer 6, head 11", exact=True)).to_be_visible()
    expect(page.locator(".cell", has_text="●")).to_have_count(2)
    page.locator('.cell[data-row="1"][data-column="3"]').click()
    expect(page.get_by_role("heading", name="Layer 2, head 3", exact=True)).to_be_visible()
    expect(page.get_by_role("heading", name="Documents that move most without layer 2, head 3")).to_be_visible()
    expect(page).to_have_url(re.compile(r"layer=2"))
    expect(page).to_have_url(re.compile(r"head=3"))
    expect(page.locator(".hs-card")).to_have_count(4)
    expect(page.locator(".hs-card .hs-meta", has_text="leaves")).to_have_count(1)
    expect(page.locator(".hs-card .hs-meta", has_text="new")).not_to_have_count(0)


def test_it_fits_a_narrow_screen(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 420, "height": 900})
    page.goto(f"{address}/ablation?layer=3&head=2&effect=angle", timeout=SLOW)
    expect(page.get_by_role("heading", name="Layer 3, head 2", exact=True)).to_be_visible()
    expect(page.locator(".hs-figure")).to_have_count(2)
    draw_all(page)
    fits(page, 420)
