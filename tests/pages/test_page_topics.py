"""The page Topics without a browser: what it says in each of its states, against figures worked out from the files."""

from __future__ import annotations

import base64
import html
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import cohen_kappa_score, roc_auc_score
from streamlit.testing.v1 import AppTest

from core.analysis.merging import suggest_merges, topic_similarity
from core.analysis.report import topic_merges
from core.analysis.topics import merged_into
from core.model.shape import ModelShape
from core.runs.labels import CIRCULAR_NOTE
from core.runs.results import read_analysis, read_labels, read_similarity, read_topics
from core.runs.run import Run
from pages.shared.text import plain, short_names
from pages.understand.topics.figures import confusion_figure, counts_figure, map_figure, nearest_figure
from pages.understand.topics.sections import same_for_all
from precompute.steps.analyse import step as analyse
from precompute.steps.analyse.step import AnalyseConfig
from precompute.steps.label import step as label_step
from precompute.steps.label.config import LabelConfig
from tests.support.apps import figures_of
from tests.support.synthetic import PlantedTopics, write_run

ROOT = Path(__file__).resolve().parents[2]
NASTY = '<img src=x onerror="alert(1)"> **bold** [link](javascript:alert(1)) $x$'
SHAPE = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)
TOPICS = ("rivers", "engines", "poems", NASTY)
DOCS = 60
LABELS: list[str | None] = [None if doc % 10 == 9 else TOPICS[doc % 4] for doc in range(DOCS)]
PLANTED = {
    stage: dict(zip(TOPICS, np.random.default_rng(stage).normal(size=(4, 32)).astype(np.float32), strict=True))
    for stage in (1, 2, 3)
}


def vectors(stage: int, first: int, count: int) -> np.ndarray:
    """A third of the documents is nearer to the next topic than to the own one, the first by far the most."""
    chance = np.random.default_rng([stage, 3])
    rows = chance.normal(size=(DOCS, 32)) * 0.2
    for doc in range(DOCS):
        shift = 1 if doc % 3 == 0 else 0
        rows[doc] += PLANTED[stage][TOPICS[(doc % 4 + shift) % 4]] * (1.0 if doc else 30.0)
    return rows[first : first + count]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """A run of hostile titles whose figures are there, in a cache of its own."""

    def build(name: str, labels: Sequence[str | None] = LABELS, planted: dict[int, Any] = PLANTED) -> Run:
        run = write_run(tmp_path_factory.mktemp(name), name, SHAPE, vectors, labels)
        analyse.run(AnalyseConfig(run.cache, name, model=PlantedTopics(SHAPE, planted)))
        table = pq.read_table(run.documents_path)
        titles = pa.array([f"{NASTY} {doc}" for doc in range(DOCS)])
        place = table.schema.get_field_index("title")
        pq.write_table(table.set_column(place, table.schema.field("title"), titles), run.documents_path)
        return run

    return build


@pytest.fixture(scope="module")
def run(make: Callable[..., Run]) -> Run:
    return make("planted")


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., AppTest]]:
    def start(cache: Path, **address: str) -> AppTest:
        monkeypatch.setenv("HEADSCOPE_CACHE", str(cache))
        app = AppTest.from_file(str(ROOT / "pages" / "understand" / "topics" / "page.py"), default_timeout=60)
        for name, value in address.items():
            app.query_params[name] = value
        return app.run()

    return start


def said(app: AppTest) -> str:
    """All that stands on the page, HTML included."""
    kinds = ("title", "subheader", "markdown", "caption", "info", "success", "warning", "error")
    parts = [str(element.value) for kind in kinds for element in app.get(kind)]
    return "\n".join([*parts, *(element.proto.body for element in app.get("html"))])


def figures(app: AppTest) -> dict[str, Any]:
    """The Plotly figures by what is drawn first in them."""
    drawn = [element.json for element in figures_of(app)]
    return {f"{number} {figure['data'][0]['type']}": figure for number, figure in enumerate(drawn)}


def mismatches(run: Run, stage: int) -> list[dict[str, Any]]:
    """Worked out anew from the similarities: the full embedding's nearest topic against the label."""
    names = list(read_topics(run).names)
    values = np.concatenate(list(read_similarity(run, stage, len(names))))[:, 0].astype(np.float32)
    found = []
    for doc, label in enumerate(LABELS):
        if label is not None and values[doc].argmax() != names.index(label):
            margin = values[doc].max() - values[doc, names.index(label)]
            nearest = names[int(values[doc].argmax())]
            found.append({"doc": doc, "label": label, "nearest": nearest, "margin": float(margin)})
    return sorted(found, key=lambda row: -row["margin"])


