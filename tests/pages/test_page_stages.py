"""The Stages page, and the figures on the Overview, without a browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.analysis.wording import percent, percents
from core.runs.results import read_analysis
from core.runs.run import Run
from tests.support.apps import app_at, figures_of


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """A page of the app on a cache, at an address."""

    def start(cache: Path, page: str | None = "understand/stages", **address: str) -> AppTest:
        monkeypatch.setenv("HEADSCOPE_CACHE", str(cache))
        app = app_at(f"pages/{page or 'explore/overview'}/page.py")
        for name, value in address.items():
            app.query_params[name] = value
        return app.run()

    return start


def said(app: AppTest) -> str:
    kinds = ("title", "subheader", "markdown", "caption", "info", "warning", "error", "code")
    parts = [str(element.value) for kind in kinds for element in app.get(kind)]
    return "\n".join([*parts, *(element.proto.body for element in app.get("html"))])


def test_the_stages_page_shows_this_run_s_probe(open_page: Callable[..., AppTest], analysed_cache: Path) -> None:
    app = open_page(analysed_cache)
    assert not app.exception
    assert [heading.value for heading in app.subheader] == [
        "Do heads differ more than random slices?",
        "Are heads distinguishable?",
        "Which heads does the probe confuse?",
        "Most redundant heads",
        "How one document's heads move",
    ]
    summary = read_analysis(Run(analysed_cache, "demo"), "null_summary").to_pylist()
    row = next(row for row in summary if (row["stage"], row["measure"]) == (1, "probe"))
    assert f"stage 1: {row['heads']:.3f}, random slices {row['slices']:.3f}" in said(app)
    assert "Heads specialise at stage 1" in said(app)
    assert "No heads share a key/value head" in said(app)


def test_the_measure_that_heads_are_compared_by_is_in_the_address(
    open_page: Callable[..., AppTest], analysed_cache: Path
) -> None:
    app = open_page(analysed_cache)
    app.selectbox(key="measure").select("examples")
    app.run()
    assert not app.exception
    assert dict(app.query_params)["measure"] == "examples"
    bands = [element.json for element in figures_of(app)]
    titles = [band["layout"].get("yaxis", {}).get("title", {}).get("text") for band in bands]
    assert "topic match by examples" in titles


def test_another_split_and_stage_are_shown(open_page: Callable[..., AppTest], analysed_cache: Path) -> None:
    app = open_page(analysed_cache)
    app.segmented_control(key="split").set_value("sample")
    app.segmented_control(key="redundancy stage").set_value(3)
    app.run()
    assert not app.exception
    assert "At stage 3 the most similar pairs of heads" in said(app)
    assert "At stage 1 the most similar pairs of heads" not in said(app)


def test_without_labels_and_maps(open_page: Callable[..., AppTest], bare_cache: Path) -> None:
    app = open_page(bare_cache)
    assert not app.exception
    assert "python -m precompute project bare" in said(app)
    assert "heads of the same key/value group" in said(app)  # four heads on two: they are compared
    overview = open_page(bare_cache, page=None)
    assert not overview.exception
    assert "No document in this run has a topic from its list." in said(overview)
    assert "0 of 40 documents labelled" in said(overview)


def test_a_run_without_figures_says_how_to_make_them(open_page: Callable[..., AppTest], demo_cache: Path) -> None:
    app = open_page(demo_cache)
    assert not app.exception
    assert "python -m precompute analyse demo" in said(app)
    assert not app.subheader


def test_no_run(open_page: Callable[..., AppTest], tmp_path: Path) -> None:
    app = open_page(tmp_path)
    assert not app.exception
    assert "There are no runs yet" in said(app)


def test_the_overview_has_the_study_beside_the_run(open_page: Callable[..., AppTest], analysed_cache: Path) -> None:
    app = open_page(analysed_cache, page=None)
    assert not app.exception
    page = said(app)
    for figure in ("0.964", "1.000", "0.999", "30.6\u00a0%", "64.8\u00a0%", "79.1\u00a0%"):
        assert f"<td>{figure}</td>" in page
    match = read_analysis(Run(analysed_cache, "demo"), "topic_match").to_pylist()
    row = next(row for row in match if (row["stage"], row["method"], row["within"]) == (3, "full", 1))
    assert f"<td>{percent(row['rate'], 1)}<span>{percents(row['low'], row['high'], 1)}</span></td>" in page
    titles = [expander.label for expander in app.expander]
    assert "head 11 finds the labelled topic more often and heads 2 and 10 find it less often" in page
    assert "extract at stage 1 (attention)" in page
    assert any("Roles of heads" in title for title in titles)


@pytest.mark.parametrize("stage", ["9", "<script>", "1' OR 1"])
def test_a_hostile_address_falls_back(open_page: Callable[..., AppTest], analysed_cache: Path, stage: str) -> None:
    app = open_page(analysed_cache, page=None, stage=stage)
    assert not app.exception
    assert app.segmented_control(key="stage").value == 1
    assert "unknown value for" in app.toast[0].value
    assert "<script>" not in said(app)
