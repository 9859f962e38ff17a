"""The Head map in a real browser, by a person's gestures, on a map laid out by hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from pages.shared.theme import head_colours
from tests.pages.test_page_head_map import DOCS, LEFT_HALF, write_mapped
from tests.support import ROOT
from tests.support.browser import eventually, fits, narrow, settle, still
from tests.support.caches import made_once
from tests.support.servers import SLOW


@pytest.fixture(scope="module")
def address(served: Callable[[Path], str], tmp_path_factory: pytest.TempPathFactory) -> str:
    return serve_mapped(served, tmp_path_factory)


def serve_mapped(served: Callable[[Path], str], temporary: pytest.TempPathFactory) -> str:
    """The address of the Head map of planted runs: one with hostile titles, one whose heads lie on each other."""

    def make(cache: Path) -> None:
        write_mapped(cache)
        write_mapped(cache, "nasty", nasty=True)
        write_mapped(cache, "stacked", stacked=True)

    return f"{served(made_once(temporary, 'mapped-cache', make))}/head_map"


class Traffic:
    """Bytes over the page's websocket."""

    def __init__(self, page: Page) -> None:
        self.sent: list[int] = []
        self.received: list[int] = []
        page.on("websocket", self._listen)

    def _listen(self, socket: object) -> None:
        socket.on("framesent", lambda frame: self.sent.append(len(frame)))  # type: ignore[attr-defined]
        socket.on("framereceived", lambda frame: self.received.append(len(frame)))  # type: ignore[attr-defined]

    def clear(self) -> None:
        self.sent.clear()
        self.received.clear()


def open_map(page: Page, url: str) -> None:
    page.goto(url)
    expect(page.locator("canvas[data-drawn]")).to_be_visible(timeout=SLOW)
    settle(page)


def shown(page: Page, name: str, value: str) -> None:
    expect(page.locator(".head-map")).to_have_attribute(f"data-{name}", value, timeout=SLOW)


def spot(page: Page, doc: int, head: int) -> tuple[float, float]:
    """Where on the screen a point of stage 1 is, worked out from the layout that was planted."""
    box = page.locator(".box")
    box.scroll_into_view_if_needed()
    corner = still(box)
    expect(box).to_have_attribute("data-place", re.compile(r"\d"), timeout=SLOW)
    left, top, right, bottom = (float(value) for value in (box.get_attribute("data-place") or "").split())
    x, y = (-10 if head % 2 else 10) + doc * 0.3 - 3, 10.0 if head <= 2 else -10.0
    xs = np.array([-13.0, 10 + (DOCS - 1) * 0.3 - 3])
    span = max(xs[1] - xs[0], 20.0) * 1.04
    across, up = (x - xs.mean()) / span + 0.5, y / span + 0.5
    edge = 1  # the frame of the box
    return corner["x"] + edge + left + across * (right - left), corner["y"] + edge + bottom - up * (bottom - top)


def draw(page: Page, corners: list[tuple[float, float]]) -> None:
    page.mouse.move(*corners[0])
    page.mouse.down()
    for corner in corners[1:]:
        page.mouse.move(*corner, steps=5)
    page.mouse.up()


def test_the_tools_have_their_place_before_the_map_is_there(page: Page, address: str) -> None:
    open_map(page, address)
    drawn = page.locator(".head-map .bar button").all_inner_texts()
    page.goto("about:blank")
    page.set_content('<!doctype html><div id="around"><div class="head-map"></div></div>')
    page.evaluate(
        """async (script) => {
          const map = await import(URL.createObjectURL(new Blob([script], {type: "text/javascript"})));
          map.default({parentElement: document.getElementById("around")});
        }""",
        (ROOT / "pages/shared/components/map.js").read_text(encoding="utf-8"),
    )
    assert page.locator(".head-map .bar button").all_inner_texts() == drawn
    expect(page.locator(".head-map .bar")).to_have_js_property("inert", True)


def test_chips_filter_and_colours_change_without_the_server(page: Page, address: str) -> None:
    traffic = Traffic(page)
    open_map(page, address)
    shown(page, "heads", "all")
    traffic.clear()
    page.get_by_role("button", name="head 2", exact=True).click()
    shown(page, "heads", "1,3-4")
    page.wait_for_url("**/head_map?heads=1,3-4")
    page.get_by_role("button", name="Invert").click()
    shown(page, "heads", "2")
    page.get_by_role("button", name="group 2").click()
    shown(page, "heads", "3-4")
    page.get_by_role("button", name="None", exact=True).click()
    shown(page, "heads", "none")
    page.get_by_label("Colour by").select_option("topic")
    shown(page, "colour", "topic")
    expect(page.get_by_role("button", name="engines")).to_be_visible()
    page.get_by_role("button", name="All", exact=True).click()
    shown(page, "heads", "all")
    page.wait_for_url("**/head_map?colour=topic")
    assert traffic.sent == []


