"""Head profile, Stages, Topics and Overview in a real browser, with figures and maps, by a person's gestures."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import eventually, fits, settle
from tests.support.servers import SLOW


@pytest.fixture(scope="module")
def address(served: Callable[[Path], str], retrieved_cache: Path) -> str:
    return served(retrieved_cache)


@pytest.fixture
def opened(page: Page, address: str) -> Callable[[str, str], Page]:
    """A page by its address, and the heading that it has when it is there."""

    def open_(path: str, heading: str) -> Page:
        page.goto(f"{address}{path}")
        expect(page.get_by_role("heading", name=heading, exact=True).first).to_be_visible(timeout=SLOW)
        settle(page)
        return page

    return open_


@pytest.mark.parametrize(
    ("path", "heading", "last"),
    [
        ("/", "Headscope", "Runs in the cache"),
        ("/head_profile", "Head profile", "Across stages"),
        ("/stages", "Stages", "How one document's heads move"),
        ("/topics?tab=heads", "Topics", "Its documents"),
        ("/topics?tab=labels", "Topics", "Where do the labels come from?"),
    ],
)
def test_a_narrow_screen_reads_every_page_to_its_end(
    opened: Callable[[str, str], Page], path: str, heading: str, last: str
) -> None:
    page = opened(path, heading)
    page.set_viewport_size({"width": 420, "height": 900})
    expect(page.get_by_role("heading", name=last)).to_be_visible(timeout=SLOW)
    settle(page)
    fits(page, 420)
    assert not page.get_by_test_id("stException").count()


def on_head(page: Page, head: int) -> None:
    """The page has come to this head, in its verdict, its control and its address, and stays there."""
    expect(page.get_by_role("heading", name=re.compile(f"^Head {head} ")).first).to_be_visible(timeout=SLOW)
    expect(page).to_have_url(re.compile(rf"head={head}(&|$)"), timeout=SLOW)
    settle(page)
    expect(page.get_by_role("heading", name=re.compile(f"^Head {head} ")).first).to_be_visible(timeout=SLOW)
    expect(page.get_by_role("combobox", name="Head", exact=True)).to_have_value(str(head))


def listening(page: Page) -> None:
    """The keys' listener comes with its own piece of JavaScript, a moment after the page."""
    page.locator(".step-keys[data-listening]").wait_for(state="attached")


def test_every_press_of_an_arrow_key_is_one_head(opened: Callable[[str, str], Page]) -> None:
    page = opened("/head_profile?head=5", "Head profile")
    on_head(page, 5)
    listening(page)
    page.keyboard.press("ArrowRight")
    on_head(page, 6)
    for _ in range(5):  # as fast as they come: most of them while the page is still busy with the ones before
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    on_head(page, 10)
    for _ in range(4):
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(120)  # some of them between the server's answer and the address
    on_head(page, 2)  # after the twelfth comes the first
    page.keyboard.down("ArrowLeft")
    page.keyboard.down("ArrowLeft")  # held: the browser repeats it
    page.keyboard.down("ArrowLeft")
    page.keyboard.up("ArrowLeft")
    expect(page.get_by_role("heading", name=re.compile("^Head 1 ")).first).to_be_visible(timeout=SLOW)
    on_head(page, 1)
    page.go_back()
    on_head(page, 2)


def test_arrow_keys_in_a_field_are_the_field_s(opened: Callable[[str, str], Page]) -> None:
    page = opened("/head_profile?head=5", "Head profile")
    on_head(page, 5)
    listening(page)
    page.get_by_role("radio", name="2 projected").focus()
    page.keyboard.press("ArrowLeft")
    page.get_by_role("combobox", name="Head", exact=True).focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Escape")
    page.get_by_role("heading", name="Head profile", exact=True).click()
    page.keyboard.press("ArrowRight")
    on_head(page, 6)  # and not 4 or 5: the others did not count


def test_a_finding_links_to_the_page_that_shows_it(opened: Callable[[str, str], Page]) -> None:
    page = opened("/?stage=3", "Headscope")
    page.get_by_text("Most redundant heads –").click()
    settle(page)
    link = page.get_by_role("link", name="See it on Stages").last

    def followed() -> None:
        """A click that falls between two drawings of the page is lost; nobody clicks just once, then."""
        if "/stages" not in page.url:
            link.click()
        expect(page).to_have_url(re.compile("/stages"), timeout=10_000)

    eventually(page, followed)
    expect(page.get_by_role("heading", name="Stages", exact=True)).to_be_visible(timeout=SLOW)
    expect(page).to_have_url(re.compile("stage=3"), timeout=SLOW)


def test_a_figure_s_data_is_taken_away(opened: Callable[[str, str], Page], tmp_path: Path) -> None:
    page = opened("/stages", "Stages")
    page.get_by_role("button", name="Save").first.click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Parquet").first.click()
    waiting.value.save_as(tmp_path / "slices.parquet")
    table = pq.read_table(tmp_path / "slices.parquet")
    assert {"stage", "measure", "head", "value", "percentile", "p_adjusted", "verdict"} <= set(table.column_names)
    assert set(table["measure"].to_pylist()) == {"names"}
    assert sorted(set(table["head"].to_pylist())) == list(range(1, 13))
