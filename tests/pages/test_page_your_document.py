"""The page Your document without a browser: a tiny model, a real queue, a real corpus on disk."""

from __future__ import annotations

import json
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.analysis.document_profile import Ranks
from core.model.ablation import ablated
from core.model.embedder import Embedder, EmbedderConfig
from core.runs.results import read_similarity, read_tables, read_topics
from core.runs.run import Run
from core.uploads import Watch
from core.uploads.apart import ParserQueue
from pages.shared import embedding
from pages.shared.queue import Ticket
from precompute.job.topic_vectors import TopicModel
from precompute.steps.analyse import step as analyse
from precompute.steps.analyse.step import AnalyseConfig
from precompute.steps.embed.step import EmbedConfig, run
from precompute.steps.project import step as project
from precompute.steps.project.config import ProjectConfig
from tests.support.apps import figures_of, page_at

ROOT = Path(__file__).resolve().parents[2]
PAGE = "pages/use/your_document/page.py"
NASTY = '<img src=x onerror="alert(1)"> **bold** [link](javascript:alert(1)) $x$'
LONG = " ".join(f"harbour violin {number}" for number in range(150))
"""More than the tiny model's 128 tokens."""
PATIENCE = 90

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]


@pytest.fixture(scope="module")
def cache(
    tmp_path_factory: pytest.TempPathFactory, tiny_model: Path, some_rows: Callable[..., list[dict[str, Any]]]
) -> Path:
    """60 short documents of the words of the tests, by the tiny model of four heads, with figures and maps."""
    folder = tmp_path_factory.mktemp("your-document")
    rows = some_rows(60)
    for number, row in enumerate(rows):
        row |= {"title": f"Title {number}", "topic": ("rivers", "engines", NASTY)[number % 3]}
    rows[7]["title"] = NASTY
    source = folder / "corpus.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run(EmbedConfig(folder / "cache", "tiny", str(source), EmbedderConfig(model=str(tiny_model))))
    analyse.run(AnalyseConfig(folder / "cache", "tiny", model=TopicModel(str(tiny_model))))
    project.run(ProjectConfig(folder / "cache", "tiny", iterations=60, threads=1))
    return folder / "cache"


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch, tiny_model: Path) -> Iterator[Callable[..., AppTest]]:
    """The page on a cache, at an address; the tiny model is where the app looks for folders."""
    embedding.model_pool().models.clear()

    def start(cache: Path, **address: str) -> AppTest:
        monkeypatch.setenv("HEADSCOPE_MODELS", str(tiny_model.parent))
        return page_at(cache, PAGE, monkeypatch, PATIENCE, **address)

    yield start
    embedding.model_pool().models.clear()


def said(app: AppTest) -> str:
    """All that stands on the page, HTML included; Markdown's escapes taken back."""
    kinds = ("title", "subheader", "markdown", "caption", "info", "warning", "error")
    parts = [re.sub(r"\\(\W)", r"\1", str(element.value)) for kind in kinds for element in app.get(kind)]
    return "\n".join([*parts, *(element.proto.body for element in app.get("html"))])


def headings(app: AppTest) -> list[str]:
    return [heading.value for heading in app.subheader]


def settled(app: AppTest, wanted: Callable[[AppTest], bool]) -> AppTest:
    """Runs the page again, as its own polling would, until the queue has done its work."""
    for _ in range(PATIENCE * 2):
        assert not app.exception
        if wanted(app):
            return app
        time.sleep(0.2)
        app.run()
    raise AssertionError(said(app))


def whole(app: AppTest) -> bool:
    return "Export" in headings(app) and 'class="hs-words"' in said(app) and "the embedding turns by" in said(app)


def paste(app: AppTest, text: str) -> AppTest:
    app.text_area[0].set_value(text)
    return press(app, "Embed")


def press(app: AppTest, label: str) -> AppTest:
    next(button for button in app.button if button.label == label).click()
    return app.run()


def pill(app: AppTest, key: str) -> Any:
    return next(group for group in app.button_group if group.key == key)


def profile_cells(app: AppTest) -> dict[str, Any]:
    charts = [chart.json for chart in figures_of(app)]
    found: dict[str, Any] = next(chart for chart in charts if chart["data"][0]["type"] == "heatmap")
    return found