SECTIONS = {
    "match": ["Is a document's topic the nearest one?"],
    "heads": ["Which heads follow a topic?", "Its documents"],
    "disagreements": ["Where label and embedding disagree"],
    "topics": ["How similar are the topics to each other?", "From 39 topics to 25"],
    "labels": ["Documents per topic", "Where do the labels come from?"],
}


@pytest.mark.parametrize("tab", SECTIONS)
def test_each_tab_has_its_sections_an_anchor_each_and_is_in_the_address(
    open_page: Callable[..., AppTest], run: Run, tab: str
) -> None:
    app = open_page(run.cache, tab=tab)
    assert not app.exception
    assert not app.toast
    assert [heading.value for heading in app.subheader] == SECTIONS[tab]
    assert all(heading.proto.anchor for heading in app.subheader)
    assert all(chart.alt for chart in figures_of(app))
    assert app.query_params.get("tab") == (None if tab == "match" else tab)


@pytest.mark.parametrize(
    ("name", "value", "tab"),
    [("groups", "10", "topics"), ("label", "poems", "disagreements"), ("topic", "rivers", "heads")],
)
def test_a_link_from_before_there_were_tabs_opens_the_tab_of_its_choice(
    open_page: Callable[..., AppTest], run: Run, name: str, value: str, tab: str
) -> None:
    app = open_page(run.cache, **{name: value})
    assert [heading.value for heading in app.subheader] == SECTIONS[tab]
    assert dict(app.query_params) == {name: value, "tab": tab}
    app = open_page(run.cache, **{name: value, "tab": "match"})  # a reader who has gone back to the first tab
    assert [heading.value for heading in app.subheader] == SECTIONS["match"]
    assert dict(app.query_params) == {name: value, "tab": "match"}


def test_topic_match_has_the_runs_figures(open_page: Callable[..., AppTest], run: Run) -> None:
    app = open_page(run.cache)
    wrong = mismatches(run, 1)
    labelled = sum(label is not None for label in LABELS)
    assert 0 < len(wrong) < labelled
    assert f"**{100 * (1 - len(wrong) / labelled):.1f}\u00a0%** of {labelled} documents" in said(app)
    labels = said(open_page(run.cache, tab="labels"))
    assert f"**{labelled} documents have** one of 4 topics; **{DOCS - labelled}** have no label" in labels
    heads = app.dataframe[0].value
    assert list(heads["head"]) == [1, 2, 3, 4]
    wanted = {"stage": 1, "slicing": "heads", "method": "head", "within": 1}
    rates = [row for row in read_analysis(run, "topic_match").to_pylist() if wanted.items() <= row.items()]
    assert heads["top 1"].tolist() == pytest.approx([100 * row["rate"] for row in rates])
    assert list(heads) == ["head", "top 1", "interval 1"]
    assert plain("Not shown: top 5 and 10. With 4 topics these are 100\u00a0% by construction.") in said(app)


def test_the_list_has_the_documents_that_disagree_largest_margin_first(
    open_page: Callable[..., AppTest], run: Run
) -> None:
    app, expected = open_page(run.cache, stage="3", tab="disagreements"), mismatches(run, 3)
    table = app.dataframe[0].value
    assert table["label"].tolist() == [row["label"] for row in expected]
    assert table["nearest"].tolist() == [row["nearest"] for row in expected]
    assert table["margin"].tolist() == pytest.approx([row["margin"] for row in expected], abs=2e-3)
    assert app.selectbox(key="mismatch").value == 1 + expected[0]["doc"]
    assert f"Document {expected[0]['doc']}." in said(app)


def test_a_topic_named_all_is_a_topic(open_page: Callable[..., AppTest], make: Callable[..., Run]) -> None:
    def named(name: str | None) -> str | None:
        return "all" if name == "poems" else name

    planted = {stage: {named(name): vector for name, vector in topics.items()} for stage, topics in PLANTED.items()}
    own = make("all", [named(label) for label in LABELS], planted)
    app = open_page(own.cache, tab="disagreements")
    every = app.dataframe[0].value["label"].tolist()
    assert len(set(every)) == 4
    assert app.selectbox(key="label").options[0] == f"All labels ({len(every)})"
    app.selectbox(key="label").select("all").run()
    assert app.dataframe[0].value["label"].tolist() == ["all"] * every.count("all")
    assert app.query_params["label"] == "all"
    linked = open_page(own.cache, label="all")
    assert linked.dataframe[0].value["label"].tolist() == ["all"] * every.count("all")
    assert not linked.toast


