"""The Head map in a real browser by fingers and keys; its rings, its picture, and its view in a link."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from tests.browser.test_browser_head_map import open_map, serve_mapped, shown, spot
from tests.pages.test_page_head_map import DOCS
from tests.support.browser import Fingers, eventually, settle, still
from tests.support.servers import SLOW

FOOT = 34
"""Pixels of the caption under a picture."""


@pytest.fixture(scope="module")
def address(served: Callable[[Path], str], tmp_path_factory: pytest.TempPathFactory) -> str:
    return serve_mapped(served, tmp_path_factory)


def place(page: Page) -> np.ndarray:
    """Left, top, right and bottom of the whole map, in pixels of its box."""
    box = page.locator(".box")
    expect(box).to_have_attribute("data-place", re.compile(r"\d"), timeout=SLOW)
    return np.array([float(value) for value in (box.get_attribute("data-place") or "").split()])


def moves_to(page: Page, expected: np.ndarray) -> None:
    """The map comes to lie there, to a pixel."""
    eventually(page, lambda: np.testing.assert_allclose(place(page), expected, atol=1))


def middle(page: Page) -> tuple[float, float]:
    """The middle of the map's box on the screen; no point of the planted map is near it."""
    page.locator(".box").scroll_into_view_if_needed()
    box = still(page.locator(".box"))
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def scrolled(page: Page) -> float:
    return float(page.locator("[data-testid=stMain]").evaluate("element => element.scrollTop"))


def zoom_by_wheel(page: Page, by: float) -> None:
    page.keyboard.down("Control")
    page.mouse.wheel(0, by)
    page.keyboard.up("Control")


def whole_again(page: Page, before: np.ndarray) -> None:
    page.get_by_role("button", name="Reset view").click()
    moves_to(page, before)


def about_the_middle(page: Page, before: np.ndarray, times: float) -> np.ndarray:
    """Where the map is when what was in the middle of its box stays there, and all else is so many times as far."""
    box = still(page.locator(".box"))
    centre = np.array([box["width"], box["height"]] * 2) / 2
    return centre + times * (before - centre)


def test_fingers_move_zoom_choose_and_scroll_the_page_from_outside_the_map(phone: Page, address: str) -> None:
    open_map(phone, address)
    (x, y), fingers = middle(phone), Fingers(phone)
    before, page_before = place(phone), scrolled(phone)

    # One finger moves the map, and not the page.
    fingers.put((x, y))
    fingers.move((x + 60, y - 80))
    fingers.lift()
    moves_to(phone, before + np.array([60, -80, 60, -80]))
    assert scrolled(phone) == page_before
    shown(phone, "lit", "0")  # dragging chooses nothing
    whole_again(phone, before)

    # Two fingers zoom about their middle.
    x, y = middle(phone)
    fingers.put((x - 40, y), (x + 40, y))
    fingers.move((x - 80, y), (x + 80, y))
    fingers.lift()
    moves_to(phone, about_the_middle(phone, before, 2))
    shown(phone, "lit", "0")
    whole_again(phone, before)

    # A tap chooses and names the point.
    fingers.tap(spot(phone, 5, 2))
    expect(phone.locator(".tip-title")).to_have_text("6 · Document 5.")
    shown(phone, "lit", "4")
    expect(phone.get_by_role("heading", name="Document 6")).to_be_visible(timeout=SLOW)
    phone.wait_for_url("**/head_map?doc=6")

    # From outside the map a finger scrolls the page.
    settle(phone)
    phone.locator("[data-testid=stMain]").evaluate("element => element.scrollTo(0, 0)")
    line = still(phone.get_by_text("Every point is"))
    x, y = line["x"] + 100, line["y"] + 40
    fingers.put((x, y))
    fingers.move((x, y - 120), steps=12)
    fingers.lift()
    phone.wait_for_function("document.querySelector('[data-testid=stMain]').scrollTop > 60")