def test_it_opens_with_a_way_in_and_nothing_embedded(open_page: Callable[..., AppTest], cache: Path) -> None:
    app = open_page(cache)
    assert app.title[0].value == "Your document"
    assert [button.label for button in app.button][:2] == ["Embed", "Try an example"]
    assert app.file_uploader[0].label == "Upload documents, up to 20 MB each"
    assert headings(app) == []
    assert "against the 60 documents" in said(app)
    assert embedding.model_pool().models == {}  # no model is loaded before somebody asks


def test_a_pasted_document_of_the_corpus_is_found_again_by_every_head(
    open_page: Callable[..., AppTest], cache: Path
) -> None:
    text = Run(cache, "tiny").documents(["text"])["text"][11].as_py()
    app = settled(paste(open_page(cache, head="3", reference="names"), text), whole)
    assert headings(app) == [
        "What it is about",
        "Topic profile",
        "Nearest documents of the corpus",
        "Without this head",
        "Where head 3 looks",
        "On the map",
        "Activation of each head",
        "Compare with another document",
        "Export",
    ]
    lists = [element.proto.body for element in app.get("html") if '<div class="hs-cards">' in element.proto.body]
    assert len(lists) == 5  # the full embedding's, the head's, by votes; and with and without one head
    assert [re.findall(r'hs-title">(.*?)</span>', body)[0] for body in lists[:3]] == ["Title 11"] * 3
    assert all("+1.00" in body for body in lists[:2])
    assert "heads 1–4" in lists[2]  # all of them voted for it
    # The cells are the corpus's own: what this document's similarities are among all documents'.
    names = read_topics(Run(cache, "tiny")).names
    stored = np.concatenate(list(read_similarity(Run(cache, "tiny"), 1, len(names))))
    expected = Ranks.of([stored]).percentile(stored[11].astype(np.float32))
    drawn = profile_cells(app)
    assert [tick.split("<br>")[0] for tick in drawn["layout"]["xaxis"]["ticktext"]] == ["full", "1", "2", "3", "4"]
    cells = _array(drawn["data"][0]["z"]).T  # [1 + head, topic], topics in another order
    assert np.abs(np.sort(cells, axis=1) - np.sort(expected, axis=1)).max() < 100 * 2.5 / 60  # rounding: two ranks
    assert np.array_equal(cells[0], -np.sort(-cells[0]))
    assert re.search(r"Only \d+ tokens: too short for a reliable profile", said(app))


def rates(cache: Path, table: str, stage: int = 1) -> list[str]:
    """The full embedding's and each head's, as the page shows them."""
    rows = read_tables(Run(cache, "tiny")).pick(table, stage=stage)
    rows = [row for row in rows if row.get("slicing", "heads") == "heads" and row.get("within", 1) == 1]
    return [f"{100 * row['rate']:.0f}" for row in rows if row["head"] is not None]


def test_examples_are_the_default_and_names_are_in_the_address(open_page: Callable[..., AppTest], cache: Path) -> None:
    app = settled(paste(open_page(cache), "harbour violin enzyme 5"), whole)
    compared = pill(app, "reference")
    assert compared.value == "examples"
    assert "reference" not in app.query_params
    ticks = profile_cells(app)["layout"]["xaxis"]["ticktext"]
    assert [tick.split("<br>")[1] for tick in ticks] == rates(cache, "example_match")
    cells = profile_cells(app)["data"][0]["z"]
    compared.set_value("names")
    app.run()
    assert "names" in app.query_params["reference"]
    ticks = profile_cells(app)["layout"]["xaxis"]["ticktext"]
    assert [tick.split("<br>")[1] for tick in ticks] == rates(cache, "topic_match")
    assert profile_cells(app)["data"][0]["z"] != cells
    assert "(right for … of 100)" in said(app)


def test_a_run_of_an_older_version_compares_by_names_and_says_what_brings_examples(
    open_page: Callable[..., AppTest], cache: Path, tmp_path: Path
) -> None:
    shutil.copytree(cache, tmp_path / "cache")
    for table in ("examples", "example_match"):
        Run(tmp_path / "cache", "tiny").analysis_path(table).unlink()
    app = settled(paste(open_page(tmp_path / "cache", reference="examples"), "harbour violin enzyme 5"), whole)
    assert "reference" not in [group.key for group in app.button_group]
    assert "To compare with examples, run `python -m precompute analyse tiny`." in said(app)
    ticks = profile_cells(app)["layout"]["xaxis"]["ticktext"]
    assert [tick.split("<br>")[1] for tick in ticks] == rates(cache, "topic_match")