def test_a_link_to_all_labels_still_opens_them_where_no_topic_has_that_name(
    open_page: Callable[..., AppTest], run: Run
) -> None:
    app = open_page(run.cache, label="all")
    assert len(app.dataframe[0].value) == len(mismatches(run, 1))
    assert not app.toast
    assert "label" not in app.query_params


def test_a_label_and_another_document_are_chosen_and_are_in_the_address(
    open_page: Callable[..., AppTest], run: Run
) -> None:
    app = open_page(run.cache, tab="disagreements")
    app.selectbox(key="label").select("poems").run()
    expected = [row for row in mismatches(run, 1) if row["label"] == "poems"]
    assert len(expected) > 1
    assert [int(option.split(" · ")[0]) - 1 for option in app.selectbox(key="mismatch").options] == [
        row["doc"] for row in expected
    ]
    app.selectbox(key="mismatch").select(1 + expected[1]["doc"]).run()
    assert not app.exception
    assert f"Document {expected[1]['doc']}." in said(app)
    chosen = {"label": "poems", "mismatch": str(1 + expected[1]["doc"])}
    assert dict(app.query_params) == {**chosen, "tab": "disagreements"}
    linked = open_page(run.cache, label="poems", mismatch=str(1 + expected[1]["doc"]))
    assert f"Document {expected[1]['doc']}." in said(linked)
    assert not linked.toast


def test_the_bars_give_the_chosen_documents_similarities(open_page: Callable[..., AppTest], run: Run) -> None:
    app, worst = open_page(run.cache, tab="disagreements"), mismatches(run, 1)[0]
    names = list(read_topics(run).names)
    values = next(read_similarity(run, 1, len(names)))[worst["doc"], 0].astype(np.float32)
    bars = next(figure for kind, figure in figures(app).items() if kind.endswith("bar"))["data"][0]
    shown = np.frombuffer(base64.b64decode(bars["x"]["bdata"]), dtype=bars["x"]["dtype"])
    assert shown.tolist() == pytest.approx(sorted(values.tolist(), reverse=True))
    assert bars["y"][0].startswith("1. ")


def test_the_threshold_merges_further(open_page: Callable[..., AppTest], run: Run) -> None:
    app = open_page(run.cache, tab="topics")
    assert app.select_slider(key="groups").value == 25
    assert {metric.label: metric.value for metric in app.metric}["Adjusted Rand index"] == (
        f"{topic_merges(read_topics(run, original=True).vectors[1], 1).agreement.index:.2f}".replace("-", "−")
    )
    app.select_slider(key="groups").set_value(10).run()
    cosine = topic_similarity(read_topics(run, original=True).vectors[1])
    group = suggest_merges(cosine, groups=10).group.tolist()
    theirs = [merged_into()[name] for name in read_topics(run, original=True).names]
    pairs = [(one, other) for one in range(39) for other in range(one)]
    here, there = ({pair for pair in pairs if by[pair[0]] == by[pair[1]]} for by in (group, theirs))
    values = {metric.label: metric.value for metric in app.metric}
    assert values["Pairs in both"] == str(len(here & there))
    assert values["Only here"] == str(len(here - there))
    assert values["Only in the study"] == str(len(there - here))
    assert len(app.dataframe[0].value) == len(here | there)
    assert dict(app.query_params) == {"groups": "10", "tab": "topics"}


def test_the_study_is_marked_at_stage_3_alone(open_page: Callable[..., AppTest], run: Run) -> None:
    for stage, marks in (("1", 0), ("3", 1)):  # of four topics only the nearest one can be compared
        figure = next(iter(figures(open_page(run.cache, stage=stage)).values()))
        assert sum(trace["name"] == "the study" for trace in figure["data"]) == marks


@pytest.mark.parametrize("name", ["stage", "label", "mismatch", "groups", "topic", "tab"])
@pytest.mark.parametrize("value", ["../../etc", "99999999999999999999", "<script>"])
def test_a_hostile_link_falls_back_with_a_notice(
    open_page: Callable[..., AppTest], run: Run, name: str, value: str
) -> None:
    app = open_page(run.cache, **{name: value})
    assert not app.exception
    assert len(app.toast) == 1
    assert app.subheader


