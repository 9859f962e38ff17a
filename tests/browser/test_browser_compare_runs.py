"""Compare runs in a real browser: a box on one map selects the same documents on the other, in view and in the link."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.accessibility import violations
from tests.support.browser import eventually, fits, settle, still
from tests.support.servers import SLOW


@pytest.fixture(scope="module")
def address(served: Callable[[Path], str], hostile_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two runs with the same documents, each text of which is out to do harm."""
    cache = tmp_path_factory.mktemp("two")
    for name in ("hostile", "twin"):
        shutil.copytree(hostile_cache / "hostile", cache / name)
    return served(cache)


def test_a_box_on_one_map_selects_on_both(page: Page, address: str) -> None:
    page.goto(f"{address}/compare_runs?run=hostile&pair=1")
    maps = page.locator(".js-plotly-plot:has(.gl-canvas)")
    expect(maps).to_have_count(2)
    settle(page)
    first = still(maps.first)
    x, y, width, height = (first[name] for name in ("x", "y", "width", "height"))
    page.mouse.move(x + 0.02 * width, y + 0.1 * height)
    page.mouse.down()
    page.mouse.move(x + 0.98 * width, y + 0.98 * height, steps=8)
    page.mouse.up()
    said = page.get_by_text(re.compile(r"^\d+ documents? selected on hostile$"))
    expect(said).to_be_in_viewport(timeout=SLOW)
    expect(page).to_have_url(re.compile(r"brush=11_"), timeout=SLOW)
    expect(page.locator(".hs-cards .hs-card").first).to_be_in_viewport(timeout=SLOW)
    expect(
        page.get_by_alt_text("selected documents stand out")
        .or_(page.get_by_label("selected documents stand out"))
        .first
    ).to_be_attached(timeout=SLOW)

    def clean() -> None:
        assert violations(page) == []

    eventually(page, clean)
    assert page.evaluate("window.__hacked ?? 0") == 0
    page.get_by_role("button", name="Clear selection").click()
    expect(page.get_by_text("Drag a box or a lasso on one map.")).to_be_visible(timeout=SLOW)
    expect(page).not_to_have_url(re.compile("brush="), timeout=SLOW)


def test_a_narrow_screen_reads_the_page_to_its_end(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 420, "height": 900})
    page.goto(f"{address}/compare_runs?run=hostile")
    expect(page.get_by_role("heading", name="Finding by finding")).to_be_visible(timeout=SLOW)
    settle(page)
    fits(page, 420)
    assert not page.get_by_test_id("stException").count()
