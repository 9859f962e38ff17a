"""The Layers page in a real browser: curves are drawn, cells are clicked and reached by keys, a large grid scrolls."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from core.model.shape import ModelShape
from core.runs.run import Run
from precompute.steps.layers import step as layers
from precompute.steps.layers.step import LayersConfig
from tests.precompute.test_layers import LABELS, MODEL, SHAPE, last_layer, rows
from tests.support.browser import eventually, settle
from tests.support.servers import SLOW
from tests.support.synthetic import PlantedLayers, write_run

pytestmark = pytest.mark.usefixtures("one_thread")
WIDE = ModelShape(layers=32, heads=32, kv_heads=8, hidden=64, head_dim=2)


def wide(texts: Sequence[str]) -> dict[int, np.ndarray]:
    chance = np.random.default_rng(1)
    return {stage: chance.normal(size=(32, len(texts), 64)).astype(np.float32) for stage in (1, 2, 3)}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 4 layers with topics at one of them, and one of 32 × 32 with too few documents for most figures."""
    cache = tmp_path_factory.mktemp("layers in the browser")
    write_run(cache, "planted", SHAPE, last_layer, LABELS)
    layers.run(LayersConfig(cache, "planted", model=MODEL))
    write_run(
        cache, "wide", WIDE, lambda stage, first, count: wide([""] * 9)[stage][-1, first : first + count], [None] * 9,
        stages=(1,),
    )  # fmt: skip
    layers.run(LayersConfig(cache, "wide", model=PlantedLayers(wide)))
    return cache


@pytest.fixture(scope="module")
def address(serve: Callable[..., str], cache: Path) -> str:
    return f"{serve(cache)}/layers"


def opened(page: Page, address: str) -> Locator:
    """The grid, drawn."""
    page.goto(address)
    grid = page.locator(".hs-grid[data-version]").first  # the second has the parts of the embedding
    expect(grid).to_be_visible(timeout=SLOW)
    settle(page)
    return grid


def cell(grid: Locator, layer: int, head: int) -> Locator:
    return grid.locator(f'.cell[data-row="{layer - 1}"][data-column="{head}"]')


def figure(page: Page, label: str) -> Locator:
    own = page.get_by_text(label, exact=True)
    return page.get_by_test_id("stMetric").filter(has=own).get_by_test_id("stMetricValue")


def test_curves_are_drawn_and_a_cell_opens_its_head(page: Page, address: str, cache: Path) -> None:
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    run = Run(cache, "planted")
    grid = opened(page, f"{address}?run=planted")
    expect(page.get_by_text("Topic structure at stage 1 peaks at layer 2 of 4")).to_be_visible()
    lines = page.locator(".js-plotly-plot").first.locator(".scatterlayer .js-line")
    expect(lines).to_have_count(4)  # random slices and their band, the full embedding, chance; heads are dots
    expect(grid.locator(".cell")).to_have_count(4 * 5)
    expect(cell(grid, 4, 0)).to_have_attribute("aria-selected", "true")

    cell(grid, 2, 3).click()
    expect(page.get_by_role("heading", name="Layer 2, head 3, at stage 1")).to_be_visible()
    (row,) = rows(run, "layers", layer=2, stage=1, head=3, measure="topic_match")
    expect(figure(page, "Topic match")).to_have_text(f"{100 * row['value']:.1f}\u00a0%")
    expect(cell(grid, 2, 3)).to_have_attribute("aria-selected", "true")
    expect(page).to_have_url(re.compile(r"layer=2.*head=3|head=3.*layer=2"))
    expect(cell(grid, 2, 3)).to_have_attribute(
        "aria-label", re.compile(rf"^Layer 2, head 3, Topic match {100 * row['value']:.1f}\s%")
    )

    settle(page)
    page.keyboard.press("ArrowRight")  # the click has put the keys there
    page.keyboard.press("ArrowDown")
    expect(cell(grid, 3, 4)).to_be_focused()
    expect(grid.locator(".tip")).to_contain_text("Layer 3, head 4")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Layer 3, head 4, at stage 1")).to_be_visible()
    settle(page)

    page.go_back()  # one step undoes layer and head together
    expect(page.get_by_role("heading", name="Layer 2, head 3, at stage 1")).to_be_visible()
    expect(cell(grid, 2, 3)).to_have_attribute("aria-selected", "true")
    with page.expect_download() as saved:
        grid.get_by_role("button", name="Save as a picture").click()
    assert saved.value.suggested_filename == "layers-topic_match.png"
    assert saved.value.path().read_bytes().startswith(b"\x89PNG")
    assert wrong == []


def test_a_link_to_a_cell_of_32_by_32_which_is_legible_and_scrolls_on_a_narrow_screen(page: Page, address: str) -> None:
    grid = opened(page, f"{address}?run=wide&measure=activation&layer=1&head=2")
    expect(page.get_by_role("heading", name="Activation over depth")).to_be_visible()
    expect(page.get_by_role("heading", name="Layer 1, head 2, at stage 1")).to_be_visible()
    expect(cell(grid, 1, 2)).to_have_attribute("aria-selected", "true")
    expect(grid.locator(".cell")).to_have_count(32 * 33)
    frame = grid.locator(".frame")
    cut_off = "(all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1).length"
    for width, scrolls in ((1400, False), (420, True)):
        page.set_viewport_size({"width": width, "height": 1000})
        inner = "(one) => one.scrollWidth > one.clientWidth + 1"
        page.wait_for_function(f"(one) => ({inner})(one) === {str(scrolls).lower()}", arg=frame.element_handle())
        page.wait_for_function("document.documentElement.scrollWidth <= innerWidth")  # the grid scrolls, the page not

        def legible() -> None:
            box = cell(grid, 32, 32).bounding_box()
            assert box is not None
            assert min(box["width"], box["height"]) >= 22
            assert grid.locator(".cell").evaluate_all(cut_off) == 0  # every number has room

        eventually(page, legible)
    cell(grid, 32, 32).click()  # Playwright scrolls there, as a hand does
    expect(page.get_by_role("heading", name="Layer 32, head 32, at stage 1")).to_be_visible()

    def names_are_in_sight() -> None:
        name = grid.locator(".row .name").last.bounding_box()
        assert name is not None
        assert name["x"] >= 0  # the names of the layers have not scrolled away

    eventually(page, names_are_in_sight)
