"""Head profile, Stages, Topics and Overview in a real browser, with figures and maps, by a person's gestures."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Page, expect

from tests.test_browser import SLOW, browser, page, serve, settle

__all__ = ["browser", "page", "serve"]  # fixtures
pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(serve: Callable[[Path], str], analysed_cache: Path) -> str:
    return serve(analysed_cache)


@pytest.fixture
def opened(page: Page, address: str) -> Callable[[str, str], Page]:
    """A page by its address, and the heading that it has when it is there."""

    def open_(path: str, heading: str) -> Page:
        page.goto(address)  # until somebody has seen the first page, Streamlit knows no other
        expect(page.get_by_role("heading", name="Headscope")).to_be_visible(timeout=SLOW)
        page.goto(f"{address}{path}")
        expect(page.get_by_role("heading", name=heading, exact=True).first).to_be_visible(timeout=SLOW)
        settle(page)
        return page

    return open_


@pytest.mark.parametrize(
    ("path", "heading", "last"),
    [
        ("/", "Headscope", "Runs in the cache"),
        ("/head_profile", "Head profile", "From stage to stage"),
        ("/stages", "Stages", "How one document's heads move"),
        ("/topics", "Topics", "How are the labels distributed?"),
    ],
)
def test_a_narrow_screen_reads_every_page_to_its_end(
    opened: Callable[[str, str], Page], path: str, heading: str, last: str
) -> None:
    page = opened(path, heading)
    page.set_viewport_size({"width": 420, "height": 900})
    expect(page.get_by_role("heading", name=last)).to_be_visible(timeout=SLOW)
    settle(page)
    wide = page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")
    assert wide <= 420
    assert not page.get_by_test_id("stException").count()


def test_a_finding_links_to_the_page_that_shows_it(opened: Callable[[str, str], Page]) -> None:
    page = opened("/?stage=3", "Headscope")
    page.get_by_text("Heads that say the same", exact=False).first.click()
    page.get_by_role("link", name="See it on Stages").last.click()
    expect(page.get_by_role("heading", name="Stages", exact=True)).to_be_visible(timeout=SLOW)
    expect(page).to_have_url(re.compile("stage=3"), timeout=SLOW)


def test_a_figure_s_data_is_taken_away(opened: Callable[[str, str], Page], tmp_path: Path) -> None:
    page = opened("/stages", "Stages")
    page.get_by_role("button", name="Save").first.click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Parquet").first.click()
    waiting.value.save_as(tmp_path / "probe.parquet")
    table = pq.read_table(tmp_path / "probe.parquet")
    assert {"stage", "slicing", "split", "value", "low", "high", "chance"} <= set(table.column_names)
    assert set(table["head"].to_pylist()) == {0}