def test_hover_names_the_point_click_lights_up_its_document_and_a_box_those_inside(page: Page, address: str) -> None:
    open_map(page, address)
    where = spot(page, 5, 2)
    page.mouse.move(where[0] - 3, where[1])
    page.mouse.move(*where)
    expect(page.locator(".tip-title")).to_have_text("6 · Document 5.")
    expect(page.locator(".tip-meta")).to_contain_text("head 2 · engines")
    page.mouse.click(*where)
    shown(page, "lit", "4")
    expect(page.get_by_role("heading", name="Document 6")).to_be_visible(timeout=SLOW)
    page.wait_for_url("**/head_map?doc=6")
    page.get_by_role("button", name="head 2", exact=True).click()
    shown(page, "lit", "4")  # a chosen document shows all its heads
    page.get_by_role("button", name="Clear selection").click()
    shown(page, "lit", "0")
    expect(page.get_by_role("heading", name="Document 6")).to_have_count(0, timeout=SLOW)
    settle(page)
    page.get_by_role("button", name="Box").click()
    first, last = spot(page, 0, 4), spot(page, 19, 4)
    draw(page, [(first[0] - 9, first[1] - 9), (last[0] + 9, last[1] + 9)])
    expect(page.get_by_role("heading", name="20 points of 20 documents")).to_be_visible(timeout=SLOW)
    shown(page, "lit", "20")


def test_a_lasso_fills_the_table_and_its_link_opens_elsewhere(page: Page, stranger: Page, address: str) -> None:
    traffic = Traffic(page)
    open_map(page, address)
    page.get_by_role("button", name="Lasso").click()
    traffic.clear()
    (left, top), (right, _), (_, bottom) = spot(page, 0, 1), spot(page, 9, 1), spot(page, 0, 3)
    right = (right + spot(page, 10, 1)[0]) / 2
    draw(page, [(left - 9, top - 12), (right, top - 12), (right, bottom + 12), (left - 9, bottom + 12)])
    expect(page.get_by_role("heading", name="20 points of 10 documents")).to_be_visible(timeout=SLOW)
    shown(page, "lit", "20")
    page.wait_for_url("**/head_map?area=1_*")
    assert sum(traffic.sent) < 4_000
    open_map(stranger, page.url)
    expect(stranger.get_by_role("heading", name="20 points of 10 documents")).to_be_visible(timeout=SLOW)
    shown(stranger, "lit", "20")
    page.get_by_role("button", name="head 1", exact=True).click()
    expect(page.get_by_role("heading", name="10 points of 10 documents")).to_be_visible(timeout=SLOW)
    settle(page)
    page.go_back()
    expect(page.get_by_role("heading", name="points of")).to_have_count(0, timeout=SLOW)
    shown(page, "lit", "0")


def test_a_stage_that_was_seen_is_not_sent_again(page: Page, address: str) -> None:
    traffic = Traffic(page)
    open_map(page, f"{address}?heads=2")
    first = page.locator(".head-map").get_attribute("data-key") or ""
    for stage in ("2 projected", "3 output", "1 attention"):
        traffic.clear()
        page.get_by_text(stage, exact=True).click()
        shown(page, "key", first[:-1] + stage[0])
        settle(page)
        shown(page, "heads", "2")
    assert first.endswith("/1")
    assert 0 < sum(traffic.received) < 20_000  # the bundle alone is over 40,000


def test_one_map_a_head_shares_the_selection(page: Page, address: str) -> None:
    open_map(page, f"{address}?area={LEFT_HALF}")
    page.get_by_role("button", name="One map per head").click()
    expect(page.locator("canvas.flat[data-drawn]")).to_be_visible(timeout=SLOW)
    shown(page, "lit", str(2 * DOCS))
    page.get_by_role("button", name="One map", exact=True).click()
    expect(page.locator("canvas.flat")).to_have_count(0, timeout=SLOW)
    expect(page.locator("canvas[data-drawn]")).to_be_visible(timeout=SLOW)


def test_a_point_has_its_heads_colour_where_it_lies(page: Page, address: str) -> None:
    """A disc of 4 pixels, 88 % of the head's colour on paper; points of a row are 6 pixels apart."""
    open_map(page, address)
    colours = head_colours(4, 2, "light")
    box = still(page.locator(".box"))
    pixel = "(canvas, [x, y]) => [...canvas.getContext('2d').getImageData(Math.floor(x), Math.floor(y), 1, 1).data]"
    canvas = page.locator("canvas[data-drawn]")
    paper = np.array(canvas.evaluate(pixel, [2, 2])[:3])
    for doc, head in ((0, 1), (7, 3), (12, 2), (19, 4)):
        x, y = spot(page, doc, head)
        painted = np.array(canvas.evaluate(pixel, [x - box["x"] - 1, y - box["y"] - 1])[:3])
        own = np.array([int(colours[head - 1][at : at + 2], 16) for at in (1, 3, 5)])
        np.testing.assert_allclose(painted, 0.88 * own + 0.12 * paper, atol=3)


def test_untrusted_titles_and_topics_do_nothing(page: Page, address: str) -> None:
    open_map(page, f"{address}?run=nasty&colour=topic&doc=3&area={LEFT_HALF}")
    page.mouse.move(*spot(page, 5, 2))
    page.mouse.move(*spot(page, 6, 2))
    expect(page.locator(".tip-title")).to_contain_text("<img src=x onerror")
    expect(page.locator(".legend")).to_contain_text("<img src=x onerror")
    assert page.evaluate("window.hit") is None


def test_a_narrow_screen_scrolls_only_downwards(page: Page, address: str) -> None:
    open_map(narrow(page, "dark"), f"{address}?colour=topic&area={LEFT_HALF}")
    fits(page, 420)

    def nothing_sticks_out() -> None:
        for name in (".head-map", ".box", ".bar", ".side"):
            box = page.locator(name).bounding_box()
            assert box is not None
            assert box["x"] + box["width"] <= 420

    eventually(page, nothing_sticks_out)
