"""Why are these two similar, in a real browser: what is shown adds up, a click on a head shows its words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from core.model.embedder import Embedder, EmbedderConfig
from core.model.ledger import explain
from tests.pages.test_why_similar import TEXTS, made_run
from tests.support.browser import choose, draw_all, eventually, fits
from tests.support.servers import SLOW

pytestmark = pytest.mark.usefixtures("one_thread")
HEADS, LAYERS = 4, 2


@pytest.fixture(scope="module")
def address(serve: Callable[..., str], tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> str:
    folder = tmp_path_factory.mktemp("why")
    source = folder / "corpus.jsonl"
    rows = [{"title": f"Title {at}", "text": text} for at, text in enumerate(TEXTS)]
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    made_run(folder / "cache", tiny_model, source, swept=True)
    return serve(folder / "cache", HEADSCOPE_MODELS=str(tiny_model.parent), OMP_NUM_THREADS="1")


@pytest.fixture(scope="module")
def cosine(tiny_model: Path) -> float:
    """Of the second and the third document."""
    model = Embedder.load(EmbedderConfig(model=str(tiny_model)))
    return explain(*model.ledgers([text.strip() for text in TEXTS[1:3]])).cosine


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def grids(page: Page) -> Locator:
    """Of this pair, and of random pairs."""
    found = page.locator(".hs-grid[data-version]")
    expect(found).to_have_count(2, timeout=SLOW)
    return found


def sum_of_cells(grid: Locator) -> float:
    """Of heads, feed-forward blocks and biases; the last column has the sums."""
    rows = grid.locator(".row").filter(has=grid.page.locator(".cell"))
    expect(rows).to_have_count(LAYERS)
    return sum(number(text) for row in range(LAYERS) for text in rows.nth(row).locator(".cell").all_inner_texts()[:-1])


def sums(page: Page) -> list[dict[str, float]]:
    """The lines below the grids."""
    lines = page.get_by_text(re.compile(r"^layers .* = "))
    expect(lines).to_have_count(2, timeout=SLOW)
    found = []
    for line in lines.all_inner_texts():
        parts, total = line.replace("− ", "+ −").split(" = ")
        named = dict(part.rsplit(" ", 1) for part in parts.split(" + "))
        found.append({name.lstrip("−"): number(value) for name, value in named.items()} | {"all": number(total)})
    return found


@pytest.mark.parametrize("width", [1400, 420])
def test_the_numbers_shown_add_up_to_the_cosine_shown(page: Page, address: str, cosine: float, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 1000})
    page.goto(f"{address}/?run=small&doc=2&why=3")
    expect(page.get_by_text(re.compile(r"^Pairs of words: together"))).to_be_visible(timeout=SLOW)
    draw_all(page)
    expect(page.get_by_text(f"{cosine:.2f}, of which".replace("-", "−"))).to_be_visible()

    def adds_up() -> None:
        pair, usual = sums(page)
        assert pair["all"] == round(cosine, 3)
        assert round(pair["layers"] + pair["embeddings"], 3) == pair["all"]
        assert round(sum_of_cells(grids(page).first), 3) == pair["layers"]
        assert round(sum_of_cells(grids(page).nth(1)), 3) == usual["layers"]
        labels = page.locator(".js-plotly-plot .waterfalllayer text").all_text_contents()
        assert labels
        *steps, total = (number(text) for text in labels)
        assert round(sum(steps), 3) == total == pair["all"]

    eventually(page, adds_up)
    fits(page, width)


def test_a_click_on_a_head_shows_its_words_and_is_in_the_address(page: Page, address: str) -> None:
    page.goto(f"{address}/?run=small&doc=2")
    expect(page.get_by_text("Nearest in the full embedding")).to_be_visible(timeout=SLOW)
    expect(page.get_by_role("heading", name="Why are these two similar?")).to_have_count(0)
    choose(page, "Why are these two similar?", "Title 2")
    expect(page.get_by_text(re.compile(r"^Pairs of words: together"))).to_be_visible(timeout=SLOW)
    expect(page).to_have_url(re.compile("why=3"))
    grids(page).first.locator('.cell[data-row="0"][data-column="2"]').click()
    expect(page.get_by_text("Layer 1 head 3, word by word")).to_be_visible(timeout=SLOW)
    expect(page.locator(".hs-shaded")).to_have_count(2, timeout=SLOW)
    expect(page).to_have_url(re.compile("why_layer=1&why_head=3"))
    before = page.get_by_text(re.compile(r"^layers .* = ")).first.inner_text()
    page.get_by_text("Subtract random pairs").click()
    expect(page.get_by_text("This pair, less random pairs")).to_be_visible(timeout=SLOW)
    expect(page.get_by_text(re.compile(r"^layers .* = ")).first).not_to_have_text(before)

    def differs_from_before() -> None:
        pair, usual = sums(page)
        assert round(pair["layers"] + pair["embeddings"], 3) == pair["all"]
        assert round(pair["all"] + usual["all"], 3) == number(before.split(" = ")[1])

    eventually(page, differs_from_before)
