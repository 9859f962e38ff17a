"""The Retrieval lab without a browser."""

from __future__ import annotations

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
from pages.shared.theme import head_colours, ink_on
from pages.use.retrieval_lab.figures import aspects_figure
from pages.use.retrieval_lab.state import SHOWN
from tests.support.apps import figures_of, page_at

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


def bodies(app: AppTest) -> list[str]:
    return [element.proto.body for element in app.get("html")]


def cards(app: AppTest) -> list[str]:
    """The results, first those on the left."""
    return [body for body in bodies(app) if body.startswith('<details class="hs-card">')]


def ndcg(run: Run, weights: np.ndarray) -> np.ndarray:
    """``[query]`` among the first 10 by the full embedding, worked out anew from the files."""
    asked = read_query_set(run)
    assert asked is not None
    index, found = HeadIndex.of(run.vectors(3), 12), []
    for query, relevant in zip(asked.vectors[3], asked.relevant, strict=True):
        docs = rank("full", Seen.of(index, query), Heads(weights, np.ones(12)), 10).docs
        gains = np.isin(docs, list(relevant)) / np.log2(np.arange(2, 12))
        found.append(gains.sum() / (1 / np.log2(np.arange(2, 2 + min(10, len(relevant))))).sum())
    return np.array(found)


def contrast(one: str, other: str) -> float:
    """WCAG 2's ratio."""

    def light(colour: str) -> float:
        channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = ((c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4) for c in channels)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    lighter, darker = sorted((light(one), light(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_two_ways_side_by_side(retrieved_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at(retrieved_cache, PAGE, monkeypatch, 120, query="4")
    assert app.segmented_control(key="stage").value == 3, "it begins with the model's own embedding"
    assert "stage" not in app.query_params
    run = Run(retrieved_cache, "demo")
    assert (app.selectbox(key="way").value, app.selectbox(key="other").value) == ("full", "split")
    for first, way in zip((0, SHOWN), ("full", "split"), strict=True):
        assert best_title(run, way, 3, 3, np.ones(12))[:40] in cards(app)[first]


@pytest.mark.parametrize(
    ("tab", "sections"),
    [
        ("results", ["What the kept heads find"]),
        (
            "metrics",
            [
                "How good they are on all queries",
                "Queries that ask for several documents",
                "All ways to rank, with all heads",
                "What weights gain",
            ],
        ),
        ("pruning", ["Which heads can be pruned", "How much each head is needed"]),
        ("export", ["Export"]),
    ],
)
def test_a_tab_is_in_the_address_and_only_its_sections_are_drawn(
    retrieved_cache: Path, monkeypatch: pytest.MonkeyPatch, tab: str, sections: list[str]
) -> None:
    app = page_at(retrieved_cache, PAGE, monkeypatch, 120, tab=tab)
    assert [heading.value for heading in app.subheader] == sections
    assert all(heading.proto.anchor for heading in app.subheader), "every section can be linked"
    assert all(chart.alt for chart in figures_of(app))


def test_metrics_are_explained_where_they_stand(retrieved_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = shown(page_at(retrieved_cache, PAGE, monkeypatch, 120, tab="metrics", k="5"))
    assert "Measured on all 20 queries" in said
    for name in ("recall@5", "topic recall@5", "all found@5", "weighted recall@5", "nDCG@5", "MRR@5"):
        assert f"<strong>{name}</strong><small" in said
    assert "Share of the relevant documents that are among the first 5." in said


def test_the_strip_has_the_metric_of_the_kept_heads_and_its_difference(
    retrieved_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, weights = Run(retrieved_cache, "demo"), np.ones(12)
    weights[[0, 6]] = 0
    app = page_at(retrieved_cache, PAGE, monkeypatch, 120, mix="2-6,8-12", tab="pruning")
    all_heads, kept = ndcg(run, np.ones(12)), ndcg(run, weights)
    strip = next(body for body in bodies(app) if 'class="hs-strip"' in body)
    assert f"nDCG@10 <b>{kept.mean():.3f}</b>" in strip
    change = f"{(kept - all_heads).mean():+.3f}".replace("-", "−")
    assert f"against all heads <b>{change}</b> <small>(95 % CI " in strip
    assert "kept heads <b>10 of 12</b>" in strip


def test_numbers_of_documents_asked_for_are_as_far_apart_as_they_are() -> None:
    row = {"value": 0.5, "low": 0.4, "high": 0.6, "queries": 3}
    drawn = aspects_figure([1, 5, 6, 10], {"full": [row] * 4}, "light", "recall@10")
    assert list(drawn.data[0].x) == [1, 5, 6, 10]
    assert drawn.layout.xaxis.type != "category"


def test_the_numbers_on_switches_can_be_read() -> None:
    for theme in ("light", "dark"):
        for heads, groups in ((12, 12), (32, 8), (9, 3)):
            for colour in head_colours(heads, groups, theme):
                assert contrast(colour, ink_on(colour)) >= 4.5


def test_heads_of_the_address_count_and_other_ways_can_be_chosen(
    retrieved_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page_at(retrieved_cache, PAGE, monkeypatch, 120, stage="1", mix="2-3,7*0.5")
    assert "Kept heads: 3 of 12" in shown(app)
    app.selectbox(key="other").set_value("fusion")
    app.segmented_control(key="task").set_value("topic match")
    app.run()
    assert not app.exception
    assert app.query_params["other"] == "fusion"
    assert app.query_params["task"] == "topic match"
    weights = np.zeros(12)
    weights[[1, 2, 6]] = 1, 1, 0.5
    assert best_title(Run(retrieved_cache, "demo"), "fusion", 1, 0, weights)[:40] in cards(app)[SHOWN]


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
    app = page_at(retrieved_cache, PAGE, monkeypatch, 120, stage="1")
    charts = [chart.json for chart in figures_of(app)]
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
    assert [heading.value for heading in app.subheader] == ["What the kept heads find"]
    assert "Kept heads: 2 of 4" in shown(app)
    app = page_at(planted_cache, PAGE, monkeypatch, 120, query="3", mix="1,3", tab="metrics")
    assert "has vectors, but no retrieval figures yet" in shown(app)
    assert "python -m precompute retrieve planted" in shown(app)


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