def test_an_example_is_one_click_away(open_page: Callable[..., AppTest], cache: Path) -> None:
    app = settled(press(open_page(cache), "Try an example"), whole)
    assert "night ferry" in app.text_area[0].value
    assert "first 128 of" in said(app)  # the tiny model spells most words letter by letter
    assert "Try an example" not in [button.label for button in app.button]


def test_stage_head_and_measure_change_what_is_shown_and_nothing_is_embedded_again(
    open_page: Callable[..., AppTest], cache: Path
) -> None:
    app = settled(paste(open_page(cache), "harbour violin enzyme 5"), whole)
    tickets = dict(app.session_state[embedding._KEPT])
    before = profile_cells(app)["data"][0]
    pill(app, "head").set_value(4)
    app.run()
    assert "Where head 4 looks" in headings(app)
    assert "4" in app.query_params["head"]
    pill(app, "measure").set_value("cosine")
    app.run()
    cosine = profile_cells(app)["data"][0]
    assert cosine["zmin"] == -cosine["zmax"] != before["zmin"] == 0
    pill(app, "stage").set_value(3)
    app.run()
    assert profile_cells(app)["data"][0]["z"] != cosine["z"]
    assert dict(app.session_state[embedding._KEPT]) == tickets
    app.switch_page("pages/understand/topics/page.py").run()
    app.switch_page(PAGE).run()
    assert app.text_area[0].value == "harbour violin enzyme 5"
    assert whole(app)
    assert dict(app.session_state[embedding._KEPT]) == tickets


def test_a_long_document_says_what_was_cut_and_is_read_in_chunks(
    open_page: Callable[..., AppTest], cache: Path
) -> None:
    app = settled(paste(open_page(cache), LONG), whole)
    total = int(re.search(r"first 128 of ([\d,]+) tokens", said(app))[1].replace(",", ""))  # type: ignore[index]
    assert total > 300
    assert "<i>" in said(app).split('dir="auto">')[1]  # the rest of it, pale
    app.toggle[0].set_value(True).run()
    app = settled(app, lambda app: "Along the document" in headings(app))
    parts = next(box for box in app.selectbox if box.label == "Part of the document")
    assert parts.options[0] == "Beginning, 128 tokens"
    chunks = len(parts.options) - 1
    assert chunks >= total // 128
    parts.set_value(chunks).run()
    app = settled(app, whole)
    shown = said(app).split('<div class="hs-words" dir="auto">')[1]
    assert "<i>" not in shown  # the last chunk is read to its end
    app.switch_page("pages/understand/topics/page.py").run()
    app.switch_page(PAGE).run()
    assert "Along the document" in headings(settled(app, whole))


def test_the_beginning_of_a_long_document_is_embedded_once(
    open_page: Callable[..., AppTest], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded: list[str] = []
    real = Embedder.embed

    def embed(self: Embedder, texts: Sequence[str], **options: Any) -> Any:
        embedded.extend(texts)
        return real(self, texts, **options)

    monkeypatch.setattr(Embedder, "embed", embed)
    app = settled(paste(open_page(cache), LONG), whole)
    assert embedded == [LONG]
    app.toggle[0].set_value(True).run()
    app = settled(app, lambda app: "Along the document" in headings(app))
    parts = next(box for box in app.selectbox if box.label == "Part of the document")
    assert embedded.count(LONG) == 1
    assert len(embedded) == len(parts.options)


def test_a_document_of_too_many_chunks_says_so_and_shows_its_beginning(
    open_page: Callable[..., AppTest], cache: Path
) -> None:
    app = settled(paste(open_page(cache), LONG * 30), whole)
    app.toggle[0].set_value(True).run()
    app = settled(app, lambda app: bool(app.error))
    assert "This text is longer than 64 chunks of 128 tokens." in said(app)
    assert whole(app)
    app.toggle[0].set_value(False).run()
    assert not app.error
    assert whole(app)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "There is no text yet. Paste some, or upload a file."),
        (" \n\t ", "There is no text yet. Paste some, or upload a file."),
        ("harbour", "Only 3 tokens: too short for a reliable profile."),
        ("violin " * 200_000, "Only the first 1,000,000 of 1,400,000 characters were kept."),
        ("سلام harbour 你好 😀‍🔥", "tokens"),
        (f"{NASTY} harbour", "tokens"),
    ],
)
def test_odd_texts_get_a_sentence_and_the_page_stays_usable(
    open_page: Callable[..., AppTest], cache: Path, text: str, sentence: str
) -> None:
    app = paste(open_page(cache), text)
    app = settled(app, lambda app: sentence in said(app) and (not text.strip() or whole(app)))
    assert not app.exception
    raw = [str(element.value) for kind in ("markdown", "caption", "error") for element in app.get(kind)]
    raw += [element.proto.body for element in app.get("html")]
    assert not any(re.search(r"(?<!\\)<img", part) for part in raw)
    app = settled(paste(app, "harbour violin loom 77"), whole)
    assert "There is no text yet" not in said(app)


