"""Why are these two similar: the view without a browser, on a tiny model."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.analysis.explained import rounded_to_sum
from core.model.embedder import Embedder, EmbedderConfig
from core.model.ledger import Explanation, Term, explain
from core.runs.run import Run
from pages.shared import embedding
from pages.shared.figures.term_grid import decimal, hundredths, term_grid
from pages.shared.figures.whose import segments, whose_figure
from pages.shared.figures.why_similar import waterfall
from pages.shared.text import plain
from precompute.job.storage import Storage
from precompute.job.topic_vectors import TopicModel
from precompute.steps.embed.step import EmbedConfig
from precompute.steps.embed.step import run as embed
from precompute.steps.layers import step as layers
from precompute.steps.layers.step import LayersConfig
from tests.support.apps import page_at
from tests.support.models import WORDS

pytestmark = pytest.mark.usefixtures("one_thread")
EVIL = "<script>alert(1)</script> [link](javascript:alert(1)) $x$"
TEXTS = [f"{EVIL if doc == 1 else ''} {' '.join(WORDS[(doc + at) % 8] for at in range(4 + doc))}" for doc in range(7)]


def made_run(cache: Path, model: Path, source: Path, swept: bool) -> Run:
    how = EmbedderConfig(model=str(model))
    embed(EmbedConfig(cache, "small", source=str(source), embedder=how, storage=Storage(shares=True)))
    if swept:
        layers.run(LayersConfig(cache, "small", model=TopicModel(str(model))))
    return Run(cache, "small")


@pytest.fixture
def corpus(write_corpus: Callable[..., Path]) -> Path:
    return write_corpus([{"title": f"Title {at} {EVIL}", "text": text} for at, text in enumerate(TEXTS)])


@pytest.fixture
def at_page(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., AppTest]]:
    monkeypatch.setenv("HEADSCOPE_MODELS", str(tiny_model.parent))
    embedding.model_pool().models.clear()

    def open_(run: Run, page: str, until: str, **address: str) -> AppTest:
        """The page, run again as its own polling would until ``until`` is said."""
        app = page_at(run.cache, f"pages/{page}/page.py", monkeypatch, **address)
        for _ in range(200):
            assert not app.exception
            if until in said(app):
                return app
            time.sleep(0.2)
            app.run()
        raise AssertionError(said(app))

    yield open_
    embedding.model_pool().models.clear()


def said(app: AppTest) -> str:
    kinds = ("subheader", "markdown", "caption", "info", "warning", "error")
    parts = [str(element.value) for kind in kinds for element in app.get(kind)]
    return "\n".join([*parts, *(element.proto.body for element in app.get("html"))])


def cosine(model: Path, first: int, second: int) -> float:
    found = Embedder.load(EmbedderConfig(model=str(model)))
    return explain(*found.ledgers([TEXTS[first].strip(), TEXTS[second].strip()])).cosine


def test_two_documents_of_the_corpus_are_explained_beside_random_pairs(
    at_page: Callable[..., AppTest], tmp_path: Path, tiny_model: Path, corpus: Path
) -> None:
    run = made_run(tmp_path, tiny_model, corpus, swept=True)
    app = at_page(run, "explore/overview", "Equal words", doc="2", why="3")
    text = said(app)
    assert "Why are these two similar?" in text
    shown = cosine(tiny_model, 1, 2)
    assert plain(f"{shown:.2f}, of which ") in text
    assert plain("Two random documents of this corpus have") in text
    sums = re.findall(r"layers (\S+) \\\+ embeddings (\S+) \\\= (\S+)", text)
    assert len(sums) == 2  # this pair, and random pairs
    numbers = [[float(part.replace("\\", "").replace("−", "-")) for part in line] for line in sums]
    for one, other, total in numbers:
        assert one + other == pytest.approx(total, abs=1e-9)
    assert numbers[0][-1] == round(shown, 3)
    assert "word by word" in text
    assert "Residual" in text
    assert "<script>alert" not in text.replace("\\<script", "")
    assert "What the embedding is made of" in text
    assert "Heads make up" in text


def test_a_run_without_a_sweep_says_what_is_missing(
    at_page: Callable[..., AppTest], tmp_path: Path, tiny_model: Path, corpus: Path
) -> None:
    run = made_run(tmp_path, tiny_model, corpus, swept=False)
    app = at_page(run, "use/retrieval_lab", "Equal words", why="3")
    text = said(app)
    assert "Why are these two similar?" in text
    assert "python -m precompute layers small" in text
    assert "word by word" in text
    overview = said(at_page(run, "explore/overview", "Runs in the cache"))
    assert "Why are these two similar?" not in overview  # nobody has asked
    assert "Not measured yet. Run `python -m precompute layers small`." in overview


def test_without_the_model_the_stored_shares_of_two_documents_speak(
    at_page: Callable[..., AppTest], tmp_path: Path, tiny_model: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made_run(tmp_path, tiny_model, corpus, swept=False)
    model = Embedder.load(EmbedderConfig(model=str(tiny_model)))
    found = explain(*model.ledgers([text.strip() for text in TEXTS[1:3]]))
    values = dict(zip(found.terms, found.values.tolist(), strict=True))
    monkeypatch.setenv("HEADSCOPE_MODELS", str(tmp_path))  # where no model is
    text = said(at_page(run, "explore/overview", "without the model", doc="2", why="3"))
    of_heads = sum(values[Term("head", 2, head)] for head in range(1, 5))
    stated = re.search(r"of which (\S+) from the heads of layer 2", text.replace("\\", ""))
    assert stated is not None
    assert float(stated[1].replace("−", "-")) == pytest.approx(of_heads, abs=0.011)  # two decimals, and float16
    assert plain(f"{found.cosine:.2f}".replace("-", "−")) in text
    assert "is not on this machine" in text


# Figures


TERMS = (Term("embedding"), *(Term("head", 1, head) for head in range(1, 13)), Term("mlp", 1), Term("bias", 1))


def explanation(seed: int) -> Explanation:
    values = np.random.default_rng(seed).normal(size=len(TERMS)) / 30
    return Explanation(float(values.sum()), TERMS, values)


@pytest.mark.parametrize("start", [0.0, 0.1234])
def test_the_bars_of_the_waterfall_add_up_to_the_cosine_shown(start: float) -> None:
    for seed in range(20):
        found = explanation(seed)
        whole = Explanation(found.cosine + start, TERMS, found.values)
        (trace,) = waterfall(whole, start, "light").data
        *steps, total = trace.x
        assert round(sum(steps), 9) == total == round(whole.cosine, 3)
        assert len(steps) == 9 + bool(start)


def test_the_grid_has_every_head_block_and_bias_in_words_that_add_up() -> None:
    found = explanation(1)
    shown = rounded_to_sum(found.values, found.cosine, 3)
    grid = term_grid(TERMS, shown, decimal, lambda at: "a note", "light", "label", "name")
    assert grid.columns == [*map(str, range(1, 13)), "ff", "bias", "all"]
    cells = [float(cell.text.replace("−", "-")) for cell in grid.cells[0] if cell is not None]
    assert round(sum(cells[:-1]), 9) == round(cells[-1], 9)
    assert round(cells[-1] + shown[0], 9) == round(found.cosine, 3)
    first = grid.cells[0][0]
    assert first is not None
    assert first.label == "Layer 1 head 1\na note"


def test_numbers_are_short() -> None:
    assert [decimal(value) for value in (0.0614, -0.0124, 0.0001, -1.2)] == [".061", "−.012", "0", "−1.200"]
    assert [hundredths(value) for value in (0.1234, -0.004, 0.0)] == ["12.3", "−0.4", "0"]


def test_the_bar_of_parts_adds_up_to_a_hundred() -> None:
    parts = {"embedding": 0.0512, "mlps": 0.3333, "biases": -0.0417}
    rows = [{"kind": kind, "layer": None, "head": None, "mean": mean} for kind, mean in parts.items()]
    rows += [{"kind": "heads", "layer": layer, "head": None, "mean": mean} for layer, mean in ((1, 0.1572), (2, 0.5))]
    rows = [{**row, "low": row["mean"], "high": row["mean"]} for row in rows]
    assert [name for name, *_ in segments(rows)] == [
        "embeddings", "heads of layer 1", "heads of layer 2", "feed-forward blocks", "biases",
    ]  # fmt: skip
    assert round(sum(trace.x[0] for trace in whose_figure(rows, "light").data), 9) == 100
