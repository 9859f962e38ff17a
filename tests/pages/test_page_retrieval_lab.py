"""The Retrieval lab without a browser."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.retrieval.apply import prune
from core.retrieval.head_index import HeadIndex
from core.retrieval.votes import Say
from core.retrieval.ways import Heads, Seen, rank
from core.runs.results import read_query_set, read_tables
from core.runs.run import Run
from pages.shared.heads_in_address import parse_weights
from tests.support.apps import page_at

PAGE = "pages/use/retrieval_lab/page.py"


def shown(app: AppTest) -> str:
    kinds = ("title", "subheader", "markdown", "caption", "info", "warning", "error", "code")
    parts = [str(element.value) for kind in kinds for element in app.get(kind)]
    return "\n".join([*parts, *(element.proto.body for element in app.get("html"))])


def best_title(run: Run, way: str, stage: int, query: int, weights: np.ndarray) -> str:
    asked = read_query_set(run)
    assert asked is not None
    index, say = HeadIndex.of(run.vectors(stage), 12), Say.of(run.vectors(stage), 12)
    found = rank(way, Seen.of(index, asked.vectors[stage][query]), Heads(weights, say.weight), 1)
    return str(run.documents(["title"])["title"][int(found.docs[0])].as_py())


def test_two_ways_side_by_side(retrieved_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at(retrieved_cache, PAGE, monkeypatch, 120, stage="3", query="4")
    assert [heading.value for heading in app.subheader] == [
        "What they find",
        "How good that is on all queries",
        "Which heads can be pruned",
        "All ways, all heads",
        "What weights gain",
        "Export",
    ]
    run = Run(retrieved_cache, "demo")
    assert (app.selectbox(key="way").value, app.selectbox(key="other").value) == ("full", "split")
    cards = [element.proto.body for element in app.get("html") if "hs-cards" in element.proto.body]
    for body, way in zip(cards, ("full", "split"), strict=True):
        assert best_title(run, way, 3, 3, np.ones(12))[:40] in body
    assert "By all 20 queries" in shown(app)


def test_heads_of_the_address_count_and_other_ways_can_be_chosen(
    retrieved_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page_at(retrieved_cache, PAGE, monkeypatch, 120, mix="2-3,7*0.5")
    assert "Kept heads: 3 of 12" in shown(app)
    app.selectbox(key="other").set_value("fusion")
    app.segmented_control(key="task").set_value("topic match")
    app.run()
    assert not app.exception
    assert app.query_params["other"] == "fusion"
    assert app.query_params["task"] == "topic match"
    weights = np.zeros(12)
    weights[[1, 2, 6]] = 1, 1, 0.5
    cards = [element.proto.body for element in app.get("html") if "hs-cards" in element.proto.body]
    assert best_title(Run(retrieved_cache, "demo"), "fusion", 1, 0, weights)[:40] in cards[1]


def test_a_preset_sets_the_heads(retrieved_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at(retrieved_cache, PAGE, monkeypatch, 120)
    preset = app.selectbox(key="lab preset")
    assert {"All heads", "No head", "Best pruned, by full", "Learned weights"} <= set(preset.options)
    preset.set_value("No head").run()
    assert "Every head is switched off" in shown(app)
    assert app.query_params["mix"] == "none"
    app.selectbox(key="lab preset").set_value("Best pruned, by full").run()
    assert not app.exception
    assert "Every head is switched off" not in shown(app)
    assert app.selectbox(key="lab preset").value is None


def test_reliability_stands_below_each_head_and_is_a_preset(
    retrieved_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = read_tables(Run(retrieved_cache, "demo")).pick("example_match", stage=1)
    rates = np.array([row["rate"] for row in rows if row["head"]])
    app = page_at(retrieved_cache, PAGE, monkeypatch, 120)
    charts = [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]
    votes = [chart for chart in charts if chart["data"][0]["type"] == "heatmap"]
    assert len(votes) == 2
    for chart in votes:
        assert chart["layout"]["xaxis"]["ticktext"] == [f"{head}<br>{100 * r:.0f}" for head, r in enumerate(rates, 1)]
    app.selectbox(key="lab preset").set_value("By reliability").run()
    above = np.maximum(rates - rows[0]["chance"], 0)
    weights = parse_weights(app.query_params["mix"], 12)
    assert weights == pytest.approx(above / above.max(), abs=0.005)


@pytest.mark.parametrize("mix", ["99", "1*1e9", "<script>", "1-"])
def test_heads_that_are_not_here_are_left_out_with_a_notice(
    retrieved_cache: Path, monkeypatch: pytest.MonkeyPatch, mix: str
) -> None:
    app = page_at(retrieved_cache, PAGE, monkeypatch, 120, mix=mix)
    assert "Kept heads: 12 of 12" in shown(app)
    assert "mix" not in app.query_params
    assert "names heads that do not exist" in app.toast[0].value


def test_a_run_that_has_not_been_judged_can_be_asked_all_the_same(
    planted_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without labels and queries a document is the question, and the page says how figures are made."""
    app = page_at(planted_cache, PAGE, monkeypatch, 120, query="3", mix="1,3")
    assert "has vectors, but no measurements of retrieval yet" in shown(app)
    assert "python -m precompute retrieve planted" in shown(app)
    assert [heading.value for heading in app.subheader] == ["What they find", "Export"]
    assert "Kept heads: 2 of 4" in shown(app)


def test_without_a_run_there_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "There are no runs yet" in shown(page_at(tmp_path, PAGE, monkeypatch, 120))


def test_pruned_vectors_rank_as_the_lab_does(retrieved_cache: Path) -> None:
    import io

    import pyarrow.parquet as pq

    from pages.shared.data import RunState
    from pages.use.retrieval_lab.export import kept_heads, pruned_parquet

    run = Run(retrieved_cache, "demo")
    state = RunState(run, run.manifest())
    weights = np.zeros(12)
    weights[[0, 4, 11]] = 1, 2, 0.3
    kept = kept_heads(state, 3, weights, "full")
    table = pq.read_table(io.BytesIO(pruned_parquet(state, 3, kept)))
    vectors = np.stack(table["vector"].to_pylist())
    assert vectors.shape == (325, 3 * 32)
    asked = read_query_set(run)
    assert asked is not None
    query = asked.vectors[3][5]
    found = rank("full", Seen.of(HeadIndex.of(run.vectors(3), 12), query), Heads(weights, np.ones(12)), 10)
    products = vectors @ prune(query.reshape(1, -1), kept)[0]
    assert np.argsort(-products, kind="stable")[:10].tolist() == found.docs.tolist()
