"""The Head map explains itself: names on its islands, what is counted, what is hidden, and a legend that is a link."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_browser_head_map import open_map, serve_mapped, shown, spot
from tests.browser.test_browser_map_more import middle, scrolled, zoom_by_wheel
from tests.support.browser import eventually, still
from tests.support.servers import SLOW


@pytest.fixture(scope="module")
def address(served: Callable[[Path], str], tmp_path_factory: pytest.TempPathFactory) -> str:
    return serve_mapped(served, tmp_path_factory)


def test_islands_have_the_names_of_chosen_heads_and_the_points_are_counted(page: Page, address: str) -> None:
    open_map(page, address)
    labels, status = page.locator(".labels text"), page.locator(".status")
    expect(labels).to_have_text(["1", "2", "3", "4"])
    expect(status).to_have_text("80 points")

    def on_their_islands() -> None:
        for head in (1, 2, 3, 4):  # the medoid of an even row of twenty is its tenth or eleventh point
            box = labels.nth(head - 1).bounding_box()
            assert box is not None
            x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
            (left, top), (right, _) = spot(page, 9, head), spot(page, 10, head)
            assert left - 2 <= x <= right + 2
            assert abs(y - top) <= 3

    eventually(page, on_their_islands)
    page.get_by_role("button", name="1–2", exact=True).click()  # the first key/value group
    shown(page, "heads", "1-2")
    expect(labels).to_have_text(["1", "2"])
    expect(status).to_have_text("40 of 80 points")
    page.locator(".box").focus()
    for _ in range(6):  # 1.5⁶ is more than ten times: the rest of the names is as faint as they get
        page.keyboard.press("+")
    expect(page.locator(".labels")).to_have_attribute("opacity", re.compile(r"^(0\.30|1)$"))


def test_fit_zooms_to_the_chosen_heads(page: Page, address: str) -> None:
    open_map(page, f"{address}?heads=1")
    page.get_by_role("button", name="Fit", exact=True).click()
    page.wait_for_function("document.location.search.includes('camera=')")

    def fills_the_box() -> None:
        box = still(page.locator(".box"))
        (left, top), (right, _) = spot(page, 0, 1), spot(page, 19, 1)
        assert box["x"] <= left < right <= box["x"] + box["width"]
        assert box["y"] <= top <= box["y"] + box["height"]
        assert 0.8 < (right - left) / box["width"] < 1

    eventually(page, fills_the_box)
    page.get_by_role("button", name="All", exact=True).click()
    expect(page.get_by_role("button", name="Fit", exact=True)).to_have_count(0)


def test_a_plain_wheel_scrolls_the_page_and_with_control_it_zooms(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 1400, "height": 600})
    open_map(page, address)
    page.mouse.move(*middle(page))
    page.locator("[data-testid=stMain]").evaluate("element => element.scrollTo(0, 0)")
    page.mouse.move(*(value - 5 for value in middle(page)))
    before = scrolled(page)
    page.mouse.wheel(0, -120 if before else 120)

    def moved() -> None:
        assert scrolled(page) != before

    eventually(page, moved)
    shown(page, "camera", "whole")
    page.mouse.move(*middle(page))
    zoom_by_wheel(page, -100)
    expect(page.locator(".head-map")).to_have_attribute("data-camera", re.compile(r",1\.\d+$"), timeout=SLOW)


def test_a_legend_entry_is_in_the_link_and_lists_its_documents(page: Page, address: str) -> None:
    open_map(page, f"{address}?colour=topic")
    entry = page.get_by_role("button", name="engines")
    entry.click()
    expect(page.locator(".status")).to_have_text("40 of 80 points")
    page.wait_for_url(re.compile(r"colour=topic&focus=\d$"))
    linked = page.url
    open_map(page, linked)
    expect(page.locator(".status")).to_have_text("40 of 80 points")
    expect(page.get_by_role("button", name="engines")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="List 10 documents").click()
    expect(page.get_by_role("heading", name="engines")).to_be_visible(timeout=SLOW)
    expect(page).to_have_url(re.compile(r"list=1"))
    page.get_by_role("button", name="Close", exact=True).click()
    expect(page.get_by_role("heading", name="engines")).to_have_count(0, timeout=SLOW)
    expect(page.locator(".status")).to_have_text("40 of 80 points")  # it is highlighted still


def test_a_head_that_others_are_painted_over_is_named_and_comes_to_front(page: Page, address: str) -> None:
    open_map(page, f"{address}?run=stacked")
    expect(page.get_by_text("Head 1 is mostly hidden: 100 % of its points lie under other heads.")).to_be_visible()
    page.get_by_role("button", name="Head 1 to front").click()
    expect(page.get_by_text("Head 1 is drawn in front.")).to_be_visible()
    page.wait_for_url(re.compile(r"front=1"))
    open_map(page, page.url)
    expect(page.get_by_text("Head 1 is drawn in front.")).to_be_visible()
    page.get_by_role("button", name="Mix again").click()
    expect(page.get_by_text("Head 1 is mostly hidden")).to_be_visible()
    open_map(page, address)  # heads that lie apart
    expect(page.get_by_text("is mostly hidden")).to_have_count(0)
