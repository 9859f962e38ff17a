"""The Retrieval lab in a real browser: ask, switch heads, take them away, and rank the same elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import SLOW, settle
from playwright.sync_api import Page, expect

from core.apply import prune, read_kept
from core.query_set import read_query_set
from core.store import Run

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(serve: Callable[[Path], str], retrieved_cache: Path) -> str:
    return serve(retrieved_cache)


def titles(page: Page) -> list[str]:
    """Of the documents on the left, without their place and mark."""
    found = page.locator(".hs-cards").first.locator(".hs-title").all_inner_texts()
    return [re.sub(r"^\d+\. (✓ )?", "", title) for title in found]


def test_switch_heads_see_the_ranking_change_take_them_away_and_rank_the_same_elsewhere(
    page: Page, address: str, retrieved_cache: Path, tmp_path: Path
) -> None:
    page.goto(f"{address}/retrieval_lab?stage=3&query=6")
    expect(page.get_by_text("Heads that count: 12 of 12")).to_be_visible(timeout=SLOW)
    expect(page.locator(".chip[data-head='1']")).to_have_attribute("aria-pressed", "true", timeout=SLOW)
    settle(page)
    before = titles(page)
    assert len(before) == 10
    for head in (1, 2, 3, 5, 8, 12):
        page.locator(f".chip[data-head='{head}']").click()
    expect(page.get_by_text("Heads that count: 6 of 12")).to_be_visible(timeout=SLOW)
    page.get_by_label("Weight of head 6").fill("2.5")
    expect(page).to_have_url(re.compile(r"mix=4%2C6%2A2\.5%2C7%2C9-11"), timeout=SLOW)
    settle(page)
    after = titles(page)
    assert after != before

    with page.expect_download() as waiting:
        page.get_by_role("button", name="Heads and weights (JSON)").click()
    waiting.value.save_as(tmp_path / "heads.json")
    kept = read_kept(tmp_path / "heads.json")
    assert kept.weights == {4: 1, 6: 2.5, 7: 1, 9: 1, 10: 1, 11: 1}
    run = Run(retrieved_cache, "demo")
    asked = read_query_set(run)
    assert asked is not None
    docs = prune(np.concatenate(list(run.vectors(3))), kept)
    query = prune(asked.vectors[3][5].reshape(1, -1), kept)[0]
    best = np.argsort(-(docs @ query), kind="stable")[:10]
    known = run.documents(["title"])["title"].to_pylist()
    assert [known[doc][:60] for doc in best] == [title[:60] for title in after]

    # The link that is in the address shows somebody else the same.
    page.goto(page.url)
    expect(page.get_by_text("Heads that count: 6 of 12")).to_be_visible(timeout=SLOW)
    settle(page)
    assert titles(page) == after
    expect(page.get_by_label("Weight of head 6")).to_have_value("2.5", timeout=SLOW)


def test_a_question_that_somebody_types_goes_through_the_model_and_not_into_the_address(
    page: Page, address: str
) -> None:
    page.goto(f"{address}/retrieval_lab?stage=3")
    expect(page.get_by_text("Heads that count: 12 of 12")).to_be_visible(timeout=SLOW)
    settle(page)
    page.get_by_role("textbox", name="Ask something").fill("how do telescopes find planets around other stars")
    page.get_by_role("textbox", name="Ask something").press("Enter")
    expect(page.get_by_text("For “how do telescopes find planets")).to_be_visible(timeout=SLOW)
    settle(page)
    metas = page.locator(".hs-cards").first.locator(".hs-meta").all_inner_texts()
    assert any("Astronomy" in meta for meta in metas[:3])
    assert "telescopes" not in page.url
