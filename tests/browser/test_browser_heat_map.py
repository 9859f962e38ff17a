"""The Topic heat map in a real browser: cells are clicked, zoomed, dragged and reached by keys."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support.browser import Fingers, eventually, fits, narrow, settle, still
from tests.support.servers import SLOW

GAP, FULL_GAP = 3, 4
"""Pixels between blocks, and under the full embedding's row."""


@pytest.fixture(scope="module")
def address(served: Callable[[Path], str], retrieved_cache: Path) -> str:
    return f"{served(retrieved_cache)}/heat_map"


@dataclass(frozen=True)
class Column:
    """A document as the files have it: its number from 1, and its similarity ``values[1 + head]`` at stage 1."""

    number: int
    title: str
    values: np.ndarray


@pytest.fixture(scope="module")
def columns(analysed_cache: Path) -> list[Column]:
    """The default view's columns: the first eight topics, in each the most similar document first."""
    run = analysed_cache / "demo"
    table, topics = pq.read_table(run / "documents.parquet"), pq.read_table(run / "topics.parquet")["topic"].to_pylist()
    titles, of = table["title"].to_pylist(), table["topic"].to_pylist()
    values = np.array(pq.read_table(run / "similarity" / "stage=1.parquet")["values"].to_pylist())
    values = values.reshape(len(of), 13, len(topics))
    found = []
    for number, topic in enumerate(topics[:8]):
        docs = [doc for doc, own in enumerate(of) if own == topic]
        docs.sort(key=lambda doc: (-values[doc, 0, number], doc))
        found += [Column(doc + 1, titles[doc], values[doc, :, number]) for doc in docs]
    return found


def opened(page: Page, address: str) -> Locator:
    """The canvas, drawn."""
    page.goto(address)
    canvas = page.locator(".hs-heat-map[data-version] canvas").first
    expect(canvas).to_be_visible(timeout=SLOW)
    settle(page)
    canvas.scroll_into_view_if_needed()
    return canvas


