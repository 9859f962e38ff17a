"""Plotly's figures in a real browser: drawn when they come near, as wide as their place, nothing fetched in vain."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import choose, eventually, settle
from tests.support.servers import SLOW

DRAWN = ".hs-figure[data-drawn]"
FIRST = ".st-key-random-slices .hs-figure"


@pytest.fixture(scope="module")
def address(served: Callable[[Path], str], analysed_cache: Path) -> str:
    return served(analysed_cache)


def test_figures_are_drawn_when_they_come_near_and_streamlit_s_own_plotly_is_not_fetched(
    page: Page, address: str
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/stages")
    expect(page.locator(f"{FIRST}[data-drawn]")).to_be_in_viewport(timeout=SLOW)
    settle(page)
    expect(page.locator(".hs-figure")).to_have_count(5)
    last = page.locator(".hs-figure").last
    expect(last).not_to_have_attribute("data-drawn", re.compile("."))
    last.scroll_into_view_if_needed()
    expect(last).to_have_attribute("data-drawn", "1", timeout=SLOW)
    assert any("/plotly/" in url for url in asked)
    assert not any("PlotlyChart" in url for url in asked)


def test_a_figure_is_on_the_screen_before_the_next_one_is_drawn(page: Page, address: str) -> None:
    page.add_init_script("""
      window.drawnAt = [];
      let frames = 0;
      const count = () => { frames++; requestAnimationFrame(count); };
      count();
      new MutationObserver((all) => all.forEach(() => drawnAt.push(frames)))
        .observe(document, { subtree: true, attributeFilter: ["data-drawn"] });
    """)
    page.goto(f"{address}/stages")
    settle(page)

    def apart() -> None:
        drawn = page.evaluate("drawnAt")
        assert len(drawn) > 1
        assert min(later - before for before, later in pairwise(drawn)) > 1  # one would end with both at once

    eventually(page, apart)


def test_a_printed_page_has_all_figures(page: Page, address: str) -> None:
    page.goto(f"{address}/stages")
    expect(page.locator(f"{FIRST}[data-drawn]")).to_be_visible(timeout=SLOW)
    settle(page)
    page.pdf()
    expect(page.locator(DRAWN)).to_have_count(5)


def test_a_figure_follows_the_width_of_its_place(page: Page, address: str) -> None:
    page.goto(f"{address}/stages")
    expect(page.locator(f"{FIRST}[data-drawn]")).to_be_visible(timeout=SLOW)

    def fits_into(width: int) -> None:
        place, drawn = page.locator(FIRST).evaluate("(at) => [at.clientWidth, at._fullLayout.width]")
        assert place == drawn < width

    for width in (1400, 900, 420):
        page.set_viewport_size({"width": width, "height": 1000})
        eventually(page, partial(fits_into, width))


def test_another_choice_changes_the_figure_that_is_there(page: Page, address: str) -> None:
    page.goto(f"{address}/stages")
    expect(page.locator(f"{FIRST}[data-drawn]")).to_be_visible(timeout=SLOW)
    page.locator(FIRST).evaluate("(at) => { at.kept = true; }")
    choose(page, "Measure", "topic match by examples")

    def changed() -> None:
        title, kept = page.locator(FIRST).evaluate("(at) => [at._fullLayout.yaxis.title.text, at.kept]")
        assert (title, kept) == ("topic match by examples", True)

    eventually(page, changed)
    expect(page.locator(FIRST)).to_have_attribute("aria-label", re.compile("^topic match by examples"))


def test_a_figure_fills_the_screen_and_goes_back(page: Page, address: str) -> None:
    page.goto(f"{address}/stages")
    figure = page.locator(f"{FIRST}[data-drawn]")
    expect(figure).to_be_visible(timeout=SLOW)
    names = figure.locator(".modebar-btn").evaluate_all("(all) => all.map((one) => one.dataset.title)")
    assert names == ["Download plot", "Zoom in", "Zoom out", "Reset axes", "Full screen"]  # nothing leaves the browser
    figure.hover()
    figure.locator('.modebar-btn[data-title="Full screen"]').click()

    def whole() -> None:
        assert figure.evaluate("(at) => at === document.fullscreenElement && at._fullLayout.height === innerHeight")

    eventually(page, whole)
    page.evaluate("document.exitFullscreen()")

    def back() -> None:
        assert figure.evaluate("(at) => !document.fullscreenElement && at._fullLayout.height") == 400

    eventually(page, back)


def test_a_figure_that_cannot_be_drawn_says_so_and_the_page_stays(page: Page, address: str) -> None:
    page.route("**/plotly/**", lambda route: route.abort())
    page.goto(f"{address}/stages")
    expect(page.locator(FIRST)).to_have_text("This figure could not be drawn. Reload the page.", timeout=SLOW)
    settle(page)
    last = page.locator(".hs-figure").last
    last.scroll_into_view_if_needed()
    expect(last).to_have_text("This figure could not be drawn. Reload the page.", timeout=SLOW)
    page.unroute("**/plotly/**")
    choose(page, "Measure", "topic match by examples")  # another figure is another try
    expect(page.locator(f"{FIRST}[data-drawn]")).to_be_visible(timeout=SLOW)
    expect(page.locator(FIRST)).not_to_contain_text("could not be drawn")
