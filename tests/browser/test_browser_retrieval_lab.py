"""The Retrieval lab in a real browser: ask, switch heads, take them away, and rank the same elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from core.retrieval.apply import Kept, prune, read_kept
from core.retrieval.aspect_judge import head_cosines
from core.retrieval.aspect_switch import learn_weights
from core.runs.aspects import aspects_of
from core.runs.results import read_query_set
from core.runs.run import Run
from tests.support.browser import choose, settle
from tests.support.servers import SLOW


@pytest.fixture(scope="module")
def address(served: Callable[[Path], str], retrieved_cache: Path) -> str:
    return served(retrieved_cache)


def titles(page: Page) -> Locator:
    """Of the documents on the left: a place, a mark if it is relevant, and the title's beginning."""
    return page.locator(".st-key-results-left .hs-title")


def ranked(titles: list[str]) -> list[re.Pattern[str]]:
    """The same as these patterns, for a list that is yet to come."""
    return [re.compile(rf"^{place}\. (✓ )?{re.escape(title[:60])}") for place, title in enumerate(titles, 1)]


def test_switch_heads_see_the_ranking_change_take_them_away_and_rank_the_same_elsewhere(
    page: Page, address: str, retrieved_cache: Path, tmp_path: Path
) -> None:
    page.goto(f"{address}/retrieval_lab?stage=3&query=6")
    expect(page.get_by_text("Kept heads: 12 of 12")).to_be_visible(timeout=SLOW)
    expect(page.locator(".chip[data-head='1']")).to_have_attribute("aria-pressed", "true", timeout=SLOW)
    run = Run(retrieved_cache, "demo")
    asked, known = read_query_set(run), run.documents(["title"])["title"].to_pylist()
    assert asked is not None
    docs, query = np.concatenate(list(run.vectors(3))), asked.vectors[3][5].reshape(1, -1)

    def best(kept: Kept) -> list[str]:
        """Worked out anew from the files."""
        order = np.argsort(-(prune(docs, kept) @ prune(query, kept)[0]), kind="stable")
        return [" ".join(known[doc].split()) for doc in order[:10]]

    before = best(Kept("", 3, 12, dict.fromkeys(range(1, 13), 1.0)))
    expect(titles(page)).to_have_text(ranked(before))
    for head in (1, 2, 3, 5, 8, 12):
        page.locator(f".chip[data-head='{head}']").click()
    expect(page.get_by_text("Kept heads: 6 of 12")).to_be_visible(timeout=SLOW)
    page.get_by_label("Weight of head 6").fill("2.5")
    expect(page).to_have_url(re.compile(r"mix=4%2C6%2A2\.5%2C7%2C9-11"), timeout=SLOW)
    chosen = Kept("", 3, 12, {4: 1, 6: 2.5, 7: 1, 9: 1, 10: 1, 11: 1})
    expect(titles(page)).to_have_text(ranked(best(chosen)))
    settle(page)
    page.get_by_role("tab", name="Export").click()
    expect(page).to_have_url(re.compile("tab=export"), timeout=SLOW)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Heads and weights (JSON)").click()
    waiting.value.save_as(tmp_path / "heads.json")
    kept = read_kept(tmp_path / "heads.json")
    assert kept.weights == chosen.weights
    assert best(kept) != before

    # The link that is in the address shows somebody else the same.
    page.goto(page.url.replace("tab=export", "tab=results"))
    expect(page.get_by_text("Kept heads: 6 of 12")).to_be_visible(timeout=SLOW)
    expect(titles(page)).to_have_text(ranked(best(kept)))
    expect(page.get_by_label("Weight of head 6")).to_have_value("2.5", timeout=SLOW)


def in_viewport(locator: Locator) -> None:
    """Wholly, at the size that the page has."""
    expect(locator).to_be_in_viewport(ratio=1)


def test_a_head_switched_off_changes_the_strip_which_stays_in_view(page: Page, address: str) -> None:
    page.goto(f"{address}/retrieval_lab")
    strip = page.locator(".hs-strip")
    expect(strip).to_contain_text("kept heads 12 of 12", timeout=SLOW)
    metric = strip.locator("[data-part=metric]")
    expect(metric).to_have_text(re.compile(r"^nDCG@10 0\.\d{3}$"))
    before = metric.inner_text()
    page.locator(".chip[data-head='1']").click()
    expect(strip).to_contain_text("kept heads 11 of 12", timeout=SLOW)
    expect(metric).not_to_have_text(before)
    expect(strip).to_contain_text(re.compile(r"against all heads [−+]0\.\d{3} \(95 % CI"))
    in_viewport(strip)
    settle(page)
    page.get_by_role("button", name="Why?").last.scroll_into_view_if_needed()
    in_viewport(strip)
    page.get_by_role("tab", name="Pruning").scroll_into_view_if_needed()
    page.get_by_role("tab", name="Pruning").click()
    expect(page.get_by_role("heading", name="Which heads can be pruned")).to_be_visible(timeout=SLOW)
    settle(page)
    page.get_by_role("heading", name="How much each head is needed").scroll_into_view_if_needed()
    in_viewport(strip)
    expect(strip).to_contain_text("kept heads 11 of 12")


