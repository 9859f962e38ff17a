"""The policy that the app sends, in a real browser: every page draws all it has, and what is not ours does not run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import settle
from tests.support.servers import SLOW

pytestmark = pytest.mark.browser
NOTE_VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", ({effectiveDirective, blockedURI}) =>
  window.violations.push(`${effectiveDirective}: ${blockedURI}`));
"""
PAGES = {
    "": ".js-plotly-plot",
    "head_map": "canvas",
    "heat_map": "canvas",
    "head_profile": ".js-plotly-plot",
    "stages": ".js-plotly-plot",
    "topics": ".js-plotly-plot",
    "aspects": "h1",
    "layers": "h1",
    "attention": "h1",
    "ablation": "h1",
    "your_document": "textarea",
    "retrieval_lab": ".js-plotly-plot",
}
"""By address, something that the page draws late."""


@pytest.fixture(scope="module")
def address(serve: Callable[..., str], retrieved_cache: Path) -> str:
    return serve(retrieved_cache)


@pytest.mark.parametrize("path", PAGES)
def test_no_page_wants_what_the_policy_forbids(page: Page, address: str, path: str) -> None:
    page.add_init_script(NOTE_VIOLATIONS)
    page.goto(f"{address}/{path}")
    expect(page.locator(PAGES[path]).first).to_be_visible(timeout=SLOW)
    settle(page)
    assert page.evaluate("window.violations") == []


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
