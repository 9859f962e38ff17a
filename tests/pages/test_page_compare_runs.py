"""The page Compare runs without a browser: heads that were planted are matched, and one brush selects on both maps."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.analysis.findings import Finding
from core.model.shape import ModelShape
from core.runs.run import Run
from core.runs.shared_documents import shared_documents
from pages.explore.compare_runs.differences import subjects
from pages.shared.components.map_data import area_text, read_area
from tests.support.apps import figures_of, page_at

SHAPE = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)
DOCS, MOVED = 60, 20
ORDER = (2, 0, 3, 1)
"""Head i of the run 'two' is head ORDER[i] of 'one', turned."""
PAGE = "pages/explore/compare_runs/page.py"
EVERYTHING = "_0.0_9999.0_9999.9999_0.9999"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """'one'; 'two' with 40 of its documents, 20 others, and its heads in another order; 'apart' with none of them."""
    from precompute.steps.analyse import step as analyse
    from precompute.steps.project import step as project
    from precompute.steps.project.config import ProjectConfig
    from tests.support.synthetic import PlantedTopics, write_run

    folder = tmp_path_factory.mktemp("pair")
    chance = np.random.default_rng(0)
    one = chance.normal(size=(DOCS, 4, 8)) * np.linspace(2, 0.3, 8)
    turns = [np.linalg.qr(chance.normal(size=(8, 8)))[0] for _ in ORDER]
    moved = np.concatenate([one[MOVED:], chance.normal(size=(MOVED, 4, 8))])
    two = np.stack([moved[:, head] @ turn for head, turn in zip(ORDER, turns, strict=True)], axis=1)
    texts = [f"Text number {number}." for number in range(DOCS + MOVED)]
    for name, heads, own in (
        ("one", one, texts[:DOCS]),
        ("two", two, texts[MOVED:]),
        ("apart", one, [f"Another text, {number}." for number in range(DOCS)]),
    ):
        flat = heads.reshape(DOCS, -1)
        write_run(
            folder, name, SHAPE, lambda _, first, count, flat=flat: flat[first : first + count],
            [("left", "right")[doc % 2] for doc in range(DOCS)], part_size=25, texts=own,
        )  # fmt: skip
        if name == "apart":
            path = Run(folder, name).folder / "manifest.json"
            path.write_text(path.read_text().replace('"fingerprint": "planted"', '"fingerprint": "apart"'))
        analyse.run(analyse.AnalyseConfig(folder, name, model=PlantedTopics(SHAPE, {})))
        if name != "apart":
            project.run(ProjectConfig(folder, name, iterations=30, threads=1))
    return folder


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch, cache: Path) -> Callable[..., AppTest]:
    return lambda page=PAGE, **address: page_at(cache, page, monkeypatch, **address)


def said(app: AppTest) -> str:
    kinds = ("markdown", "caption", "info", "subheader", "toast", "code")
    parts = [re.sub(r"\\(\W)", r"\1", str(element.value)) for kind in kinds for element in app.get(kind)]
    return "\n".join([*parts, *(element.proto.body for element in app.get("html"))])


def maps(app: AppTest) -> list[dict[str, Any]]:
    charts = [element.json for element in figures_of(app)]
    return [chart for chart in charts if chart["data"][0]["type"] == "scattergl"]


def numbers(array: dict[str, str]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(array["bdata"]), dtype=array["dtype"])


def test_planted_heads_are_matched_in_their_order(open_page: Callable[..., AppTest]) -> None:
    app = open_page(run="one", beside="two")
    assert "4 of 4 heads of one have a counterpart in two" in said(app)
    table = app.dataframe[0].value
    # Head 1 of 'one' is the second of 'two', 2 the fourth, 3 the first, 4 the third.
    assert table["most like"].tolist() == ["head 2", "head 4", "head 1", "head 3"]
    assert set(table["verdict"]) == {"counterpart"}
    assert "On 40 shared documents." in said(app)


def test_a_brush_on_one_map_selects_the_same_documents_on_the_other(open_page: Callable[..., AppTest]) -> None:
    whole = maps(open_page(run="one", beside="two", pair="1"))
    assert [len(chart["data"]) for chart in whole] == [1, 1]
    trace = whole[1]["data"][0]
    x, y, titles = numbers(trace["x"]).astype(int), numbers(trace["y"]).astype(int), trace["text"]
    box = np.array([[x[0] + a, y[0] + b] for a, b in ((-40, -40), (40, -40), (40, 40), (-40, 40))])
    inside = {
        title for title, own, up in zip(titles, x, y, strict=True) if abs(own - x[0]) < 30 and abs(up - y[0]) < 30
    }
    app = open_page(run="one", beside="two", pair="1", brush=area_text(12, box.astype(float)))
    lit = [set(chart["data"][1]["text"]) for chart in maps(app)]
    assert titles[0] in lit[0]
    assert lit[0] == lit[1] >= inside
    assert f"**{len(lit[0])} document" in said(app)
    assert "shapes" in maps(app)[1]["layout"]
    assert "shapes" not in maps(app)[0]["layout"]


def test_both_maps_draw_the_shared_documents_with_all_heads(open_page: Callable[..., AppTest]) -> None:
    app = open_page(run="one", beside="two", brush=f"11{EVERYTHING}")
    assert [len(numbers(chart["data"][1]["x"])) for chart in maps(app)] == [160, 160]  # 40 documents, 4 heads
    assert "**40 documents** selected on one" in said(app)
    app.button[-1].click().run()
    assert [len(chart["data"]) for chart in maps(app)] == [1, 1]
    assert "brush" not in app.query_params


@pytest.mark.parametrize(("brush", "told"), [("21" + EVERYTHING, False), ("nonsense", True), ("11_1.1", False)])
def test_a_brush_of_another_map_or_of_none_is_left_out(
    open_page: Callable[..., AppTest], brush: str, told: bool
) -> None:
    app = open_page(run="one", beside="two", brush=brush)
    assert "brush" not in app.query_params
    assert ("names a selection that does not exist" in said(app)) is told


def test_a_large_run_is_sampled_and_says_so(open_page: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pages.explore.compare_runs.state.MOST_POINTS", 48)
    app = open_page(run="one", beside="two")
    assert [len(numbers(chart["data"][0]["x"])) for chart in maps(app)] == [48, 48]
    assert "12 of 40 shared documents, a random sample, are drawn" in said(app)


def test_runs_without_a_shared_document_say_so_and_compare_their_findings(open_page: Callable[..., AppTest]) -> None:
    app = open_page(run="one", beside="apart")
    assert "The two runs share no documents: no text occurs in both." in said(app)
    assert not maps(app)
    assert "Finding by finding" in said(app)
    assert "Head by head" not in said(app)


def test_the_other_run_is_one_of_the_same_corpus_unless_chosen(open_page: Callable[..., AppTest]) -> None:
    assert open_page(run="two").selectbox(key="beside").value == "one"  # and not 'apart', which comes before it
    assert open_page(run="two", beside="apart").selectbox(key="beside").value == "apart"


def test_an_old_link_to_the_overview_leads_to_the_comparison(open_page: Callable[..., AppTest]) -> None:
    app = open_page("pages/explore/overview/page.py", run="one", beside="two")
    links = [link.proto for link in app.get("page_link") if "compare_runs" in link.proto.page]
    assert [(link.label, link.query_string) for link in links] == [("Compare with two", "run=one&beside=two")]


def test_a_single_run_says_how_to_make_another(monkeypatch: pytest.MonkeyPatch, bare_cache: Path) -> None:
    app = page_at(bare_cache, PAGE, monkeypatch, run="bare")
    assert "There is no other run with figures to compare with." in said(app)
    assert "python -m precompute all another-run" in said(app)


def test_shared_documents_are_those_with_the_same_text(cache: Path) -> None:
    found = shared_documents(Run(cache, "one"), Run(cache, "two"))
    assert found.tolist() == [[doc, doc - MOVED] for doc in range(MOVED, DOCS)]
    assert shared_documents(Run(cache, "one"), Run(cache, "apart")).shape == (0, 2)


def test_what_differs_is_told_apart_from_what_one_run_alone_says() -> None:
    here = [
        Finding("stage", "At stage 1.", "0.5"),
        Finding("heads", "Head 1.", "0.6"),
        Finding("voting", "Votes.", "1"),
    ]
    there = [Finding("stage", "At stage 2.", "0.5"), Finding("heads", "Head 1.", "0.7")]
    found = {one.title: one for one in subjects(here, there)}
    assert list(found) == ["Heads that stand out", "Where to extract", "Voting compared with the full embedding"]
    assert [one.same for one in found.values()] == [True, False, False]
    assert not found["Voting compared with the full embedding"].there


def test_an_area_is_read_as_it_was_written() -> None:
    corners = np.array([[0.0, 0.0], [65_535.0, 100.0], [32_000.0, 65_535.0]])
    read = read_area(area_text(11, corners), 11)
    assert read == pytest.approx(corners, abs=65_535 / 9_999)
    many = np.stack([np.arange(500.0), np.arange(500.0)], axis=1)
    assert len(read_area(area_text(1, many), 1)) <= 80  # type: ignore[arg-type]
