"""How every page loads, in a real browser: it stays in place, asks for nothing that is missing or forbidden, and runs
no script but ours.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from app import DEFAULT, PAGES
from tests.support.browser import draw_all, settle, still
from tests.support.servers import SLOW

NOTE_VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", ({effectiveDirective, blockedURI}) =>
  window.violations.push(`${effectiveDirective}: ${blockedURI}`));
"""
NOTE_SHIFTS = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const {startTime, value, hadRecentInput} of list.getEntries()) {
    if (!hadRecentInput) window.shifts.push([startTime, value]);
  }
}).observe({type: "layout-shift", buffered: true});
"""
LATE = {
    "overview": ".hs-figure",
    "head_map": ".head-map canvas",
    "heat_map": ".hs-heat-map canvas",
    "head_profile": ".hs-figure",
    "compare_runs": "h1",
    "stages": ".hs-figure",
    "topics": ".hs-figure",
    "aspects": "h1",
    "layers?run=planted": ".hs-grid .cell",
    "attention": ".hs-grid .cell",
    "ablation": ".hs-grid .cell",
    "your_document": "textarea",
    "retrieval_lab": ".hs-figure",
}
"""By address, something that the page draws late."""
ALL = list(LATE)
INSIGHT = {
    "overview": ".hs-story",
    "head_map": ".head-map .box",
    "heat_map": ".hs-heat-map .panel",
    "head_profile": ".st-key-topics-of-head-11-at-stage-1 .js-plotly-plot",
    "stages": ".st-key-random-slices .js-plotly-plot",
    "topics": ".st-key-topic-match .js-plotly-plot",
    "layers?run=planted": ".js-plotly-plot",
    "attention": ".hs-grid",
    "ablation": ".hs-grid",
    "your_document": "textarea",
    "retrieval_lab": ".st-key-lab-strip",
}
"""By address, what the page is for; Aspects and Compare runs need other runs, and have tests of their own."""


@dataclass(frozen=True)
class Load:
    """What a page did until it was settled."""

    below: float
    """Pixels by which the page's main insight is below the screen; at most 0 where all of it is seen."""
    shift: float
    violations: list[str]
    failed: list[str]


@pytest.fixture(scope="module")
def address(served: Callable[[Path], str], pictures_cache: Path) -> str:
    return served(pictures_cache)


@pytest.fixture(scope="module")
def load(browser: Browser, address: str) -> Callable[[str, int], Load]:
    """Opens a page by its address in a window of its own; once, whatever is asked about it."""

    @functools.cache
    def opened(path: str, width: int) -> Load:
        context = browser.new_context(viewport={"width": width, "height": 1000})
        context.add_init_script(NOTE_VIOLATIONS + NOTE_SHIFTS)
        page, failed = context.new_page(), list[str]()
        page.on("response", lambda answer: failed.append(answer.url) if answer.status >= 400 else None)
        page.goto(f"{address}/{path.removeprefix(DEFAULT)}")
        late = page.locator(LATE[path]).first
        late.scroll_into_view_if_needed()  # a figure has no extent until it comes near
        expect(late).to_be_visible(timeout=SLOW)
        page.locator("h1").scroll_into_view_if_needed()
        settle(page)
        box = still(page.locator(INSIGHT.get(path, "h1")).first)
        below = box["y"] + box["height"] - 1000
        shift = largest_window(page.evaluate("window.shifts"))
        draw_all(page)
        found = Load(below, shift, page.evaluate("window.violations"), failed)
        context.close()
        return found

    return opened


def largest_window(shifts: list[list[float]]) -> float:
    """Cumulative layout shift, as web-vitals has it: the most within five seconds without a pause of one second."""
    most = total = 0.0
    begun = last = float("-inf")
    for at, value in shifts:
        if at - last > 1000 or at - begun > 5000:
            begun, total = at, 0.0
        last, total = at, total + value
        most = max(most, total)
    return most


def test_a_window_of_shifts_ends_with_a_pause_or_after_five_seconds() -> None:
    assert largest_window([]) == 0
    assert largest_window([[0, 0.25], [900, 0.5], [2000, 0.5]]) == 0.75
    assert largest_window([[900 * step, 0.125] for step in range(8)]) == 0.75  # six of them by 4,500 ms


def test_every_page_is_tried() -> None:
    assert [path.split("?")[0] for path in ALL] == [name for pages in PAGES.values() for name, *_ in pages]


@pytest.mark.parametrize("width", [1400, 420])
@pytest.mark.parametrize("path", ALL)
def test_what_a_page_has_painted_stays_in_place(load: Callable[[str, int], Load], path: str, width: int) -> None:
    assert load(path, width).shift <= 0.1


@pytest.mark.parametrize("path", INSIGHT)
def test_the_main_insight_is_seen_without_scrolling(load: Callable[[str, int], Load], path: str) -> None:
    assert load(path, 1400).below <= 0


@pytest.mark.parametrize("path", ALL)
def test_no_page_wants_what_the_policy_forbids(load: Callable[[str, int], Load], path: str) -> None:
    assert load(path, 1400).violations == []


@pytest.mark.parametrize("path", ALL)
def test_no_page_asks_for_what_is_not_there(load: Callable[[str, int], Load], path: str) -> None:
    assert load(path, 1400).failed == []


def test_a_script_that_is_written_into_a_page_does_not_run(page: Page, address: str) -> None:
    page.add_init_script(NOTE_VIOLATIONS)
    page.goto(address)
    page.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'window.evil = 1'}))")
    page.evaluate("document.body.append(Object.assign(new Image(), {src: 'https://elsewhere.invalid/?secret'}))")
    page.wait_for_function("window.violations.length === 2")
    assert page.evaluate("window.violations") == [
        "script-src-elem: inline",
        "img-src: https://elsewhere.invalid/?secret",
    ]
    assert page.evaluate("window.evil") is None


def test_what_follows_a_picture_is_painted_once_the_picture_is_drawn(page: Page, address: str) -> None:
    page.goto(f"{address}/heat_map")
    picture = page.locator(".st-key-heat-map")
    follows = picture.locator("xpath=following-sibling::*[1]")
    expect(picture).to_have_attribute("data-drawn", "", timeout=SLOW)
    expect(follows).to_have_css("opacity", "1")
    picture.evaluate("(at) => at.removeAttribute('data-drawn')")
    expect(follows).to_have_css("opacity", "0")
    picture.evaluate("(at) => at.setAttribute('data-drawn', '')")
    expect(follows).to_have_css("opacity", "1")