def test_why_of_a_result_opens_in_view(page: Page, address: str, retrieved_cache: Path) -> None:
    page.goto(f"{address}/retrieval_lab?query=6")
    expect(titles(page)).to_have_count(10, timeout=SLOW)
    settle(page)
    title = titles(page).nth(2).inner_text().split(". ", 1)[1].removeprefix("✓ ")
    page.locator(".st-key-results-left").get_by_role("button", name="Why?").nth(2).click()
    heading = page.get_by_role("heading", name="Why are these two similar?")
    in_viewport(heading)
    in_viewport(page.get_by_text(f"and “{title[:30]}"))
    expect(page.get_by_text(re.compile(r"^-?−?0\.\d\d, of which"))).to_be_visible(timeout=SLOW)
    in_viewport(heading)
    known = Run(retrieved_cache, "demo").documents(["title"])["title"].to_pylist()
    number = next(at for at, one in enumerate(known, 1) if " ".join(one.split()).startswith(title[:30]))
    expect(page).to_have_url(re.compile(f"why={number}(&|$)"))
    settle(page)
    page.get_by_role("button", name="Close").click()
    expect(heading).to_have_count(0)
    expect(page).not_to_have_url(re.compile("why="))


def test_without_a_head_the_results_before_and_after_are_side_by_side(page: Page, address: str) -> None:
    page.goto(f"{address}/retrieval_lab?query=6&tab=without&off_head=3")
    expect(page.get_by_text(re.compile(r"^Without layer 6 head 3, the embedding turns by \d+\.\d°"))).to_be_visible(
        timeout=2 * SLOW
    )
    for side in ("with", "without"):
        expect(page.locator(f".st-key-neighbours-{side} .hs-title")).to_have_count(10)
    settle(page)
    choose(page, "Head switched off", "11")
    expect(page.get_by_text(re.compile("^Without layer 6 head 11, the embedding turns by"))).to_be_visible(timeout=SLOW)
    expect(page.get_by_text("the corpus documents are the stored ones, with the head on")).to_be_visible()


def test_a_question_that_somebody_types_goes_through_the_model_and_not_into_the_address(
    page: Page, address: str
) -> None:
    page.goto(f"{address}/retrieval_lab?stage=3")
    expect(page.get_by_text("Kept heads: 12 of 12")).to_be_visible(timeout=SLOW)
    settle(page)
    page.get_by_role("textbox", name="Ask something").fill("how do telescopes find planets around other stars")
    page.get_by_role("textbox", name="Ask something").press("Enter")
    expect(page.get_by_text("For “how do telescopes find planets")).to_be_visible(timeout=SLOW)
    settle(page)  # the cards before were those of another question
    metas = page.locator(".st-key-results-left .hs-meta")
    expect(metas).to_have_count(10)
    expect(metas.filter(has_text="Astronomy").first).to_be_visible()
    assert any("Astronomy" in meta for meta in metas.all_inner_texts()[:3])
    assert "telescopes" not in page.url


def test_follow_an_aspect_and_ignore_another_share_the_link_and_go_back(
    page: Page, address: str, retrieved_cache: Path
) -> None:
    run = Run(retrieved_cache, "demo")
    asked, known = read_query_set(run), run.documents(["title"])["title"].to_pylist()
    assert asked is not None
    docs, query = np.concatenate(list(run.vectors(3))), asked.vectors[3][5].reshape(1, -1)
    labels = {aspect.name: aspect.codes for aspect in aspects_of(run)}
    cosines = head_cosines(docs.reshape(len(docs), 12, -1))

    def best(positions: dict[str, str]) -> list[str]:
        """Learned and ranked anew from the files."""
        weights = learn_weights(cosines, labels, positions)
        kept = Kept("", 3, 12, {head + 1: float(each) for head, each in enumerate(weights) if each > 0}, "weighted")
        order = np.argsort(-(prune(docs, kept) @ prune(query, kept)[0]), kind="stable")
        return [" ".join(known[doc].split()) for doc in order[:10]]

    def switch(aspect: str, position: str) -> Locator:
        return page.get_by_test_id("stButtonGroup").filter(has_text=aspect).get_by_role("radio", name=position)

    page.goto(f"{address}/retrieval_lab?query=6")
    page.get_by_text("Follow or ignore an aspect").click(timeout=SLOW)
    expect(switch("genre", "follow")).to_be_visible(timeout=SLOW)
    settle(page)  # what is still being drawn moves the switches from under the pointer
    switch("genre", "follow").click()
    expect(page).to_have_url(re.compile(r"aspect\.genre=follow"), timeout=SLOW)
    expect(titles(page)).to_have_text(ranked(best({"genre": "follow"})), timeout=SLOW)
    switch("topic", "ignore").click()
    both = best({"genre": "follow", "topic": "ignore"})
    expect(titles(page)).to_have_text(ranked(both), timeout=SLOW)
    expect(page.get_by_text(re.compile("Follow genre.* the share of documents with the same genre"))).to_be_visible()

    page.goto(page.url)  # somebody else, by the link
    expect(switch("topic", "ignore")).to_have_attribute("aria-checked", "true", timeout=SLOW)
    expect(titles(page)).to_have_text(ranked(both), timeout=SLOW)
    switch("topic", "neutral").click()
    expect(titles(page)).to_have_text(ranked(best({"genre": "follow"})), timeout=SLOW)
    expect(page).not_to_have_url(re.compile(r"aspect\.topic"))
    settle(page)
    page.go_back()
    expect(switch("topic", "ignore")).to_have_attribute("aria-checked", "true", timeout=SLOW)
    expect(titles(page)).to_have_text(ranked(both), timeout=SLOW)
