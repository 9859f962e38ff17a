"""The Head map beyond a million points in a real browser: density, single points where few are in view, and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from playwright.sync_api import Page, expect

from core.model.shape import ModelShape
from core.runs.manifest import Step
from core.runs.parts import write_table
from core.runs.run import Run
from core.runs.schema import MAP
from tests.browser.test_browser_head_map import Traffic, draw, open_map, shown
from tests.support.browser import settle, still
from tests.support.caches import made_once
from tests.support.servers import SLOW
from tests.support.synthetic import write_run

DOCS, HEADS = 64_100, 16
ALL = f"{DOCS * HEADS:,}"
"""1,025,600 points: each head's lie on a line of its own, document after document, heads 1 to 16 from below."""


@pytest.fixture(scope="module")
def address(served: Callable[[Path], str], tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"{served(made_once(tmp_path_factory, 'dense-cache', write_dense))}/head_map"


def write_dense(cache: Path) -> Run:
    shape = ModelShape(layers=1, heads=HEADS, kv_heads=4, hidden=HEADS, head_dim=1)
    labels = [("early", "late")[2 * doc // DOCS] for doc in range(DOCS)]
    ones = np.ones((DOCS, HEADS), dtype=np.float32)
    run = write_run(cache, "dense", shape, lambda *_: ones, labels, part_size=DOCS, stages=(1,))
    doc, head = np.repeat(np.arange(DOCS), HEADS), np.tile(np.arange(HEADS), DOCS)
    columns = {"doc": doc, "head": head + 1, "x": doc / DOCS, "y": head / HEADS, "activation": head, "fitted": doc >= 0}
    arrays = [pa.array(columns[field.name], field.type) for field in MAP]
    write_table(run.map_path(1), pa.Table.from_arrays(arrays, schema=MAP), "planted")
    counts = {"points": DOCS * HEADS, "fitted": DOCS * HEADS, "placed": 0}
    run.write_manifest(run.manifest().with_step("project", Step("planted", "done", "2026-01-01", counts=counts)))
    return run


def test_density_then_points_where_few_are_in_view_then_density_again(page: Page, address: str) -> None:
    traffic = Traffic(page)
    open_map(page, address)
    status = page.locator(".head-map .status")
    expect(status).to_have_text(f"Density of {ALL} points · zoom in for single points", timeout=SLOW)
    shown(page, "shown", "density")
    # Four heads' points are too many: nothing is asked for.
    traffic.clear()
    page.get_by_role("button", name="1–4", exact=True).click()
    expect(status).to_have_text(f"Density of {4 * DOCS:,} of {ALL} points · zoom in for single points", timeout=SLOW)
    assert traffic.sent == []
    # One head's are not.
    page.get_by_role("button", name="head 1", exact=True).click(modifiers=["Alt"])
    expect(status).to_have_text(f"{DOCS:,} of {ALL} points in view", timeout=SLOW)
    shown(page, "shown", "points")
    # Zoomed in, all heads': a fifth of the map, around its middle.
    page.get_by_role("button", name="All", exact=True).click()
    shown(page, "shown", "density")
    box = still(page.locator(".box"))
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.keyboard.down("Control")
    for _ in range(4):
        page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    shown(page, "shown", "points")
    expect(status).to_contain_text(f"of {ALL} points in view", timeout=SLOW)
    page.get_by_role("button", name="Reset view").click()
    shown(page, "shown", "density")
    expect(status).to_have_text(f"Density of {ALL} points · zoom in for single points", timeout=SLOW)


def test_a_point_of_a_close_up_opens_its_document_and_a_box_in_the_density_finds_all(page: Page, address: str) -> None:
    open_map(page, f"{address}?heads=16")
    shown(page, "shown", "points")
    settle(page)
    edge = 1  # the frame of the box
    box = still(page.locator(".box"))
    left, top, right, bottom = (
        float(value) for value in (page.locator(".box").get_attribute("data-place") or "").split()
    )
    # Head 16 is the uppermost line; the map has a margin of 2 % on the left and right.
    span = (1 - 1 / DOCS) * 1.04
    up = 0.5 + (15 / HEADS / 2) / span
    y = box["y"] + edge + bottom - up * (bottom - top)
    page.mouse.move(box["x"] + edge + (left + right) / 2, y)
    tip = page.locator(".tip-title")
    expect(tip).to_be_visible(timeout=SLOW)
    number = int(str(tip.text_content()).split(" ")[0])
    assert abs(number - DOCS / 2) < DOCS / 50, "the middle document, or one beside it"
    page.mouse.down()
    page.mouse.up()
    expect(page.get_by_role("heading", name=f"Document {number:,}".replace(",", ""))).to_be_visible(timeout=SLOW)
    page.get_by_role("button", name="All", exact=True).click()
    shown(page, "shown", "density")
    page.get_by_role("button", name="Box", exact=True).click()
    box = still(page.locator(".box"))
    low, high = box["y"] + 2, box["y"] + box["height"] - 2
    draw(page, [(box["x"] + 2, low), (box["x"] + box["width"] - 2, high)])
    expect(page.get_by_role("heading", name=f"{ALL} points of {DOCS:,} documents")).to_be_visible(timeout=SLOW)