def place(canvas: Locator, row: int, column: int) -> dict[str, float]:
    """The middle of a cell of 13 rows and 8 blocks of 13 columns, not zoomed."""
    box = still(canvas)
    wide, high = (box["width"] - 7 * GAP) / 104, (box["height"] - FULL_GAP) / 13
    return {"x": (column + 0.5) * wide + column // 13 * GAP, "y": (row + 0.5) * high + (FULL_GAP if row else 0)}


def shows(page: Page, column: Column, row: int) -> None:
    """Exactly this document, in that row, is open below."""
    where = f"head {row}" if row else "the full embedding"
    expect(page.get_by_role("heading", name=f"Document {column.number} in {where}", exact=True)).to_be_visible(
        timeout=SLOW
    )
    settle(page)
    expect(page.locator(".hs-card .hs-title").first).to_have_text(" ".join(column.title.split()))


def test_a_clicked_cell_shows_exactly_its_document(page: Page, address: str, columns: list[Column]) -> None:
    """One after the other on one page: each takes the place of the one before."""
    canvas = opened(page, address)
    tip = page.locator(".hs-heat-map .tip")
    for row, column in ((0, 0), (5, 30), (12, 103), (7, 64)):
        canvas.scroll_into_view_if_needed()
        at = place(canvas, row, column)
        canvas.hover(position=at)
        expect(tip).to_contain_text(" ".join(columns[column].title.split())[:60])
        expect(tip.locator(".value")).to_have_text(f"{columns[column].values[row]:+.3f}".replace("-", "−"))
        canvas.click(position=at)
        shows(page, columns[column], row)
        page.wait_for_url(f"**/heat_map?*doc={columns[column].number}*")


def test_cells_between_blocks_and_rows_are_none(page: Page, address: str) -> None:
    canvas = opened(page, address)
    before, after = place(canvas, 3, 12), place(canvas, 3, 13)
    canvas.click(position={"x": (before["x"] + after["x"]) / 2, "y": before["y"]})
    expect(page.locator(".hs-heat-map .tip")).to_be_hidden()
    settle(page)
    expect(page.get_by_text("Click a cell to read its document")).to_be_visible()


def test_zoomed_and_dragged_cells_are_exact(page: Page, address: str, columns: list[Column]) -> None:
    canvas = opened(page, f"{address}?doc=1")  # the panel is open from the start: the canvas keeps its width
    chart = page.locator(".hs-heat-map")
    canvas.hover(position=place(canvas, 4, 50))
    page.mouse.wheel(0, -100)
    expect(chart).to_have_attribute("data-zoom", "1.000")  # a plain wheel is the page's
    canvas.scroll_into_view_if_needed()
    at = place(canvas, 4, 50)
    canvas.hover(position=at)
    page.keyboard.down("Control")
    for _ in range(3):
        page.mouse.wheel(0, -120)
    page.keyboard.up("Control")
    expect(chart).not_to_have_attribute("data-zoom", "1.000")
    canvas.click(position=at)  # the cell under the pointer has stayed there
    shows(page, columns[50], 4)
    zoom = float(chart.get_attribute("data-zoom") or 0)
    box = still(canvas)
    cell = (box["width"] - 7 * GAP) / 104 * zoom
    canvas.scroll_into_view_if_needed()
    box = still(canvas)
    page.mouse.move(box["x"] + at["x"], box["y"] + at["y"])
    page.mouse.down()
    page.mouse.move(box["x"] + at["x"] - 3 * cell, box["y"] + at["y"], steps=5)
    page.mouse.up()
    shows(page, columns[50], 4)  # dragging opens nothing
    canvas.hover(position={"x": at["x"] + 1, "y": at["y"]})
    expect(page.locator(".hs-heat-map .tip .first")).to_have_text(columns[53].title)
    canvas.click(position={"x": at["x"], "y": at["y"]})
    shows(page, columns[53], 4)
    page.locator(".hs-heat-map").get_by_role("button", name="Show all columns").click()
    expect(chart).to_have_attribute("data-zoom", "1.000")
    canvas.click(position=place(canvas, 4, 50))
    shows(page, columns[50], 4)


def test_the_keyboard_reaches_cells_and_names(page: Page, address: str, columns: list[Column]) -> None:
    opened(page, address)
    frame = page.locator(".hs-heat-map .frame")
    frame.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "PageDown", "ArrowRight"):
        page.keyboard.press(key)  # the first one shows the cursor
    expect(page.locator(".hs-heat-map .tip .first")).to_have_text(columns[14].title)
    expect(frame).to_have_css("outline-style", "solid")
    page.keyboard.press("Enter")
    shows(page, columns[14], 2)
    frame.focus()
    for key in ("Home", "Home", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    expect(page.get_by_role("heading", name="Head 2", exact=True)).to_be_visible(timeout=SLOW)


def test_names_open_a_head_s_profile_and_a_topic_s_documents(page: Page, address: str) -> None:
    opened(page, address)
    page.locator(".hs-heat-map .topic").nth(3).click()
    expect(page.get_by_role("heading", name="Food, Summer, Recipes")).to_be_visible(timeout=SLOW)
    expect(page.get_by_text("13 documents, nearest to the topic's name first")).to_be_visible()
    settle(page)
    page.locator(".hs-heat-map .row").nth(9).click()
    page.get_by_test_id("stMain").get_by_role("link", name="Profile of head 9").click()
    page.wait_for_url("**/head_profile?*head=9*")


def test_a_link_shows_the_same_elsewhere(page: Page, stranger: Page, address: str, columns: list[Column]) -> None:
    canvas = opened(page, address)
    canvas.click(position=place(canvas, 6, 20))
    shows(page, columns[20], 6)
    page.wait_for_url("**/heat_map?*head=6*")
    opened(stranger, page.url)
    shows(stranger, columns[20], 6)


@pytest.mark.parametrize(
    ("scheme", "topics"), [("light", ""), ("dark", "?t=" + ",".join(str(topic) for topic in range(25)))]
)
def test_a_narrow_screen_has_no_overlap(
    page: Page, address: str, scheme: Literal["light", "dark"], topics: str
) -> None:
    opened(narrow(page, scheme), address + topics)
    fits(page, 420)

    def names_have_room() -> None:
        names = [found.bounding_box() for found in page.locator(".hs-heat-map .topic:visible").all()]
        assert len(names) >= 8
        edges = [(box["x"], box["x"] + box["width"]) for box in names if box is not None]
        assert all(right <= left + 0.6 for (_, right), (left, _) in pairwise(edges))
        assert all(left >= 0 and right <= 420 for left, right in edges)

    eventually(page, names_have_room)


def test_fingers_open_zoom_and_scroll(phone: Page, address: str, columns: list[Column]) -> None:
    page = phone
    canvas, chart, fingers = opened(page, address), page.locator(".hs-heat-map"), Fingers(page)
    canvas.scroll_into_view_if_needed()
    box = still(canvas)
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    fingers.put((x - 30, y), (x + 30, y))
    fingers.move((x - 120, y), (x + 120, y))
    fingers.lift()
    expect(chart).to_have_attribute("data-zoom", "4.000")
    settle(page)
    expect(page.get_by_text("Click a cell to read its document")).to_be_visible()  # two fingers open nothing
    page.locator(".hs-heat-map").get_by_role("button", name="Show all columns").click()
    expect(chart).to_have_attribute("data-zoom", "1.000")
    canvas.scroll_into_view_if_needed()
    box = still(canvas)
    wide, high, gap = (box["width"] - 7 * 2) / 104, (box["height"] - FULL_GAP) / 13, 2  # narrower gaps on a phone
    fingers.tap((box["x"] + 50.5 * wide + 50 // 13 * gap, box["y"] + 4.5 * high + FULL_GAP))
    shows(page, columns[50], 4)
    main = page.locator("[data-testid=stMain]")
    canvas.scroll_into_view_if_needed()
    box = still(canvas)
    before = main.evaluate("element => element.scrollTop")
    fingers.put((x, box["y"] + 150))
    fingers.move((x, box["y"] + 30), steps=12)
    fingers.lift()
    page.wait_for_function(
        "before => document.querySelector('[data-testid=stMain]').scrollTop > before + 40", arg=before
    )


BIG = """
import numpy as np, pyarrow as pa, streamlit as st
from pages.shared.components.heatmap import Look, Panel, Sheet, canvas_heat_map, read_pick
from pages.shared.theme import FRAME, DIVERGING, GROUND, INK

st.set_page_config(layout="wide")
st.title("Big")
values = np.tile(np.array([0.9, -0.9], dtype=np.float32), (33, 5_000))
values[:, 5_000:] = 0.9
nasty = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>'
names, titles = [nasty + "left", nasty + "right"], pa.array([f"{nasty} {column}" for column in range(10_000)])
rows = ["full", *(f"head {head}" for head in range(1, 33))]
sheet = Sheet("big", "Big.", [Panel("Stage 1", values, 0.9)], rows, names, [0, 5_000], titles)

def picked():
    st.session_state["picked"] = read_pick("big", sheet)

canvas_heat_map(sheet, Look(DIVERGING["light"], INK["light"], GROUND["light"], FRAME["light"]), "big", None, picked)
pick = st.session_state.get("picked")
st.text(f"picked {pick.row} {pick.column}" if pick else "nothing")
"""


def test_ten_thousand_columns(page: Page, serve: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "big.py").write_text(BIG)
    received = [0]

    def count(payload: str | bytes) -> None:
        received[0] += len(payload)

    page.on("websocket", lambda socket: socket.on("framereceived", count))
    canvas = opened(page, serve(tmp_path, str(tmp_path / "big.py")))
    expect(page.locator(".hs-heat-map .note")).to_contain_text("Each pixel shows the mean of about")
    assert received[0] > 33 * 10_000 * 2
    box = still(canvas)
    base, high = (box["width"] - GAP) / 10_000, (box["height"] - FULL_GAP) / 33
    # +0.9 and −0.9 in turn: their mean is the scale's middle; only +0.9: its end
    colour = "(canvas, share) => [...canvas.getContext('2d').getImageData(canvas.width * share, 60, 1, 1).data]"

    def coloured() -> None:
        middle = np.array([canvas.evaluate(colour, at) for at in np.linspace(0.05, 0.45, 40).tolist()])
        assert np.abs(middle[:, :3].mean(axis=0) - [0xF4, 0xF1, 0xEA]).max() < 12
        assert canvas.evaluate(colour, 0.75) == [0xB0, 0x3A, 0x2E, 255]

    eventually(page, coloured)
    before = received[0]
    for row, x in ((0, 200.5), (20, 901.5)):
        canvas.click(position={"x": x, "y": (row + 0.5) * high + (FULL_GAP if row else 0)})
        column = int((x - (GAP if x > box["width"] / 2 else 0)) / base)
        expect(page.get_by_text(f"picked {row} {column}", exact=True)).to_be_visible(timeout=SLOW)
    settle(page)
    assert received[0] - before < 20_000  # the cells are not sent again
    page.keyboard.down("Control")
    for _ in range(25):
        page.mouse.wheel(0, -120)
    page.keyboard.up("Control")
    expect(page.locator(".hs-heat-map .note")).not_to_contain_text("mean")
    titles: list[str] = []
    for x in (300, 340, 380):
        canvas.hover(position={"x": x, "y": 20.5 * high + FULL_GAP})
        tip = page.locator(".hs-heat-map .tip .first")
        expect(tip).to_have_text(re.compile("^<img src=x onerror"))
        if titles:  # the tip follows the hand: it is another column's
            expect(tip).not_to_have_text(titles[-1])
        titles.append(title := tip.inner_text())
        canvas.click(position={"x": x, "y": 20.5 * high + FULL_GAP})
        expect(page.get_by_text(f"picked 20 {title.split()[-1]}", exact=True)).to_be_visible(timeout=SLOW)
    assert page.evaluate("window.hit") is None


def test_back_and_what_is_taken_away(page: Page, address: str, columns: list[Column], tmp_path: Path) -> None:
    canvas = opened(page, address)
    canvas.click(position=place(canvas, 1, 3))
    shows(page, columns[3], 1)
    page.wait_for_url(f"**/heat_map?*doc={columns[3].number}*")
    canvas.click(position=place(canvas, 2, 70))
    shows(page, columns[70], 2)
    page.wait_for_url(f"**/heat_map?*doc={columns[70].number}*")
    page.go_back()
    shows(page, columns[3], 1)
    page.get_by_role("button", name="Save").first.click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Parquet").first.click()
    download.value.save_as(tmp_path / "cells.parquet")
    table = pq.read_table(tmp_path / "cells.parquet")
    assert table["doc"].to_pylist() == [column.number for column in columns]
    np.testing.assert_array_equal(table["stage 1 head 7"].to_numpy(), [column.values[7] for column in columns])
    page.keyboard.press("Escape")
    with page.expect_download() as download:
        page.locator(".hs-heat-map").get_by_role("button", name="Save as a picture").click()
    download.value.save_as(tmp_path / "map.png")
    picture = (tmp_path / "map.png").read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    # Twice as fine as on the screen, with the rows' names beside the cells.
    assert int.from_bytes(picture[16:20], "big") > 2 * still(canvas)["width"]
