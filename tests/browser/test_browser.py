"""The app in a real browser, by a person's gestures."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import choose, draw_all, eventually, fits, narrow, settle
from tests.support.servers import SLOW


@pytest.fixture(scope="module")
def address(served: Callable[[Path], str], retrieved_cache: Path) -> str:
    return served(retrieved_cache)


def titles(page: Page) -> list[str]:
    """Of the six documents of the first list."""
    settle(page)
    found = page.locator(".hs-cards").first.locator(".hs-title")
    expect(found).to_have_count(6)
    return found.all_inner_texts()


def open_with_the_keyboard(page: Page) -> None:
    """The first document's text, which is hidden before."""
    summary, text = page.locator(".hs-cards summary").first, page.locator(".hs-cards .hs-text").first
    expect(text).to_be_hidden()
    summary.focus()
    page.keyboard.press("Enter")
    expect(text).to_be_visible()
    expect(text).to_have_text(re.compile(r"[\s\S]{200}"))


def test_head_stage_and_document_by_hand_and_the_link_elsewhere(page: Page, stranger: Page, address: str) -> None:
    page.goto(address)
    expect(page.locator(".hs-cards").first).to_be_visible(timeout=SLOW)
    first = titles(page)
    open_with_the_keyboard(page)
    choose(page, "Head", "5")
    expect(page.get_by_role("heading", name="Nearest in head 5")).to_be_visible(timeout=SLOW)
    settle(page)
    page.get_by_role("radio", name="3 output").click()
    expect(page.get_by_text("not guaranteed to correspond to heads").first).to_be_visible(timeout=SLOW)
    page.wait_for_url(lambda url: "stage=3" in url and "head=5" in url)
    expect(page.locator(".hs-cards").first.locator(".hs-title")).not_to_have_text(first)
    changed = titles(page)
    stranger.goto(page.url)
    expect(stranger.get_by_role("heading", name="Nearest in head 5")).to_be_visible(timeout=SLOW)
    expect(stranger.locator(".hs-cards").first.locator(".hs-title")).to_have_text(changed, timeout=SLOW)
    page.go_back()
    page.wait_for_url(lambda url: "stage=3" not in url)
    expect(page.get_by_text("before the heads are mixed").first).to_be_visible(timeout=SLOW)
    settle(page)
    page.go_forward()
    expect(page.get_by_text("not guaranteed to correspond to heads").first).to_be_visible(timeout=SLOW)


def test_a_narrow_screen_scrolls_only_downwards(page: Page, address: str) -> None:
    narrow(page, "dark").goto(address)
    expect(page.locator(".hs-cards").first).to_be_visible(timeout=SLOW)
    draw_all(page)
    fits(page, 420)

    def nothing_sticks_out() -> None:
        for name in (".hs-card", "[data-testid=stMetric]", ".js-plotly-plot"):
            for box in [found.bounding_box() for found in page.locator(name).all()]:
                assert box is None or box["x"] + box["width"] <= 420

    eventually(page, nothing_sticks_out)


def test_untrusted_titles_do_nothing(
    page: Page, serve: Callable[[Path], str], tiny_model: Path, write_corpus: Callable[..., Path], tmp_path: Path
) -> None:
    from core.model.embedder import EmbedderConfig
    from precompute.steps.embed.step import EmbedConfig, run

    nasty = '<img src=x onerror="window.hit=1"><script>window.hit=1</script> ![p](//127.0.0.1:9/x.png)'
    rows = [{"title": f"{number} {nasty}", "text": f"{number} {nasty}", "topic": nasty} for number in range(9)]
    source = write_corpus(rows, "nasty.jsonl")
    run(EmbedConfig(tmp_path / "cache", "nasty", str(source), EmbedderConfig(model=str(tiny_model))))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(serve(tmp_path / "cache"))
    expect(page.locator(".hs-cards").first).to_be_visible(timeout=SLOW)
    assert "<img src=x onerror" in titles(page)[0]
    assert page.evaluate("window.hit") is None
    assert not [url for url in asked if "x.png" in url]


def test_choices_survive_the_change_of_the_page_and_one_back_returns(page: Page, address: str) -> None:
    page.goto(f"{address}/?stage=2&doc=18")
    settle(page)
    page.wait_for_function("window.headscopeHistory")  # comes with its own piece of JavaScript, a moment after the page
    page.get_by_role("link", name="Stages").first.click()
    expect(page.get_by_role("heading", name="Stages")).to_be_visible(timeout=SLOW)
    expect(page).to_have_url(re.compile(r"/stages\?.*stage=2"), timeout=SLOW)
    expect(page).to_have_url(re.compile(r"doc=18"), timeout=SLOW)
    settle(page)
    page.wait_for_timeout(300)  # a Back while the address is still being written would meet it halfway
    page.go_back()
    expect(page.get_by_role("heading", name="Headscope")).to_be_visible(timeout=SLOW)
    expect(page).to_have_url(re.compile(r"/\?.*stage=2"), timeout=SLOW)


def test_an_address_that_comes_by_itself_is_no_step_of_the_history(page: Page, address: str) -> None:
    """Streamlit writes the page's address and then its choices, or both at once, whichever message is there first."""
    page.goto(f"{address}/your_document")  # any page will do, and this one draws nothing
    settle(page)  # Streamlit writes its own address before
    page.wait_for_function("window.headscopeHistory")
    pushed = "url => { history.pushState({}, '', url); return history.length; }"
    page.keyboard.press("Shift")  # a gesture
    turned = page.evaluate(pushed, "/stages")
    assert page.evaluate(pushed, "/stages?stage=2") == turned
    assert page.url.endswith("/stages?stage=2")
    page.keyboard.press("Shift")
    assert page.evaluate(pushed, "/stages?stage=3") == turned + 1
    assert page.evaluate(pushed, "/topics") == turned + 2  # another page is a step, whoever turned to it
