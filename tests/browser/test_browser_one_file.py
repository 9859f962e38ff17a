"""A run as one HTML file: it opens with the network off, everything in it works, and a hostile corpus stays text."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from core.runs.run import open_run
from pages.shared.one_file.write import write_page
from tests.support.hostile import ELSEWHERE, TEXTS


@dataclass
class Opened:
    """A file in a browser without a network; what it asked for, and what went wrong in it."""

    page: Page
    asked: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def open(self, path: Path) -> Page:
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(path.as_uri())
        expect(self.page.locator("#page")).to_have_attribute("data-ready", "true", timeout=60_000)
        return self.page


@pytest.fixture
def offline(browser: Browser) -> Iterator[Opened]:
    context = browser.new_context(viewport={"width": 1400, "height": 1000}, offline=True)
    yield Opened(context.new_page())
    context.close()


@pytest.fixture(scope="module")
def demo(analysed_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("one-file") / "demo.html"
    assert write_page(open_run(analysed_cache, "demo"), path) < 3_000_000
    return path


def drawn(page: Page, stage: int) -> None:
    """The map of the stage is drawn."""
    expect(page.locator(".head-map")).to_have_attribute("data-key", re.compile(f"/{stage}$"), timeout=60_000)
    expect(page.locator(".head-map .box")).to_have_attribute("data-place", re.compile(r"\d"), timeout=60_000)


def test_filter_stage_switch_and_drilldown_work_without_a_network(demo: Path, offline: Opened) -> None:
    page = offline.open(demo)
    drawn(page, 1)
    expect(page.get_by_role("heading", name="Do heads specialise?")).to_be_visible()
    # The head filter.
    expect(page.locator(".head-map .foot").get_by_text("3,900 points")).to_be_visible()
    page.locator(".head-map").get_by_role("button", name="head 11", exact=True).dblclick()
    expect(page.locator(".head-map")).to_have_attribute("data-heads", "11")
    expect(page.locator(".head-map .foot")).to_contain_text("325 of 3,900 points")
    # Colour, and another stage: the filter stays.
    page.get_by_label("Colour by").select_option("topic")
    expect(page.locator(".head-map")).to_have_attribute("data-colour", "topic")
    page.get_by_role("group", name="Stage").first.get_by_role("button", name="3 · output").click()
    drawn(page, 3)
    expect(page.locator(".head-map")).to_have_attribute("data-heads", "11")
    # The heat map: from a cell to the document's title and text.
    canvas = page.locator(".heat-map-host canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box
    canvas.click(position={"x": 6, "y": box["height"] / 2})
    detail = page.locator(".heat-map-host + .detail")
    expect(detail.locator("h3")).to_have_text(re.compile(r"^\d+ · .{8,}"))
    expect(detail.locator(".text")).to_have_text(re.compile(r".{100,}", re.DOTALL))
    expect(detail.locator(".bars .number")).to_have_count(13)
    # A row's name opens the head's profile, a topic's name its documents.
    page.locator(".heat-map-host").get_by_role("button", name="head 11", exact=True).click()
    expect(page.get_by_role("heading", name=re.compile("^Head 11 at stage 3"))).to_be_visible()
    page.locator(".heat-map-host .topic").first.click()
    expect(detail.locator("li")).to_have_count(13)
    # A table.
    page.get_by_label("Table", exact=True).select_option("probe")
    expect(page.locator("#tables ~ .wide th").first).to_have_text("stage")
    assert (offline.asked, offline.errors) == ([demo.as_uri()], [])


def test_the_app_and_the_file_draw_the_same_points(demo: Path, analysed_cache: Path, offline: Opened) -> None:
    from core.runs.results import read_map
    from pages.shared.components.map_data import stage_map
    from pages.shared.data import RunState

    page = offline.open(demo)
    drawn(page, 1)
    run = open_run(analysed_cache, "demo")
    there = stage_map(RunState(run, run.manifest()), 1).places[:, :, 0].reshape(-1)
    code = "() => { const own = [...window.headscopeMap.stages.values()][0]; return [...own.x.slice(0, 50)]; }"
    assert page.evaluate(code) == there[:50].tolist()
    assert len(read_map(run, 1)) == page.evaluate("() => [...window.headscopeMap.stages.values()][0].x.length")


def test_a_hostile_corpus_stays_text(hostile_cache: Path, tmp_path: Path, offline: Opened) -> None:
    path = tmp_path / "hostile.html"
    write_page(open_run(hostile_cache, "hostile"), path, "whole")
    source = path.read_text(encoding="utf-8")
    assert "__hacked" not in source  # it is all in the packed block
    page = offline.open(path)
    drawn(page, 1)
    for topic in page.locator(".heat-map-host .topic").all()[:6]:
        topic.click()
        documents = page.locator(".heat-map-host + .detail li button")
        expect(documents.first).to_be_visible()
        documents.first.click()
        expect(page.locator(".heat-map-host + .detail .text")).to_be_visible()
    for row in page.locator("#heads ~ .wide tbody tr").all():
        row.click()
    for name in page.get_by_label("Table", exact=True).locator("option").all_inner_texts():
        page.get_by_label("Table", exact=True).select_option(name)
    page.locator("details > summary").first.click()
    shown = page.locator("body").inner_text()
    assert TEXTS[0] in shown  # as it was written
    assert page.evaluate("window.__hacked") is None
    assert page.locator("#page img, #page iframe, #page svg[onload], #page a:not([href^='#'])").count() == 0
    assert not [url for url in offline.asked if ELSEWHERE in url]
    assert (offline.asked, offline.errors) == ([path.as_uri()], [])


def test_texts_and_titles_can_be_left_out(analysed_cache: Path, tmp_path: Path, offline: Opened) -> None:
    run, path = open_run(analysed_cache, "demo"), tmp_path / "bare.html"
    write_page(run, path, "none")
    page = offline.open(path)
    page.locator(".heat-map-host .topic").first.click()
    expect(page.locator(".heat-map-host + .detail li").first).to_have_text(re.compile(r"^Document \d+$"))
    everything = page.evaluate("() => JSON.stringify([...window.headscopeMap.documents.values()][0].title(0))")
    assert everything == '"Document 1"'


TRIES = """async (there) => {
  const refused = [];
  document.addEventListener("securitypolicyviolation", (event) => refused.push(event.effectiveDirective));
  const own = document.createElement("script");
  own.textContent = "window.ran = 1";
  const image = new Image();
  image.src = `${there}/image`;
  document.body.append(own, image);
  await fetch(`${there}/fetch`).catch(() => {});
  while (refused.length < 3) await new Promise((resolve) => setTimeout(resolve, 20));
  return refused.sort();
}"""


def test_nothing_can_be_asked_of_a_server(demo: Path, browser: Browser) -> None:
    """Not even by what runs in the page, with the network on: the policy forbids it."""
    hits: list[str] = []

    class Listener(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hits.append(self.path)
            self.send_response(200)
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Listener)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    page = browser.new_page()
    page.goto(demo.as_uri())
    expect(page.locator("#page")).to_have_attribute("data-ready", "true", timeout=60_000)
    refused = page.evaluate(TRIES, f"http://127.0.0.1:{server.server_port}")
    assert refused == ["connect-src", "img-src", "script-src-elem"]
    assert page.evaluate("window.ran") is None
    page.close()
    server.shutdown()
    server.server_close()
    assert hits == []


def test_it_follows_the_readers_theme_and_fits_a_telephone(demo: Path, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 420, "height": 900}, color_scheme="dark", offline=True)
    page = context.new_page()
    page.goto(demo.as_uri())
    expect(page.locator("#page")).to_have_attribute("data-ready", "true", timeout=60_000)
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    page.get_by_role("button", name="Change between light and dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    context.close()


def test_a_run_without_figures_says_what_brings_them(planted_cache: Path, tmp_path: Path, offline: Opened) -> None:
    write_page(open_run(planted_cache, "planted"), tmp_path / "planted.html")
    page = offline.open(tmp_path / "planted.html")
    expect(page.get_by_text("This run had no maps yet. Run 'python -m precompute project planted'")).to_be_visible()
    expect(page.get_by_text("Run 'python -m precompute analyse planted' and publish it again.").first).to_be_visible()
    assert offline.errors == []
