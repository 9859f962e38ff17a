"""What a reader sees first: each page's main insight is on the screen at once, and so is what a choice brings."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.browser import choose, eventually, settle
from tests.support.servers import SLOW

WIDTH, HEIGHT = 1400, 1000


@pytest.fixture(scope="module")
def address(served: Callable[[Path], str], analysed_cache: Path) -> str:
    return served(analysed_cache)


def in_view(found: Locator) -> None:
    """The whole of an element is on the screen, without scrolling."""

    def holds() -> None:
        box = found.bounding_box()
        assert box is not None
        assert box["height"] > 0
        assert box["x"] >= 0
        assert box["y"] >= 0
        assert box["x"] + box["width"] <= WIDTH
        assert box["y"] + box["height"] <= HEIGHT, box

    eventually(found.page, holds)


def test_the_overview_shows_its_findings_without_scrolling(page: Page, address: str) -> None:
    page.goto(address)
    cards = page.locator(".hs-story")
    for name in ("Do heads specialise?", "The head that stands out", "Most redundant heads"):
        in_view(cards.filter(has_text=name))
    in_view(page.get_by_text(re.compile("^Head 11 alone finds the labelled topic of 59.% of the documents")))
    in_view(page.get_by_role("link", name="See it on Head profile").first)


def test_a_findings_link_opens_the_head_that_it_is_about(page: Page, address: str) -> None:
    page.goto(address)
    settle(page)
    page.get_by_role("link", name="See it on Head profile").first.click()
    in_view(page.get_by_role("heading", name=re.compile("^Head 11 ")))
    expect(page).to_have_url(re.compile("head=11"), timeout=SLOW)
    expect(page).to_have_title("Head profile · demo · Headscope", timeout=SLOW)


def test_the_head_profile_opens_on_the_head_that_stands_out_with_its_topics(page: Page, address: str) -> None:
    page.goto(f"{address}/head_profile")
    in_view(page.get_by_role("heading", name=re.compile("^Head 11 ")))
    in_view(page.get_by_role("heading", name="Topics it follows and avoids"))
    in_view(page.locator(".st-key-topics-of-head-11-at-stage-1 .js-plotly-plot"))


def test_stages_shows_heads_against_random_slices_without_scrolling(page: Page, address: str) -> None:
    page.goto(f"{address}/stages")
    in_view(page.get_by_text(re.compile("^Heads specialise at stage")))
    in_view(page.locator(".st-key-random-slices .js-plotly-plot"))


def test_a_topics_heads_are_on_the_screen_once_it_is_chosen(page: Page, address: str) -> None:
    page.goto(f"{address}/topics")
    in_view(page.get_by_text(re.compile("^At this stage the labelled topic is the nearest of 25")))
    in_view(page.locator(".st-key-topic-match .js-plotly-plot"))
    settle(page)
    page.get_by_role("tab", name="Heads of a topic").click()
    expect(page).to_have_url(re.compile("tab=heads"), timeout=SLOW)
    settle(page)
    choose(page, "Topic", "Places, Travel, Real Estate (13 documents)")
    expect(page).to_have_url(re.compile("topic=Places"), timeout=SLOW)
    in_view(page.get_by_text(re.compile("^Heads 9 and 11 follow this topic more closely than random slices do")))
    in_view(page.locator(".st-key-heads-of-a-topic .js-plotly-plot"))
    in_view(page.locator(".hs-cards .hs-card").first)
    page.go_back()
    expect(page).to_have_url(re.compile("tab=heads$"), timeout=SLOW)


def test_the_tour_leads_to_your_document_and_stays_closed(browser: Browser, address: str) -> None:
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, first_visit=True)
    page = context.new_page()
    page.goto(address)
    tour = page.get_by_role("region", name="Tour")
    expect(tour).to_contain_text("Step 1 of 3", timeout=SLOW)
    in_view(tour)
    tour.get_by_role("link", name="Next: a topic's heads").click()
    expect(page.get_by_role("heading", name="Which heads follow a topic?")).to_be_visible(timeout=SLOW)
    expect(tour).to_contain_text("Step 2 of 3", timeout=SLOW)
    tour.get_by_role("link", name="Next: your own text").click()
    expect(page.get_by_role("heading", name="Your document", exact=True)).to_be_visible(timeout=SLOW)
    expect(tour).to_contain_text("Step 3 of 3", timeout=SLOW)
    tour.get_by_role("button", name="Finish").click()
    expect(tour).to_be_hidden()
    page.goto(address)
    again = page.get_by_role("button", name="Take the tour")
    expect(again).to_be_visible(timeout=SLOW)
    settle(page)
    expect(page.get_by_role("region", name="Tour")).to_be_hidden()
    again.click()
    expect(tour).to_contain_text("Step 1 of 3", timeout=SLOW)
    tour.get_by_role("button", name="Skip the tour").press("Escape")
    expect(tour).to_be_hidden()
    context.close()