def test_one_finger_draws_an_area_and_a_second_gives_it_up(phone: Page, address: str) -> None:
    open_map(phone, address)
    before, fingers = place(phone), Fingers(phone)
    for mode in ("Box", "Lasso"):
        phone.get_by_role("button", name=mode).click()
        first, last = spot(phone, 0, 4), spot(phone, 19, 4)
        fingers.put((first[0] - 9, first[1] - 9))
        if mode == "Lasso":
            fingers.move((last[0] + 9, first[1] - 9))
        fingers.move((last[0] + 9, last[1] + 9))
        if mode == "Lasso":
            fingers.move((first[0] - 9, last[1] + 9))
        fingers.lift()
        expect(phone.get_by_role("heading", name="20 points of 20 documents")).to_be_visible(timeout=SLOW)
        shown(phone, "lit", "20")
        assert np.array_equal(place(phone), before)
        phone.get_by_role("button", name="Clear selection").click()
        expect(phone.get_by_role("heading", name="points of")).to_have_count(0, timeout=SLOW)
        shown(phone, "lit", "0")
        settle(phone)

    x, y = middle(phone)
    fingers.put((x - 40, y))
    fingers.put((x - 40, y), (x + 40, y))
    fingers.move((x - 60, y), (x + 60, y))
    fingers.lift()
    moves_to(phone, about_the_middle(phone, before, 1.5))
    settle(phone)
    assert "area=" not in phone.url