@pytest.mark.parametrize("tab", ["heads", "disagreements", "topics"])
def test_hostile_titles_and_topics_are_shown_not_obeyed(open_page: Callable[..., AppTest], run: Run, tab: str) -> None:
    app = open_page(run.cache, tab=tab, **({"topic": NASTY} if tab == "heads" else {}))
    assert not app.exception
    written = "\n".join(element.proto.body for element in app.get("html"))
    assert tab == "topics" or "&lt;img src=x onerror=&quot;" in written
    assert "<img" not in written
    read = "\n".join(str(element.value) for kind in ("markdown", "caption") for element in app.get(kind))
    assert tab == "heads" or r"\<img" in read
    assert not re.search(r"(?<!\\)(<img|\[link\]|\*\*bold|\$x)", read)
    drawn = json.dumps(figures(app))
    assert tab == "heads" or "&lt;img" in drawn
    assert "<img" not in drawn


def test_without_labels_the_topics_themselves_remain(
    open_page: Callable[..., AppTest], make: Callable[..., Run]
) -> None:
    cache = make("bare", [None] * DOCS).cache
    for tab in ("match", "heads", "disagreements", "labels"):
        app = open_page(cache, tab=tab)
        assert not app.exception
        assert len([info for info in app.info if "needs documents with a topic" in info.value]) == 1
    app = open_page(cache, tab="topics")
    assert not app.exception
    assert [kind.split()[1] for kind in figures(app)] == ["heatmap"]
    assert app.select_slider(key="groups").value == 25


def test_labels_that_all_agree(open_page: Callable[..., AppTest], make: Callable[..., Run]) -> None:
    right = [TOPICS[(doc % 4 + (1 if doc % 3 == 0 else 0)) % 4] for doc in range(DOCS)]
    app = open_page(make("agreeing", right).cache, tab="disagreements")
    assert not app.exception
    assert "the nearest topic of every labelled document is its label" in said(app)


def test_no_run_and_a_run_without_figures(open_page: Callable[..., AppTest], tmp_path: Path) -> None:
    app = open_page(tmp_path / "nothing")
    assert not app.exception
    assert "There are no runs yet" in said(app)
    write_run(tmp_path / "cache", "fresh", SHAPE, vectors, LABELS)
    app = open_page(tmp_path / "cache")
    assert not app.exception
    assert "no figures yet" in said(app)
    assert [code.value for code in app.code] == ["python -m precompute analyse fresh"]


@pytest.mark.parametrize(
    ("file", "left"),
    [("analysis/mismatches.parquet", True), ("similarity/stage=1.parquet", True), ("topics.parquet", False)],
)
def test_a_missing_file_costs_its_own_section(
    open_page: Callable[..., AppTest], run: Run, tmp_path: Path, file: str, left: bool
) -> None:
    shutil.copytree(run.folder, tmp_path / "planted")
    (tmp_path / "planted" / file).unlink()
    app = open_page(tmp_path, tab="disagreements")
    assert not app.exception
    assert app.error
    assert all("Rebuild it with" in error.value.replace("\\", "") for error in app.error)
    others = open_page(tmp_path, tab="topics")
    assert not others.exception
    assert bool(others.error) != left


# From a topic to its heads


def test_a_topics_heads_are_ranked_by_how_well_they_set_its_documents_apart(
    open_page: Callable[..., AppTest], run: Run
) -> None:
    app = open_page(run.cache, tab="heads", topic="engines", stage="2")
    assert app.selectbox(key="topic").value == "engines"
    names = list(read_topics(run).names)
    values = np.concatenate(list(read_similarity(run, 2, len(names))))[:, :, names.index("engines")].astype(np.float64)
    known = np.array([label is not None for label in LABELS])
    mine = np.array([label == "engines" for label in LABELS])[known]
    wanted = {f"head {head}": roc_auc_score(mine, values[known, head]) for head in range(1, 5)}
    drawn = next(iter(figures(app).values()))
    shown = {
        point[0]: x
        for trace in drawn["data"]
        if "customdata" in trace
        for point, x in zip(trace["customdata"], _numbers(trace["x"]), strict=True)
    }
    assert {name: shown[name] for name in wanted} == pytest.approx(wanted, abs=5e-3)  # they are stored in float16
    assert list(drawn["layout"]["yaxis"]["ticktext"]) == [
        "full embedding",
        *sorted(wanted, key=lambda one: -wanted[one]),
    ]
    best = max(wanted, key=wanted.__getitem__)
    count = sum(label == "engines" for label in LABELS)
    assert f"6 of {count}, most similar to the topic's name in {best} first" in said(app)