@pytest.mark.slow
def test_uploads_become_documents_to_choose_edit_compare_and_remove(
    open_page: Callable[..., AppTest], cache: Path
) -> None:
    app = open_page(cache)
    app.file_uploader[0].set_value(
        [("one.txt", b"harbour harbour loom", "text/plain"), ("bad.txt", b"\0\1", "text/plain")]
    )
    app.run()
    assert "bad.txt is not a text file" in said(app)
    box = next(box for box in app.selectbox if box.label == "Text to change")
    assert box.options == ["Pasted text", "one.txt"]
    assert app.text_area[0].value == "harbour harbour loom"
    app = settled(press(app, "Embed"), whole)
    assert "bad.txt" not in said(app)
    assert "Add a second document to compare the two" in said(app)
    app.file_uploader[0].set_value(
        [("two.json", json.dumps({"text": "violin glacier 3"}).encode(), "application/json")]
    )
    app.run()
    assert app.text_area[0].value == "violin glacier 3"
    assert whole(app), "a new upload does not hide the answer"
    assert "harbour" in words_shown(app)
    app = settled(press(app, "Embed"), lambda app: whole(app) and "glacier" in words_shown(app))
    other = next(box for box in app.selectbox if box.label == "The other document")
    assert other.options == ["none", "one.txt"]
    other.set_value(_key_of(app, "one.txt")).run()
    app = settled(app, lambda app: "They are least alike in head" in said(app))
    app.switch_page("pages/understand/topics/page.py").run()
    app.switch_page(PAGE).run()
    app = settled(app, whole)
    assert app.text_area[0].value == "violin glacier 3"
    assert "pairs" in said(app)
    press(app, "Remove")
    assert next(box for box in app.selectbox if box.label == "Text to change").options == ["Pasted text", "one.txt"]


def words_shown(app: AppTest) -> str:
    """The text of the answer, word by word."""
    return said(app).split('<div class="hs-words" dir="auto">')[-1]


@pytest.mark.slow
def test_several_files_are_embedded_in_one_go_with_a_tab_each(open_page: Callable[..., AppTest], cache: Path) -> None:
    app = open_page(cache)
    assert app.expander[0].label == "Paste or upload documents"
    files = [(f"{word}.txt", f"{word} {word} 12".encode(), "text/plain") for word in ("harbour", "violin", "glacier")]
    app.file_uploader[0].set_value(files)
    app = settled(press(app.run(), "Embed all 3"), whole)
    assert [tab.label for tab in app.tabs] == ["1 · harbour\\.txt", "2 · violin\\.txt", "3 · glacier\\.txt"]
    assert app.session_state["the form is open"] is False
    assert "harbour" in words_shown(app)
    tickets = {key: ticket for key, ticket in app.session_state[embedding._KEPT].items() if key.startswith("beginning")}
    assert len(tickets) == 3, "those in the other tabs are embedded too"
    app.session_state["whose answer is shown"] = "3 · glacier\\.txt"
    app = settled(app.run(), lambda app: whole(app) and "glacier" in words_shown(app))
    assert "harbour" not in words_shown(app)


def test_without_a_head_the_embedding_turns_as_far_as_the_model_says(
    open_page: Callable[..., AppTest], cache: Path, tiny_model: Path
) -> None:
    text = "harbour violin enzyme 5"
    app = settled(paste(open_page(cache, off_layer="1", off_head="2"), text), whole)
    model = Embedder.load(EmbedderConfig(model=str(tiny_model)))
    with ablated(model.extractor, model.without([(1, 2)])):
        off = model.embed([text]).stage(3)[0].astype(float)
    on = model.embed([text]).stage(3)[0].astype(float)
    angle = np.degrees(np.arccos(on @ off / np.linalg.norm(on) / np.linalg.norm(off)))
    assert f"Without layer 1 head 2, the embedding turns by {angle:.1f}°" in said(app)
    assert "the corpus documents are the stored ones, with the head on" in said(app)
    stored = np.concatenate(list(Run(cache, "tiny").vectors(3))).astype(float)
    nearest = int(np.argmax(stored @ off / np.linalg.norm(stored, axis=1)))
    lists = [element.proto.body for element in app.get("html") if '<div class="hs-cards">' in element.proto.body]
    assert f'hs-title">1. Title {nearest}<' in lists[4]


