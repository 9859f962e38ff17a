"""Stage 4 in a real browser: heads turned up and down in the model's own embedding, and shares at every layer."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.runs.results import read_analysis
from core.runs.run import Run
from tests.support.browser import fits, settle
from tests.support.servers import SLOW


@pytest.fixture(scope="module")
def address(serve: Callable[..., str], swept_cache: Path) -> str:
    return serve(swept_cache)


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


@pytest.mark.parametrize("width", [1400, 420])
def test_layers_and_aspects_show_shares_of_an_inner_layer(
    page: Page, address: str, swept_cache: Path, width: int
) -> None:
    run = Run(swept_cache, "four")
    page.set_viewport_size({"width": width, "height": 1000})
    page.goto(f"{address}/layers?run=four&stage=4")
    expect(page.get_by_text("a share is what the head adds")).to_be_visible(timeout=SLOW)
    grid = page.locator(".hs-grid[data-version]").first
    settle(page)
    grid.locator('.cell[data-row="0"][data-column="2"]').click()
    expect(page.get_by_role("heading", name="Layer 1, head 2, at stage 4")).to_be_visible(timeout=SLOW)
    expect(page.get_by_role("heading", name="Layer 1, head 2, at stage 4")).to_be_in_viewport()
    (row,) = [
        row
        for row in read_analysis(run, "layers").to_pylist()
        if (row["layer"], row["stage"], row["head"], row["measure"]) == (1, 4, 2, "topic_match")
    ]
    own = page.get_by_test_id("stMetric").filter(has=page.get_by_text("Topic match", exact=True))
    expect(own.get_by_test_id("stMetricValue")).to_have_text(f"{100 * row['value']:.1f}\u00a0%")
    expect(page).to_have_url(re.compile("stage=4"))
    fits(page, width)

    page.goto(f"{address}/aspects?run=four&stage=4&layer=1")
    expect(page.get_by_text("40 random slicings.")).to_be_visible(timeout=SLOW)
    (row,) = [
        row
        for row in read_analysis(run, "layer_aspects").to_pylist()
        if (row["layer"], row["stage"], row["head"], row["aspect"]) == (1, 4, 2, "topic")
    ]
    of_head = page.locator('.hs-grid .cell[data-row="0"][data-column="2"]')
    expect(of_head).to_have_attribute("aria-label", re.compile(rf"{100 * row['value']:.1f}"))
    fits(page, width)