def test_another_topic_is_chosen_and_is_in_the_address(open_page: Callable[..., AppTest], run: Run) -> None:
    app = open_page(run.cache, tab="heads")
    app.selectbox(key="topic").select("rivers").run()
    assert not app.exception
    assert dict(app.query_params) == {"tab": "heads", "topic": "rivers"}


def _numbers(values: Any) -> list[float]:
    """As Plotly sends them: a list, or an array in base64."""
    if isinstance(values, list):
        return values
    return np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"]).tolist()


# Where labels come from


@pytest.fixture(scope="module")
def two_sources(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Labelled by the corpus, then zero-shot, and analysed with the latter."""
    run = write_run(tmp_path_factory.mktemp("two"), "two", SHAPE, vectors, LABELS)
    topics = run.cache / "topics.txt"
    topics.write_text("\n".join(TOPICS), encoding="utf-8")
    model = PlantedTopics(SHAPE, PLANTED)
    label_step.run(LabelConfig(run.cache, "two", "zero-shot", topics=str(topics), model=model))
    analyse.run(AnalyseConfig(run.cache, "two", model=model))
    return run


def test_a_run_with_its_own_labels_names_them_and_is_not_called_circular(
    open_page: Callable[..., AppTest], run: Run
) -> None:
    app = open_page(run.cache, tab="labels")
    assert r"Active: **column\: the corpus's own topics**." in said(app)
    assert "ircular" not in said(app)
    assert "A second source shows how reliable the labels are" in said(app)


def test_labels_that_the_embedding_made_are_called_circular_beside_topic_match(
    open_page: Callable[..., AppTest], two_sources: Run
) -> None:
    app = open_page(two_sources.cache, stage="3")
    assert not app.exception
    (warning,) = app.warning
    assert warning.value == plain(CIRCULAR_NOTE)
    (warning,) = open_page(two_sources.cache, stage="3", tab="heads").warning
    assert warning.value == plain(CIRCULAR_NOTE)
    app = open_page(two_sources.cache, stage="3", tab="disagreements")
    assert "the nearest topic of every labelled document is its label" in said(app)  # which is why
    app = open_page(two_sources.cache, stage="3", tab="labels")
    assert r"Active: **zero\-shot\: the nearest topic embedding**. :orange-badge[circular]" in said(app)


def test_a_source_that_gives_one_topic_to_everything_has_no_kappa(
    open_page: Callable[..., AppTest], tmp_path: Path
) -> None:
    write_run(tmp_path, "two", SHAPE, vectors, LABELS)
    path = tmp_path / "constant.csv"
    path.write_text("id,topic\n" + "".join(f"d{doc},{TOPICS[0]}\n" for doc in range(len(LABELS))), encoding="utf-8")
    model = PlantedTopics(SHAPE, PLANTED)
    label_step.run(LabelConfig(tmp_path, "two", "file", file=path))
    label_step.run(LabelConfig(tmp_path, "two", "column"))
    analyse.run(AnalyseConfig(tmp_path, "two", model=model))
    app = open_page(tmp_path, tab="labels")
    metrics = {metric.label: metric.value for metric in app.metric}
    assert metrics["Cohen's kappa"] == "–"
    assert "95 % CI" not in metrics
    assert "kappa is undefined, because file gave all of them one topic" in said(app)


def test_two_sources_are_compared_with_kappa_and_a_confusion(
    open_page: Callable[..., AppTest], two_sources: Run
) -> None:
    app = open_page(two_sources.cache, tab="labels")
    # Labelled by both are the 54 with a label of their own; a third of all lies at the next topic, 18 of these.
    own = [name for name in LABELS if name is not None]
    zero = read_labels(two_sources, "zero-shot")["topic"].to_pylist()
    both = [(name, other) for name, other in zip(LABELS, zero, strict=True) if name is not None]
    same = sum(name == other for name, other in both) / len(both)
    assert len(own) == len(both) == 54
    assert same == 36 / 54
    kappa = cohen_kappa_score(*zip(*both, strict=True))
    metrics = {metric.label: metric.value for metric in app.metric}
    assert metrics["Same topic"] == "66.7\u00a0%"
    assert metrics["Cohen's kappa"] == f"{kappa:.2f}"
    assert metrics["Labelled by both"] == "54"
    low, high = map(float, metrics["95 % CI"].split(" to "))
    assert low < kappa < high
    assert r"0 labelled only by column, 6 only by zero\-shot, 0 by neither" in said(app)
    drawn = list(figures(app).values())[-1]["data"][0]
    assert drawn["type"] == "heatmap"
    counted = Counter(both)
    cells = [cell for row in drawn["customdata"] for cell in row]
    assert {(html.unescape(a), html.unescape(b)): count for a, b, count in cells if count} == dict(counted)
    table = app.dataframe[-1].value
    assert table["source"].tolist() == ["column", "zero-shot"]
    assert table["active"].tolist() == [False, True]
    assert table["labelled"].tolist() == [54, 60]
    assert table["unlabelled"].tolist() == [6, 0]


def test_documents_without_a_label_are_listed_by_reason(
    open_page: Callable[..., AppTest], two_sources: Run, tmp_path: Path
) -> None:
    shutil.copytree(two_sources.folder, tmp_path / "two")
    label_step.run(LabelConfig(tmp_path, "two", "column"))
    app = open_page(tmp_path)
    assert "has labels that differ from those its figures were computed with" in said(app).replace("\\", "")
    assert [code.value for code in app.code] == ["python -m precompute analyse two"]
    analyse.run(AnalyseConfig(tmp_path, "two", model=PlantedTopics(SHAPE, PLANTED)))
    app = open_page(tmp_path, tab="labels")
    assert [expander.label for expander in app.expander] == ["Why 6 documents have no label"]
    reasons = app.dataframe[-1].value
    assert reasons.to_dict("records") == [{"documents": 6, "reason": "the corpus has no topic for it"}]
    assert not app.warning


def test_a_damaged_file_of_labels_costs_its_own_section(
    open_page: Callable[..., AppTest], two_sources: Run, tmp_path: Path
) -> None:
    shutil.copytree(two_sources.folder, tmp_path / "two")
    (tmp_path / "two" / "labels" / "column.parquet").write_bytes(b"nothing")
    app = open_page(tmp_path, tab="labels")
    assert not app.exception
    (error,) = app.error
    assert "label two --labels column --again" in error.value.replace("\\", "")
    assert len(app.subheader) == 2


def test_the_confusion_is_coloured_by_shares_of_its_rows() -> None:
    drawn = confusion_figure(["a", "<b>"], np.array([[3, 1], [0, 0]]), ("one", "other"), "light").data[0]
    assert drawn.z[0].tolist() == [75, 25]
    assert np.isnan(drawn.z[1]).all()
    assert list(drawn.customdata[0][1]) == ["a", "&lt;b&gt;", 1]


def test_long_and_equal_beginnings_stay_apart() -> None:
    names = ["a very long name of a topic, one", "a very long name of a topic, two", "x" * 80, "<b>"]
    short = short_names(names, 20)
    assert len(set(short)) == 4
    assert max(map(len, short)) <= 24
    assert short[3] == "&lt;b&gt;"


def test_the_map_is_ordered_and_its_diagonal_blank() -> None:
    cosine = np.array([[1, 0.1, 0.9], [0.1, 1, 0.2], [0.9, 0.2, 1]])
    drawn = map_figure(["a", "b", "c"], cosine, np.array([1, 0, 2]), "light").data[0]
    assert list(drawn.y) == ["1 b", "2 a", "3 c"]
    assert list(drawn.x) == ["1", "2", "3"]  # upright
    assert np.isnan(np.diag(drawn.z)).all()
    assert drawn.z[1, 2] == 0.9
    assert list(drawn.customdata[1][2]) == ["a", "c"]


def test_a_topic_without_documents_says_so() -> None:
    drawn = counts_figure(["many", "none"], np.array([1_200, 0]), "dark").data[0]
    assert list(drawn.text) == ["1,200", "no document"]


def test_nearest_and_label_have_colours_of_their_own() -> None:
    values = np.array([0.5, 0.3, -0.1], dtype=np.float32)
    colours = nearest_figure(["a", "b", "c"], values, [1, 2, 3], 2, "light").data[0].marker.color
    assert len(set(colours)) == 3


def test_topics_of_one_size_are_a_sentence_and_not_equal_bars() -> None:
    assert same_for_all(np.array([3, 3, 3])) == 3
    assert same_for_all(np.array([3, 3, 0])) is None
    assert same_for_all(np.array([], dtype=int)) is None