@pytest.mark.slow
def test_who_waits_for_a_parser_sees_the_place_and_loses_no_file(
    open_page: Callable[..., AppTest], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(ParserQueue):
        """A line that somebody leaves at the third place."""

        @contextmanager
        def place(self, watch: Watch) -> Iterator[None]:
            watch(2)
            st.stop()
            yield

    app = open_page(cache)
    app.file_uploader[0].set_value([("one.txt", b"harbour loom", "text/plain")])
    with monkeypatch.context() as full:
        full.setattr("core.uploads.apart.parser_queue", Stopped())
        app.run()
    assert "Waiting: 2 files ahead of yours." in said(app)
    app.run()
    assert "Waiting" not in said(app)
    assert app.text_area[0].value == "harbour loom"


def _key_of(app: AppTest, name: str) -> str:
    found = app.session_state["your documents"].found
    return next(key for key, draft in found.items() if draft.name == name)


def test_two_sessions_share_the_model_and_nothing_else(open_page: Callable[..., AppTest], cache: Path) -> None:
    one = settled(paste(open_page(cache), "harbour secret 12345"), whole)
    assert len(embedding.model_pool().models) == 1
    two = open_page(cache)
    assert "secret" not in said(two)
    assert two.text_area[0].value == ""
    settled(paste(two, "violin"), whole)
    assert len(embedding.model_pool().models) == 1
    assert "secret" in one.text_area[0].value


@pytest.mark.slow
def test_a_document_leaves_nothing_on_the_disk(
    open_page: Callable[..., AppTest], cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = {path: path.stat().st_mtime_ns for path in cache.rglob("*")}
    app = open_page(cache)
    app.file_uploader[0].set_value([("one.html", b"<p>harbour glacier loom 98765</p>", "text/html")])
    settled(press(app.run(), "Embed"), whole)
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*")} == before
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_run_whose_model_is_not_here_says_how_to_get_it_and_the_other_pages_work(
    open_page: Callable[..., AppTest], cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_page(cache)
    monkeypatch.setenv("HEADSCOPE_MODELS", str(tmp_path))
    app = settled(paste(app, "harbour violin"), lambda app: bool(app.error))
    assert "This run's model, 'tiny', is not on this machine. Make it available with" in said(app)
    assert headings(app) == []
    app.switch_page("pages/understand/topics/page.py").run()
    assert not app.exception
    assert app.title[0].value == "Topics"
    app.switch_page(PAGE).run()
    monkeypatch.undo()
    app = open_page(cache)  # the model is back: the queue has survived the failure
    settled(paste(app, "harbour violin"), whole)


def test_a_model_with_other_weights_is_refused(
    open_page: Callable[..., AppTest], cache: Path, other_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(other_model, tmp_path / "tiny")
    app = open_page(cache)
    monkeypatch.setenv("HEADSCOPE_MODELS", str(tmp_path))
    app = settled(paste(app, "harbour violin"), lambda app: bool(app.error))
    assert "is not the one that made this run's vectors" in said(app)


def test_try_again_asks_the_queue_again(
    open_page: Callable[..., AppTest], cache: Path, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_page(cache)
    monkeypatch.setenv("HEADSCOPE_MODELS", str(tmp_path))
    app = settled(paste(app, "harbour violin"), lambda app: bool(app.error))
    monkeypatch.setenv("HEADSCOPE_MODELS", str(tiny_model.parent))
    settled(press(app, "Try again"), whole)


def test_who_waits_sees_how_many_are_before_and_can_cancel(open_page: Callable[..., AppTest], cache: Path) -> None:
    go = threading.Event()
    ahead = [embedding.model_pool().queue.submit(lambda _: go.wait(PATIENCE), PATIENCE) for _ in range(2)]
    app = paste(open_page(cache), "harbour violin")
    assert [progress.proto.text for progress in app.get("progress")] == ["Waiting\\: 2 documents ahead of yours\\."]
    press(app, "Cancel")
    app.run()
    assert "It was cancelled." in said(app)
    go.set()
    assert all(ticket.wait(PATIENCE) for ticket in ahead)
    settled(press(app, "Try again"), whole)


def test_a_session_that_goes_takes_its_job_back_and_who_returns_gets_it_done(
    open_page: Callable[..., AppTest], cache: Path
) -> None:
    go = threading.Event()
    ahead = embedding.model_pool().queue.submit(lambda _: go.wait(PATIENCE), PATIENCE)
    app = paste(open_page(cache), "harbour violin")
    (ticket,) = app.session_state[embedding._KEPT].values()
    done: Ticket[int] = Ticket(lambda _: 1, PATIENCE)
    done.do()
    embedding._leave(WeakSet([ticket, done]))  # as Streamlit does when the browser has gone
    assert ticket.abandoned
    assert (done.abandoned, done.result) == (False, 1)
    go.set()
    assert ahead.wait(PATIENCE)
    settled(app.run(), whole)
    assert ticket.result is None


def test_a_run_without_figures_or_maps_shows_what_it_can(
    open_page: Callable[..., AppTest], cache: Path, tiny_model: Path, tmp_path: Path
) -> None:
    run(
        EmbedConfig(
            tmp_path / "cache", "tiny", str(cache.parent / "corpus.jsonl"), EmbedderConfig(model=str(tiny_model))
        )
    )
    app = settled(paste(open_page(tmp_path / "cache"), "harbour violin"), whole)
    assert "python -m precompute analyse tiny" in [block.value for block in app.code]
    assert "python -m precompute project tiny" in [block.value for block in app.code]
    assert "Topic profile" not in headings(app)
    assert said(app).count('<div class="hs-cards">') == 5


def test_a_run_without_labels_has_a_profile_all_the_same(
    open_page: Callable[..., AppTest],
    tiny_model: Path,
    write_corpus: Callable[..., Path],
    some_rows: Any,
    tmp_path: Path,
) -> None:
    source = write_corpus(some_rows(30))
    run(EmbedConfig(tmp_path / "cache", "tiny", str(source), EmbedderConfig(model=str(tiny_model))))
    analyse.run(AnalyseConfig(tmp_path / "cache", "tiny", centre=True, model=TopicModel(str(tiny_model))))
    text = Run(tmp_path / "cache", "tiny").documents(["text"])["text"][4].as_py()
    app = settled(paste(open_page(tmp_path / "cache"), text), whole)
    names = read_topics(Run(tmp_path / "cache", "tiny")).names
    stored = np.concatenate(list(read_similarity(Run(tmp_path / "cache", "tiny"), 1, len(names))))[4]
    pill(app, "measure").set_value("cosine")
    app.run()
    assert "Topics are compared by their names: fewer than two topics have 5 labelled documents." in said(app)
    assert "right for" not in said(app), "without labels nothing is known of how reliable heads are"
    drawn = profile_cells(app)
    assert len(drawn["layout"]["yaxis"]["ticktext"]) == len(names)
    cells = _array(drawn["data"][0]["z"]).T  # [1 + head, topic], topics by the full embedding
    order = np.argsort(-stored[0].astype(np.float32), kind="stable")
    assert np.abs(np.sort(cells[2]) - np.sort(stored[2][order].astype(np.float32))).max() < 0.01  # centred, as stored


def _array(given: Any) -> np.ndarray:
    """Plotly sends numbers as base64."""
    import base64

    if not isinstance(given, dict):
        return np.array(given)
    shape = [int(size) for size in str(given["shape"]).split(",")]
    return np.frombuffer(base64.b64decode(given["bdata"]), dtype=given["dtype"]).reshape(shape)


def test_no_run_at_all_offers_the_demo(open_page: Callable[..., AppTest], tmp_path: Path) -> None:
    app = open_page(tmp_path / "empty")
    assert "There are no runs yet" in headings(app)
    assert not app.text_area


def test_an_address_brings_no_document_and_fetches_nothing(open_page: Callable[..., AppTest], cache: Path) -> None:
    app = open_page(cache, url="http://127.0.0.1:9/x", text="harbour", doc="5", document="harbour")
    assert app.text_area[0].value == ""
    assert headings(app) == []
    app = settled(paste(app, "harbour violin private"), whole)
    assert "private" not in json.dumps(dict(app.query_params))


@pytest.mark.slow
def test_torch_comes_only_with_the_first_document() -> None:
    import subprocess

    code = (
        "import sys; import pages.use.your_document.input, pages.use.your_document.export, pages.shared.embedding, "
        "pages.use.your_document.compare, pages.use.your_document.neighbours; print('torch' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
