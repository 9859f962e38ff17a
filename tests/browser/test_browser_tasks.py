"""Things that people come for: after every click its result is on the screen, at 1400 × 1000, without scrolling.

A topic's heads are in test_browser_story.py, a lasso and its documents in test_browser_beside.py, a document of one's
own in test_browser_your_document.py, two runs in test_browser_compare_runs.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_browser_story import in_view
from tests.support.browser import settle


@pytest.fixture(scope="module")
def address(served: Callable[[Path], str], pictures_cache: Path) -> str:
    return served(pictures_cache)


def test_a_cell_opens_its_document_and_a_neighbour_the_next_one(page: Page, address: str) -> None:
    page.goto(f"{address}/heat_map?run=demo")
    canvas = page.locator(".hs-heat-map[data-version] canvas")
    expect(canvas).to_be_visible()
    settle(page)
    canvas.click(position={"x": 200, "y": 100})
    panel = page.locator(".st-key-hs-result-heat")
    in_view(panel.get_by_role("heading", name=re.compile(r"Document \d+ in head \d+")))
    settle(page)
    nearest = panel.locator(".hs-cards summary").first
    nearest.click()
    expect(panel.locator(".hs-cards details[open] .hs-text").first).to_be_in_viewport()


def test_the_most_redundant_pair(page: Page, address: str) -> None:
    page.goto(f"{address}/?run=demo")
    in_view(page.locator(".hs-story").filter(has_text="Most redundant heads"))
    settle(page)
    page.get_by_role("link", name="See it on Stages").nth(1).click()  # the first is about specialisation
    in_view(page.get_by_role("heading", name="Most redundant heads"))


def test_a_question_with_heads_off(page: Page, address: str) -> None:
    page.goto(f"{address}/retrieval_lab?run=demo")
    strip = page.locator(".st-key-lab-strip")
    expect(strip).to_contain_text("kept heads 12 of 12")
    settle(page)
    page.get_by_role("button", name=re.compile(r"^Head 1\.")).click()
    expect(strip).to_contain_text("kept heads 11 of 12")
    in_view(strip)


def test_a_layer_s_head_in_a_sentence_of_one_s_own(page: Page, address: str) -> None:
    page.goto(f"{address}/attention?run=demo&text=own")
    cell = page.locator('.hs-grid .cell[data-row="2"][data-column="4"]').first
    expect(cell).to_be_visible()
    settle(page)
    cell.click()
    in_view(page.get_by_role("heading", name=re.compile("^Layer 3, head 5: ")))
    settle(page)
    page.get_by_label("Your text").fill("The quiet reader found the map in a drawer.")
    page.get_by_role("button", name="Show its attention").click()
    in_view(page.locator(".st-key-attention-matrix .js-plotly-plot"))


def test_the_layer_where_topics_peak(page: Page, address: str) -> None:
    page.goto(f"{address}/layers?run=planted")
    in_view(page.get_by_text(re.compile("^The full embedding's topic structure at stage 1 peaks at layer 2 of 4")))


def test_a_link_to_this_view(page: Page, address: str) -> None:
    page.goto(f"{address}/stages?run=demo&stage=2")
    copy = page.get_by_role("button", name="Copy link to this view")
    in_view(copy)
    settle(page)
    copy.click()
    in_view(page.get_by_role("button", name=re.compile("^Cop(ied|y it from the address bar)")))
