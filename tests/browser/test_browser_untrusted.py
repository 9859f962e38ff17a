"""Every page on a run whose every text is out to do harm, in a real browser: shown as text, and never obeyed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import draw_all, settle
from tests.support.hostile import ELSEWHERE
from tests.support.servers import SLOW

PAGES = {
    "/": "Headscope",
    "/head_map?doc=1&area=1_1.1_9998.1_9998.9998_1.9998": "Head map",
    "/heat_map?stages=1&doc=1&head=1": "Topic heat map",
    "/heat_map?block=0": "Topic heat map",
    "/head_profile": "Head profile",
    "/head_profile?view=gallery": "Head profile",
    "/stages": "Stages",
    "/topics": "Topics",
    "/topics?tab=heads": "Topics",
    "/topics?tab=disagreements": "Topics",
    "/topics?tab=topics": "Topics",
    "/topics?tab=labels": "Topics",
    "/layers?layer=1&head=1": "Layers",
    "/attention?layer=1&head=1": "Attention",
    "/ablation?layer=1&head=1": "Ablation",
    "/your_document": "Your document",
    "/retrieval_lab?query=2&mix=1,3*0.5": "Retrieval lab",
}
FOUND = """() => {
    const all = [];
    const walk = (root) => root.querySelectorAll('*').forEach((one) => {
        all.push(one);
        if (one.shadowRoot) walk(one.shadowRoot);
    });
    walk(document);
    const main = document.querySelector('[data-testid=stMain]');
    // Arrows over words are pictures of our own, of drawing elements without handlers or links alone.
    const elements = ['svg', 'defs', 'marker', 'path', 'text', 'tspan', 'rect', 'line', 'g', 'title'];
    const start = 'data:image/svg+xml;base64,';
    const drawn = (one) => {
        if (!one.closest('.hs-arrows') || !one.src.startsWith(start)) return false;
        const bytes = Uint8Array.from(atob(one.src.slice(start.length)), (letter) => letter.charCodeAt(0));
        const parsed = new DOMParser().parseFromString(new TextDecoder().decode(bytes), 'image/svg+xml');
        return [...parsed.querySelectorAll('*')].every((part) => elements.includes(part.localName)
            && !part.getAttributeNames().some((name) => name.startsWith('on') || name.includes('href')));
    };
    const named = all.flatMap((one) => ['aria-label', 'title', 'alt'].map((name) => one.getAttribute(name) ?? ''));
    return {
        hacked: window.__hacked ?? 0,
        images: all.filter((one) => one.tagName === 'IMG' && main.contains(one) && !drawn(one)).length,
        scripts: all.filter((one) => one.tagName === 'SCRIPT' && one.textContent.includes('__hacked')).length,
        frames: all.filter((one) => ['IFRAME', 'OBJECT', 'EMBED'].includes(one.tagName)).length,
        links: all.filter((one) => one.tagName === 'A' && !/^(https?:\\/\\/127\\.0\\.0\\.1|#)/.test(one.href || '#')
            ).map((one) => one.href.slice(0, 80)),
        handlers: all.filter((one) => one.getAttributeNames().some((name) => name.startsWith('on'))).length,
        icons: all.filter((one) => one.dataset.testid === 'stIconMaterial' && one.textContent === 'home').length,
        formulas: main.querySelectorAll('.katex').length,
        escaped: named.filter((text) => text.includes('\\\\')).map((text) => text.slice(0, 90)),
    };
}"""


@pytest.fixture(scope="module")
def address(served: Callable[[Path], str], hostile_cache: Path) -> str:
    return served(hostile_cache)


def test_nothing_of_a_hostile_corpus_is_obeyed_on_any_page(page: Page, address: str) -> None:
    asked, dialogs, wrong = set(), [], []
    page.on("request", lambda request: asked.add(urlsplit(request.url).hostname))
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    for path, heading in PAGES.items():
        page.goto(f"{address}{path}")
        expect(page.get_by_role("heading", name=heading, exact=True).first).to_be_visible(timeout=SLOW)
        settle(page)
        for summary in page.locator("[data-testid=stExpander] summary").all()[:6]:
            summary.click()
        draw_all(page)
        found = page.evaluate(FOUND)  # once, at the end: what must never be there cannot be waited for
        assert not page.get_by_test_id("stException").count(), path
        assert found == {
            **dict.fromkeys(("hacked", "images", "scripts", "frames", "handlers", "icons", "formulas"), 0),
            "links": [],
            "escaped": [],
        }, path
    assert (dialogs, wrong) == ([], [])
    assert asked - {None} == {"127.0.0.1"}  # None: data and blob addresses of our own


def test_hovering_over_a_hostile_name_shows_it_as_text(page: Page, address: str) -> None:
    page.goto(f"{address}/topics?tab=disagreements")
    expect(page.get_by_role("heading", name="Topics", exact=True)).to_be_visible(timeout=SLOW)
    draw_all(page)
    bars = page.locator(".js-plotly-plot .bars .point path")
    expect(bars.nth(3)).to_be_attached(timeout=SLOW)  # Plotly draws a moment after the page is there
    bars.first.scroll_into_view_if_needed()
    said: set[str] = set()
    for _ in range(5):  # Plotly's label comes a moment after the hand, and the first one while it is still drawing late
        for number in range(bars.count()):
            bars.nth(number).hover(force=True)
            page.wait_for_timeout(200)
            said.update(page.locator(".hoverlayer .hovertext text").all_text_contents())
        if any("<img src=x" in text for text in said):
            break
    assert any("<img src=x" in text for text in said), said
    found = page.evaluate(FOUND)
    assert (found["hacked"], found["images"], found["links"]) == (0, 0, [])
    assert ELSEWHERE in page.content()  # it was there to be obeyed


def test_a_dropped_connection_comes_back_to_the_same_view(page: Page, address: str) -> None:
    page.add_init_script(
        "window.__sockets = []; const Own = window.WebSocket;"
        "window.WebSocket = class extends Own { constructor(...a) { super(...a); window.__sockets.push(this); } };"
    )
    page.goto(f"{address}/head_profile?head=3&stage=2")
    heading = page.get_by_role("heading", name=re.compile("^Head 3 "))
    expect(heading.first).to_be_visible(timeout=SLOW)
    settle(page)
    before = page.evaluate("window.__sockets.length")
    page.evaluate("window.__sockets.at(-1).close()")
    page.wait_for_function(
        f"window.__sockets.length > {before} && window.__sockets.at(-1).readyState === 1", timeout=SLOW
    )
    settle(page)
    expect(heading.first).to_be_visible(timeout=SLOW)
    expect(page).to_have_url(re.compile(r"head=3.*stage=2|stage=2.*head=3"))
    page.get_by_role("button", name="Next").click()  # and it still answers
    expect(page.get_by_role("heading", name=re.compile("^Head 4 ")).first).to_be_visible(timeout=SLOW)
