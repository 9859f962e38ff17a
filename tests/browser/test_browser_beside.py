"""What a click or a lasso brings is seen where people look: beside the picture, inside the screen, with the focus."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.test_browser_head_map import draw, open_map, shown, spot
from tests.support.browser import eventually, settle
from tests.support.servers import SLOW

pytestmark = pytest.mark.usefixtures("one_thread")
WIDE, HIGH = 1400, 1000
PHONE = {"width": 420, "height": 900}
HAS_FOCUS = "(place) => document.querySelector(place).contains(document.activeElement)"
"""Whether the focus is in a part of the page; within a component, the document's active element is its host."""


@pytest.fixture(scope="module")
def address(served: Callable[[Path], str], pictures_cache: Path) -> str:
    return served(pictures_cache)


def panel(page: Page, name: str) -> Locator:
    return page.locator(f".st-key-hs-result-{name}")


def opens(page: Page, name: str, heading: str | re.Pattern[str], by_keys: bool = False) -> None:
    """The panel with this heading is beside the picture, whole on the screen; whoever uses keys has the focus there."""
    found = panel(page, name)
    title = found.get_by_role("heading", name=heading).first
    expect(title).to_be_visible(timeout=SLOW)
    if by_keys:
        expect(found).to_be_focused()
    else:
        settle(page)  # whatever would take the focus has run
        assert page.evaluate(HAS_FOCUS, f".st-key-hs-picture-{name}"), "the focus has left the picture"

    def on_the_screen() -> None:
        box, own = found.bounding_box(), title.bounding_box()
        picture = page.locator(f".st-key-hs-picture-{name}").bounding_box()
        assert box is not None
        assert own is not None
        assert picture is not None
        assert box["x"] >= picture["x"] + picture["width"]  # to the right of it
        assert box["x"] + box["width"] <= WIDE
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= HIGH
        assert box["y"] <= own["y"] <= own["y"] + own["height"] <= box["y"] + box["height"]

    eventually(page, on_the_screen)


def closes(page: Page, name: str, picture: Locator) -> None:
    """The button closes it, and the picture has the focus again."""
    panel(page, name).get_by_role("button", name="Close", exact=True).click()
    expect(panel(page, name)).to_have_count(0, timeout=SLOW)
    expect(picture).to_be_focused()


def test_a_lasso_lists_its_documents_beside_the_map_and_a_row_opens_one(page: Page, address: str) -> None:
    open_map(page, f"{address}/head_map?run=mapped")
    page.get_by_role("button", name="Box").click()
    first, last = spot(page, 0, 4), spot(page, 19, 4)
    draw(page, [(first[0] - 9, first[1] - 9), (last[0] + 9, last[1] + 9)])
    opens(page, "map", "20 points of 20 documents")
    settle(page)
    table = panel(page, "map").locator("[data-testid=stDataFrame]")
    table.click(position={"x": 20, "y": 55})  # the first row's box
    expect(panel(page, "map").get_by_role("heading", name="Document 1", exact=True)).to_be_visible(timeout=SLOW)
    expect(page.locator(".rings circle.own")).to_have_count(4)  # the map shows the document as well
    expect(page).to_have_url(re.compile(r"doc=1"))
    closes(page, "map", page.locator(".box"))
    shown(page, "lit", "0")
    expect(page).not_to_have_url(re.compile(r"area=|doc="))


def test_keys_open_a_document_of_the_map_and_escape_goes_back(page: Page, address: str) -> None:
    open_map(page, f"{address}/head_map?run=mapped&heads=1")
    page.locator(".box").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".tip-title")).to_have_text("20 · Document 19.")
    page.keyboard.press("Enter")
    opens(page, "map", "Document 20", by_keys=True)
    page.keyboard.press("Escape")
    expect(panel(page, "map")).to_have_count(0, timeout=SLOW)
    expect(page.locator(".box")).to_be_focused()


def test_a_link_opens_the_panel_and_leaves_the_focus_alone(page: Page, address: str) -> None:
    open_map(page, f"{address}/head_map?run=mapped&doc=6")
    expect(panel(page, "map").get_by_role("heading", name="Document 6")).to_be_visible(timeout=SLOW)
    settle(page)
    expect(panel(page, "map")).not_to_be_focused()


def test_a_cell_of_the_heat_map(page: Page, address: str) -> None:
    page.goto(f"{address}/heat_map?run=demo")
    canvas = page.locator(".hs-heat-map[data-version] canvas")
    expect(canvas).to_be_visible(timeout=SLOW)
    settle(page)
    canvas.click(position={"x": 200, "y": 100})
    opens(page, "heat", re.compile(r"Document \d+ in head \d"))
    closes(page, "heat", page.locator(".hs-heat-map .frame"))


def test_a_cell_of_the_layers(page: Page, address: str) -> None:
    page.goto(f"{address}/layers?run=planted")
    cell = page.locator('.hs-grid .cell[data-row="1"][data-column="2"]').first
    expect(cell).to_be_visible(timeout=SLOW)
    settle(page)
    cell.click()
    opens(page, "grid", "Layer 2, head 2, at stage 1")
    closes(page, "grid", cell)
    cell.press("Enter")  # and once more by keys
    opens(page, "grid", "Layer 2, head 2, at stage 1", by_keys=True)


@pytest.mark.parametrize(
    ("path", "name", "heading"),
    [("attention", "types", "Layer 2, head 2: sink"), ("ablation", "ablation", "Layer 2, head 1")],
)
def test_a_cell_of_the_grid(page: Page, address: str, path: str, name: str, heading: str) -> None:
    page.goto(f"{address}/{path}?run=demo")
    cell = page.locator('.hs-grid .cell[data-row="1"][data-column="1"]').first
    expect(cell).to_be_visible(timeout=SLOW)
    settle(page)
    cell.click()
    opens(page, name, heading)
    closes(page, name, cell)


def test_on_a_narrow_screen_the_result_is_scrolled_to(page: Page, address: str) -> None:
    page.set_viewport_size(PHONE)
    page.goto(f"{address}/attention?run=demo")
    cell = page.locator('.hs-grid .cell[data-row="1"][data-column="1"]').first
    expect(cell).to_be_visible(timeout=SLOW)
    settle(page)
    cell.click()
    title = panel(page, "types").get_by_role("heading", name="Layer 2, head 2: sink")
    expect(title).to_be_visible(timeout=SLOW)
    expect(panel(page, "types")).to_be_focused()
    expect(title).to_be_in_viewport(ratio=1)
    closes(page, "types", cell)
    expect(cell).to_be_in_viewport()
