"""Every page by axe-core: no serious or critical violation in light or in dark; and what the keyboard reaches shows it.

The run is the one with hostile texts, because it has something on every page.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from app import PAGES
from tests.support.accessibility import violations
from tests.support.browser import eventually, settle
from tests.support.servers import SLOW

NAMES = {name: title for pages in PAGES.values() for name, title, _ in pages}
CLICKED = {"layers": "?layer=1&head=1", "attention": "?layer=1&head=1", "ablation": "?layer=1&head=1"}
"""What is open beside the picture."""


@pytest.fixture(scope="module")
def address(served: Callable[[Path], str], hostile_cache: Path) -> str:
    return served(hostile_cache)


def opened(page: Page, address: str, name: str) -> None:
    page.goto(f"{address}/{'' if name == 'overview' else name}{CLICKED.get(name, '')}")
    title = "Headscope" if name == "overview" else NAMES[name]
    expect(page.get_by_role("heading", name=title, exact=True).first).to_be_visible(timeout=SLOW)
    settle(page)


def clean(page: Page, *only: str) -> None:
    def check() -> None:  # repeated: a component is drawn a moment after the page
        assert violations(page, *only) == []

    eventually(page, check)


@pytest.mark.parametrize("name", NAMES)
def test_axe_finds_nothing_serious_on_a_page(page: Page, address: str, name: str) -> None:
    opened(page, address, name)
    clean(page)
    page.emulate_media(color_scheme="dark")
    opened(page, address, name)  # anew: what the server colours changes with the next run of the page
    clean(page, "color-contrast")


def test_a_planted_violation_is_found(page: Page, address: str) -> None:
    opened(page, address, "your_document")
    page.evaluate("document.querySelector('[data-testid=stMain]').insertAdjacentHTML('beforeend', '<input><img src>')")
    assert {each.split(":")[0] for each in violations(page)} == {"label", "image-alt"}


def test_a_link_of_the_navigation_that_has_the_focus_shows_it(page: Page, address: str) -> None:
    opened(page, address, "topics")
    page.locator("[data-testid=stSidebarNavLink]").first.focus()
    page.keyboard.press("Tab")  # by the keyboard: a mouse needs no ring
    ring = (
        "() => { const look = getComputedStyle(document.activeElement);"
        " return document.activeElement.dataset.testid + ' ' + look.outlineStyle + ' ' + look.outlineWidth; }"
    )
    assert page.evaluate(ring) == "stSidebarNavLink solid 2px"
