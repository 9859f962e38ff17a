"""The page Aspects in Chromium: the matrix, the figure, a link and Back, a narrow screen."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from precompute.steps.analyse import step as analyse
from precompute.steps.aspects import step as aspects
from precompute.steps.aspects.step import AspectsConfig
from tests.precompute.test_aspects_step import SHAPE, planted_run
from tests.support.browser import choose, draw_all, fits, settle
from tests.support.servers import SLOW
from tests.support.synthetic import PlantedTopics


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, serve: Callable[..., str]) -> str:
    cache = tmp_path_factory.mktemp("aspects")
    planted_run(cache)
    analyse.run(analyse.AnalyseConfig(cache, "planted", model=PlantedTopics(SHAPE, {})))
    aspects.run(AspectsConfig(cache, "planted"))
    return serve(cache)


def test_a_cell_the_figure_and_the_way_to_the_profile_and_back(page: Page, address: str) -> None:
    page.goto(f"{address}/aspects", timeout=SLOW)
    expect(page.get_by_text("head 1: topic, not genre; head 2: genre, not topic.")).to_be_visible(timeout=SLOW)
    expect(page.locator('.cell[data-row="0"][data-column="1"]')).to_contain_text("▲")
    expect(page.locator(".hs-grid").first).to_be_in_viewport(ratio=1)  # without scrolling

    # A click on the matrix: another aspect and head, in the address and in the figures below.
    page.locator('.cell[data-row="1"][data-column="2"]').click()
    expect(page).to_have_url(re.compile(r"aspect=genre"))
    expect(page).to_have_url(re.compile(r"head=2"))
    expect(page.get_by_role("link", name="Profile of head 2")).to_be_visible()
    expect(page.get_by_text("Which values does head 2 confuse?")).to_be_visible()

    # Every head is a labelled point of the figure.
    figure = page.locator(".js-plotly-plot").first
    for head in ("1", "2", "3", "4"):
        expect(figure.locator(".textpoint", has_text=re.compile(f"^{head}$"))).to_have_count(1)
    # A click on one of them opens its profile; Back returns, and stays.
    of_head = figure.locator(".trace.scatter", has=page.locator(".textpoint", has_text=re.compile("^1$")))
    for _ in range(2):
        of_head.locator(".points path").click(force=True)  # what lies over all points takes the click
        expect(page.get_by_role("heading", name="Head profile")).to_be_visible(timeout=SLOW)
        expect(page).to_have_url(re.compile(r"head_profile\?.*head=1"))
        expect(page.get_by_text("Carries: topic, not genre")).to_be_visible(timeout=SLOW)
        settle(page)
        page.go_back()
        expect(page.get_by_text("Which values does head 2 confuse?")).to_be_visible(timeout=SLOW)
        settle(page)
        expect(page.get_by_role("heading", name="What each head carries")).to_be_visible()
    choose(page, "Head", "2")
    choose(page, "Up", "topic")
    expect(page).to_have_url(re.compile(r"up=topic"))

    page.get_by_role("link", name="Profile of head 2").click()
    expect(page.get_by_role("heading", name="Head profile")).to_be_visible(timeout=SLOW)
    expect(page.get_by_text("Carries: genre, not topic")).to_be_visible(timeout=SLOW)
    page.go_back()
    expect(page.get_by_role("heading", name="What each head carries")).to_be_visible(timeout=SLOW)
    expect(page.get_by_role("link", name="Profile of head 2")).to_be_visible(timeout=SLOW)


def test_on_a_narrow_screen_by_a_link(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 420, "height": 900})
    page.goto(f"{address}/aspects?stage=2&aspect=genre&head=2&by=neighbours", timeout=SLOW)
    expect(page.get_by_role("link", name="Profile of head 2")).to_be_visible(timeout=SLOW)
    expect(page.get_by_role("heading", name="Is it related to other aspects?")).to_be_visible(timeout=SLOW)
    draw_all(page)
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    fits(page, 420)
