"""The Attention page in Chromium: the grid, a token, and a text of one's own, by the real default model."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.runs.run import Run
from tests.pages.test_page_attention import planted_attention, planted_experiments
from tests.support.browser import choose, draw_all, eventually, fits, settle
from tests.support.servers import SLOW

OWN = "The quiet reader listens, and the harbour sleeps."


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("log") / "server.log"


@pytest.fixture(scope="module")
def address(
    analysed_cache: Path, tmp_path_factory: pytest.TempPathFactory, serve: Callable[..., str], log: Path
) -> str:
    cache = tmp_path_factory.mktemp("attention")
    shutil.copytree(analysed_cache / "demo", cache / "demo")
    planted_attention(Run(cache, "demo"))
    planted_experiments(Run(cache, "demo"))
    return serve(cache, log=log)


def shading(page: Page) -> list[str]:
    """How strong each token's colour is."""
    found: list[str] = page.locator(".hs-words [style]").evaluate_all(
        "all => all.map(one => one.getAttribute('style'))"
    )
    return found


def test_a_cell_a_token_and_a_text_of_one_s_own(page: Page, address: str, log: Path) -> None:
    page.goto(f"{address}/attention?text=own", timeout=SLOW)
    expect(page.get_by_role("heading", name="Layer 6, head 1: induction")).to_be_visible()

    # A click on the grid: another head, and the address has it.
    page.locator('.cell[data-row="1"][data-column="1"]').click()
    expect(page.get_by_role("heading", name="Layer 2, head 2: sink")).to_be_visible()
    expect(page).to_have_url(re.compile(r"layer=2"))
    expect(page).to_have_url(re.compile(r"head=2"))
    settle(page)

    # A text of one's own, through the model: its words are shaded from the last token on.
    page.get_by_label("Your text").fill(OWN)
    page.get_by_role("button", name="Show its attention").click()
    words = page.locator(".hs-words")
    expect(words).to_contain_text("reader")
    expect(page.locator(".hs-words .hs-from")).to_have_text("[SEP]")
    settle(page)

    def shaded() -> None:
        assert len(set(shading(page))) > 2

    eventually(page, shaded)
    before = shading(page)

    # Another token: other shading, and its number is in the address.
    choose(page, "From token", "4 · reader")  # after [CLS], the, quiet
    expect(page.locator(".hs-words .hs-from")).to_have_text("reader")
    expect(page).to_have_url(re.compile(r"token=4"))

    def changed() -> None:
        assert shading(page) != before

    eventually(page, changed)

    # The text itself is neither in the address nor in the log.
    for word in ("quiet", "listens", "harbour"):
        assert word not in page.url
        assert word not in log.read_text()


def test_arrows_over_example_sentences_and_a_relation_s_ranking(page: Page, address: str) -> None:
    page.goto(f"{address}/attention", timeout=SLOW)
    expect(page.get_by_role("heading", name="Layer 6, head 1 in example sentences")).to_be_visible()
    arrows = page.locator(".hs-arrows img")
    expect(arrows).to_have_count(5)
    expect(page.get_by_text("correct for 15 of 15 here")).to_be_visible()
    page.get_by_role("radio", name="modifier").click()
    expect(page.get_by_text("correct for 3 of 5 here")).to_be_visible()
    expect(page.get_by_alt_text("The to ‹b›sank‹/b›: wrong, right is boat")).to_have_count(1)

    def loaded() -> None:  # neither the policy nor the sanitiser keeps the images out
        widths = arrows.evaluate_all("all => all.map(one => one.complete && one.naturalWidth)")
        assert len(widths) == 5
        assert all(width > 200 for width in widths)

    eventually(page, loaded)
    choose(page, "Relation", "induction")
    expect(page).to_have_url(re.compile(r"relation=induction"))
    expect(page.get_by_text("This model attends in both directions")).to_be_visible()
    settle(page)
    page.set_viewport_size({"width": 420, "height": 900})
    settle(page)
    fits(page, 420)


def test_a_document_of_the_corpus_on_a_narrow_screen(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 420, "height": 900})
    page.goto(f"{address}/attention?text=corpus&doc=3&layer=1&head=3&token=2", timeout=SLOW)
    expect(page.get_by_role("heading", name="Layer 1, head 3 in a text")).to_be_visible()
    expect(page.locator(".hs-words .hs-from")).to_have_count(1)
    expect(page.locator(".hs-figure")).to_have_count(4)
    draw_all(page)
    fits(page, 420)