def test_keys_go_from_point_to_point_and_choose(page: Page, address: str) -> None:
    open_map(page, f"{address}?heads=1")
    box, title = page.locator(".box"), page.locator(".tip-title")
    page.keyboard.press("ArrowLeft")
    expect(title).to_be_hidden()  # nobody has asked the map
    box.focus()
    expect(box).to_have_css("outline-style", "solid")
    expect(page.locator(".help.keys")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect(title).to_have_text("20 · Document 19.")  # head 1's last document is nearest to the middle
    for key, document in (("ArrowLeft", 18), ("ArrowLeft", 17), ("ArrowRight", 18), ("ArrowUp", 18)):
        page.keyboard.press(key)
        expect(title).to_have_text(f"{document + 1} · Document {document}.")
    expect(page.locator(".unseen")).to_have_text(re.compile(r"^19 · Document 18\., head 1 · rivers · activation"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Document 19")).to_be_visible(timeout=SLOW)
    shown(page, "lit", "4")
    box.focus()  # it went to the panel; test_browser_beside.py has the way back
    page.keyboard.press("ArrowDown")  # the first key shows the cursor on the chosen document
    expect(title).to_have_text("19 · Document 18.")
    page.keyboard.press("ArrowDown")  # which is lit in all its heads: straight below head 1 is head 3
    expect(page.locator(".tip-meta")).to_contain_text("head 3")
    page.keyboard.press("Escape")
    shown(page, "lit", "0")
    expect(title).to_be_hidden()
    expect(page.get_by_role("heading", name="Document 19")).to_have_count(0, timeout=SLOW)


def test_keys_zoom_and_follow_the_cursor_out_of_sight(page: Page, address: str) -> None:
    open_map(page, f"{address}?heads=1")
    page.locator(".box").focus()
    for key in ("+", "+", "-", "="):
        page.keyboard.press(key)
    shown(page, "camera", "0.5,0.5,2.25")
    page.wait_for_url("**/head_map?heads=1&camera=0.5,0.5,2.25")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".tip-title")).to_have_text("19 · Document 18.")
    tip, box = still(page.locator(".tip")), still(page.locator(".box"))
    assert box["x"] <= tip["x"] <= tip["x"] + tip["width"] <= box["x"] + box["width"]
    assert box["y"] <= tip["y"] <= tip["y"] + tip["height"] <= box["y"] + box["height"]
    page.keyboard.press("0")
    shown(page, "camera", "whole")
    page.wait_for_url("**/head_map?heads=1")


def rings(page: Page) -> list[tuple[float, float]]:
    """The middles on the screen of all four."""
    expect(page.locator(".rings circle.own")).to_have_count(4)
    still(page.locator(".rings circle.own").last)
    found = page.locator(".rings circle.own").evaluate_all(
        "rings => rings.map((ring) => { const box = ring.getBoundingClientRect();"
        " return [box.left + box.width / 2, box.top + box.height / 2]; })"
    )
    return [(x, y) for x, y in found]


def test_rings_mark_the_chosen_document_and_go_with_the_map(page: Page, address: str) -> None:
    open_map(page, f"{address}?doc=6&colour=activation")
    expect(page.locator(".rings circle.own")).to_have_count(4)
    expect(page.locator(".rings text")).to_have_text(["1", "2", "3", "4"])

    def around_the_document() -> None:
        np.testing.assert_allclose(rings(page), [spot(page, 5, head) for head in (1, 2, 3, 4)], atol=1)

    eventually(page, around_the_document)
    before = place(page)
    page.mouse.move(*middle(page))
    zoom_by_wheel(page, -60)
    page.wait_for_function("document.location.search.includes('camera=')")
    settle(page)

    def moved() -> None:
        assert not np.allclose(place(page), before, atol=1)

    eventually(page, moved)
    eventually(page, around_the_document)
    page.get_by_role("button", name="Clear selection").click()
    expect(page.locator(".rings circle")).to_have_count(0)


def test_rings_in_one_map_a_head(page: Page, address: str) -> None:
    open_map(page, f"{address}?doc=6&layout=heads")
    expect(page.locator("canvas.flat[data-drawn]")).to_be_visible(timeout=SLOW)
    expect(page.locator(".rings circle.own")).to_have_count(4)
    expect(page.locator(".rings text")).to_have_count(0)  # each small map is named already
    page.locator(".box").scroll_into_view_if_needed()
    for head, where in enumerate(rings(page), 1):
        page.mouse.move(*where)
        expect(page.locator(".tip-title")).to_have_text("6 · Document 5.")
        expect(page.locator(".tip-meta")).to_contain_text(f"head {head} ·")


@pytest.mark.parametrize("kind", ["one", "heads"])
def test_a_picture_is_taken_away(page: Page, address: str, kind: str) -> None:
    layout = "&layout=heads" if kind == "heads" else "&camera=0.45,0.5,1.1"
    open_map(page, f"{address}?doc=6{layout}")
    expect(page.locator(".rings circle.own")).to_have_count(4)
    page.locator(".box").scroll_into_view_if_needed()
    box = still(page.locator(".box"))
    before = rings(page)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save picture").click()
    assert waiting.value.suggested_filename == "head-map-mapped-stage-1.png"
    picture = np.asarray(Image.open(io.BytesIO(Path(waiting.value.path()).read_bytes())).convert("RGB")).astype(int)
    assert abs(picture.shape[1] - 2 * box["width"]) <= 2
    assert abs(picture.shape[0] - 2 * (box["height"] + FOOT)) <= 2
    paper = picture[2, 2]
    assert paper.min() > 240  # the light theme's
    for x, y in before:
        left, top = 2 * (x - box["x"] - 1), 2 * (y - box["y"] - 1)
        around = picture[int(top) - 20 : int(top) + 20, int(left) - 20 : int(left) + 20]
        assert around.min() < 60  # the ring's ink
        inner = picture[int(top) - 3 : int(top) + 4, int(left) - 3 : int(left) + 4].reshape(-1, 3)
        assert np.abs(inner - paper).sum(axis=1).max() > 90  # the point itself
    assert (np.abs(picture - paper).sum(axis=2) > 40)[-2 * FOOT :].sum() > 200  # the caption's letters
    after = rings(page)
    np.testing.assert_allclose(after, before, atol=1)  # and the map is as it was


def test_camera_and_layout_are_in_the_link(page: Page, stranger: Page, address: str) -> None:
    open_map(page, address)
    steps = page.evaluate("history.length")
    (x, y), before = middle(page), place(page)
    page.mouse.move(x, y)
    zoom_by_wheel(page, -80)
    page.wait_for_function("document.location.search.includes('camera=')")
    page.mouse.down()
    page.mouse.move(x + 90, y + 30, steps=6)
    page.mouse.up()
    cameras: list[str | None] = []

    def in_the_address() -> None:
        cameras.append(page.locator(".head-map").get_attribute("data-camera"))
        assert page.url.endswith(f"?camera={cameras[-1]}")
        assert len(cameras) > 6  # and for as long as it is put off
        assert len(set(cameras[-6:])) == 1

    eventually(page, in_the_address)
    seen, camera = place(page), cameras[-1]
    assert seen[2] - seen[0] > 1.05 * (before[2] - before[0])
    assert page.evaluate("history.length") == steps  # moving is no step of the history
    open_map(stranger, page.url)
    shown(stranger, "camera", str(camera))
    moves_to(stranger, seen)
    page.get_by_text("2 projected", exact=True).click()
    page.wait_for_url(f"**/head_map?camera={camera}&stage=2")
    settle(page)
    page.get_by_role("button", name="One map per head").click()
    page.wait_for_url(f"**/head_map?camera={camera}&stage=2&layout=heads")
    open_map(stranger, page.url)
    expect(stranger.locator("canvas.flat[data-drawn]")).to_be_visible(timeout=SLOW)
    stranger.get_by_role("button", name="One map", exact=True).click()
    shown(stranger, "camera", str(camera))
    stranger.get_by_role("button", name="Reset view").click()
    stranger.wait_for_url(re.compile(r"/head_map\?stage=2$"))
    shown(stranger, "camera", "whole")


def test_the_server_leaves_camera_and_words_alone(page: Page, address: str) -> None:
    open_map(page, f"{address}?camera=0.45,0.55,1.2&words=rivers")
    shown(page, "camera", "0.45,0.55,1.2")
    page.mouse.move(*spot(page, 7, 1))
    expect(page.locator(".tip-title")).to_have_text("8 · Document 7.")
    page.mouse.click(*spot(page, 7, 1))
    expect(page.get_by_role("heading", name="Document 8")).to_be_visible(timeout=SLOW)
    expect(page).to_have_url(re.compile("doc=8"))
    settle(page)
    page.wait_for_timeout(600)  # longer than the map puts off what it writes there
    assert {"camera=0.45,0.55,1.2", "words=rivers", "doc=8"} == set(page.url.split("?")[1].split("&"))
    page.get_by_role("link", name="Stages").first.click()
    expect(page.get_by_role("heading", name="Stages", exact=True)).to_be_visible(timeout=SLOW)
    settle(page)
    page.get_by_role("link", name="Head map").first.click()
    expect(page.locator("canvas[data-drawn]")).to_be_visible(timeout=SLOW)
    shown(page, "camera", "0.45,0.55,1.2")
    expect(page.get_by_role("textbox", name="Highlight documents")).to_have_value("rivers")


@pytest.mark.parametrize(
    "given",
    ["camera=1,2", "camera=9,9,9", "camera=0.5,0.5,0", "camera=NaN,0,1", "camera=<script>hit=1</script>", "layout=<b>"],
)
def test_a_hostile_camera_or_layout_is_left_out(page: Page, address: str, given: str) -> None:
    open_map(page, f"{address}?{given}")
    shown(page, "camera", "whole")
    expect(page.get_by_text("The link has an unknown value for")).to_be_visible(timeout=SLOW)
    settle(page)
    page.wait_for_url(re.compile(r"/head_map$"))
    expect(page.get_by_role("button", name="One map", exact=True)).to_have_attribute("aria-pressed", "true")


def test_words_light_up_documents_and_are_in_the_link(page: Page, stranger: Page, address: str) -> None:
    open_map(page, address)
    field = page.get_by_role("textbox", name="Highlight documents")
    field.fill("  document   1 ")
    field.press("Enter")
    shown(page, "lit", str(4 * 11))
    expect(page.get_by_text(f"11 of {DOCS} documents contain")).to_be_visible(timeout=SLOW)
    page.wait_for_url("**/head_map?words=document+1")
    open_map(stranger, page.url)
    shown(stranger, "lit", str(4 * 11))
    expect(stranger.get_by_role("textbox", name="Highlight documents")).to_have_value("document 1")
    field.fill(" document 19 ")
    field.press("Enter")
    shown(page, "lit", "4")
    page.wait_for_url("**/head_map?words=document+19")
    settle(page)
    page.go_back()
    shown(page, "lit", str(4 * 11))
    expect(field).to_have_value("document 1")
    field.fill("")
    field.press("Enter")
    shown(page, "lit", "0")
    page.wait_for_url(re.compile(r"/head_map$"))


def test_untrusted_words_stay_words(page: Page, address: str) -> None:
    nasty = '<img src=x onerror="window.hit=1">'
    open_map(page, f"{address}?words=%3Cimg%20src=x%0Aonerror=%22window.hit=1%22%3E")
    expect(page.get_by_role("textbox", name="Highlight documents")).to_have_value(nasty)
    expect(page.get_by_text("No document contains all of these words")).to_be_visible(timeout=SLOW)
    assert page.evaluate("window.hit") is None
