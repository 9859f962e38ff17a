"""The Topic heat map without a browser: which cells it sends, what its choices and its links do, its empty states."""

from __future__ import annotations

import html
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streamlit.testing.v1 import AppTest

from core.analysis.heat_map import heat_map
from core.model.shape import ModelShape
from pages.explore.heat_map.sections import columns_by, group_rows
from pages.explore.heat_map.state import linked_topics, study_topics
from pages.shared.components.heatmap import Panel, Pick, Sheet, checked_pick
from pages.shared.figures.similarity import cell_colour, colour_limit, signed
from pages.shared.theme import DIVERGING, ink_on
from tests.support.apps import app_at, figures_of


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """The page on a cache, at an address."""

    def start(cache: Path, **address: str) -> AppTest:
        monkeypatch.setenv("HEADSCOPE_CACHE", str(cache))
        app = app_at("pages/explore/heat_map/page.py")
        for name, value in address.items():
            app.query_params[name] = value
        return app.run()

    return start


def said(app: AppTest) -> str:
    kinds = ("title", "subheader", "markdown", "caption", "info", "warning", "error", "code")
    parts = [str(element.value) for kind in kinds for element in app.get(kind)]
    return "\n".join([*parts, *(element.proto.body for element in app.get("html"))])


@dataclass(frozen=True)
class Sent:
    """What the browser gets: the message's JSON, and by panel its ``values[row, column]``."""

    told: dict
    titles: list[str]
    values: list[np.ndarray]
    message: bytes


def canvases(app: AppTest) -> list[Any]:
    return [element for element in app.get("bidi_component") if "heat_map" in element.proto.component_name]


def sent(app: AppTest) -> Sent:
    (element,) = canvases(app)
    mixed = element.proto.mixed
    told = json.loads(mixed.json)

    def column(name: str, field: str) -> np.ndarray | list[str]:
        (reference,) = told[name].values()
        return pa.ipc.open_stream(mixed.arrow_blobs[reference].data).read_all()[field]

    shape = (len(told["rows"]), told["columns"])
    values = [column(panel["values"], "value").to_numpy().view(np.float16).reshape(shape) for panel in told["panels"]]
    return Sent(told, column("titles", "title").to_pylist(), values, mixed.SerializeToString(deterministic=True))


@dataclass(frozen=True)
class Files:
    """The run as its files have it: ``own[stage][doc, 1 + head]``."""

    titles: list[str]
    topics: list[str]
    of: list[str]
    own: dict[int, np.ndarray]


@pytest.fixture(scope="module")
def files(analysed_cache: Path) -> Files:
    run = analysed_cache / "demo"
    table, topics = pq.read_table(run / "documents.parquet"), pq.read_table(run / "topics.parquet")["topic"].to_pylist()
    of = table["topic"].to_pylist()
    own = {}
    for stage in (1, 2, 3):
        values = np.array(pq.read_table(run / "similarity" / f"stage={stage}.parquet")["values"].to_pylist())
        values = values.reshape(len(of), -1, len(topics))
        own[stage] = np.array([values[doc, :, topics.index(topic)] for doc, topic in enumerate(of)])
    return Files(table["title"].to_pylist(), topics, of, own)


def in_order(files: Files, topic: str, stage: int, row: int) -> list[int]:
    docs = [doc for doc, own in enumerate(files.of) if own == topic]
    return sorted(docs, key=lambda doc: (-files.own[stage][doc, row], -files.own[stage][doc, 0], doc))


def test_the_study_s_picture_is_sent_cell_by_cell(
    open_page: Callable[..., AppTest], analysed_cache: Path, files: Files
) -> None:
    app = open_page(analysed_cache)
    assert not app.exception
    assert not app.toast
    got = sent(app)
    assert got.told["rows"] == ["full", *(f"head {head}" for head in range(1, 13))]
    assert got.told["blocks"] == files.topics[:8]  # all have 13 documents: the first eight
    assert got.told["starts"] == list(range(0, 104, 13))
    docs = [doc for topic in files.topics[:8] for doc in in_order(files, topic, 1, 0)]
    assert got.titles == [files.titles[doc][:120] for doc in docs]
    assert len(got.values) == 1
    np.testing.assert_array_equal(got.values[0], files.own[1][docs].T.astype(np.float16))
    assert (
        "104 documents: 8 topics, each with 13 documents. Each topic is sorted by the full embedding at stage 1"
        in said(app)
    )
    assert "Click a cell" in said(app)
    assert dict(app.query_params) == {}


def test_documents_can_be_compared_with_their_topics_examples(
    open_page: Callable[..., AppTest], analysed_cache: Path, files: Files
) -> None:
    got = sent(app := open_page(analysed_cache, by="examples"))
    assert dict(app.query_params) == {"by": "examples"}
    parts = [pq.read_table(path) for path in sorted((analysed_cache / "demo/heads/stage=1").glob("*.parquet"))]
    vectors = np.array([row for part in parts for row in part["vector"].to_pylist()], dtype=np.float64)
    centred = (vectors - vectors.mean(axis=0)).reshape(len(vectors), 12, 32)
    doc = files.titles.index(got.titles[0])
    others = [one for one, topic in enumerate(files.of) if topic == files.of[doc] and one != doc]

    def cosine(first: np.ndarray, second: np.ndarray) -> float:
        return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))

    mean = centred[others].mean(axis=0)
    expected = [cosine(centred[doc].ravel(), mean.ravel())]
    expected += [cosine(centred[doc, head], mean[head]) for head in range(12)]
    np.testing.assert_allclose(got.values[0][:, 0], expected, atol=2e-3)
    app = open_page(analysed_cache, by="examples", block="0")
    assert "13 documents, nearest to the topic's examples first, at stage 1" in said(app)


def test_stages_order_and_range_are_chosen(
    open_page: Callable[..., AppTest], analysed_cache: Path, files: Files
) -> None:
    app = open_page(analysed_cache)
    app.segmented_control(key="stage").set_value(2)
    app.selectbox(key="sort").select(5)
    app.toggle(key="stages").set_value(True)
    app.multiselect(key="topics").set_value([7, 3])
    app.run()
    assert not app.exception
    got = sent(app)
    docs = [doc for topic in (7, 3) for doc in in_order(files, files.topics[topic], 2, 5)]
    assert got.told["blocks"] == [files.topics[7], files.topics[3]]
    assert [panel["name"] for panel in got.told["panels"]] == [
        "Stage 1 attention",
        "Stage 2 projected",
        "Stage 3 output",
    ]
    for stage in (1, 2, 3):  # a document keeps its column in all stages
        np.testing.assert_array_equal(got.values[stage - 1], files.own[stage][docs].T.astype(np.float16))
    own = [panel["limit"] for panel in got.told["panels"]]
    assert len(set(own)) > 1
    app.toggle(key="range").set_value(True).run()
    assert [panel["limit"] for panel in sent(app).told["panels"]] == [max(own)] * 3
    assert dict(app.query_params) == {"stage": "2", "sort": "5", "stages": "1", "range": "1", "t": "7,3"}
    app.toggle(key="stages").set_value(False).run()
    assert [panel["limit"] for panel in sent(app).told["panels"]] == [max(own)]


def test_fewer_documents_a_topic(open_page: Callable[..., AppTest], analysed_cache: Path, tmp_path: Path) -> None:
    app = open_page(analysed_cache, size="20")
    assert sent(app).told["columns"] == 104  # no topic has more than 13
    assert app.selectbox(key="size").value == 20
    app.multiselect(key="topics").set_value([]).run()
    assert "Choose at least one topic" in said(app)
    assert not canvases(app)
    next(button for button in app.button if button.label == "All").click().run()
    assert sent(app).told["columns"] == 325  # all


def test_the_study_s_topics_and_how_many_documents_they_have(
    open_page: Callable[..., AppTest], analysed_cache: Path
) -> None:
    app = open_page(analysed_cache, t="20,3")
    next(button for button in app.button if button.label == "The study's 8").click().run()
    blocks = ["Business, Finance, Law", "Entertainment, Film, Theater, Music, Arts", "Places, Travel, Real Estate"]
    blocks += ["Food, Summer, Recipes", "Sports, Teams, Games, News", "Personal, Family, Leisure"]
    blocks += ["Fashion, Clothing, Accessories, Jewelry, Shopping", "Crime, Law, Police"]
    assert sent(app).told["blocks"] == blocks  # the first eight of its list of 25
    assert "up to 120 (largest topic: 13)" in app.selectbox(key="size").options
    assert "up to 20 (largest topic: 13)" in app.selectbox(key="size").options
    assert sent(app).told["groups"] == []  # every head has keys and values of its own


def test_rows_that_share_keys_and_values_are_bracketed() -> None:
    assert group_rows(ModelShape(layers=2, heads=6, kv_heads=2, hidden=24, head_dim=4)) == [(1, 3), (4, 6)]
    assert group_rows(ModelShape(layers=2, heads=6, kv_heads=1, hidden=24, head_dim=4)) == [(1, 6)]
    assert group_rows(ModelShape(layers=2, heads=6, kv_heads=6, hidden=24, head_dim=4)) == []


def test_the_study_s_topics_that_a_run_has() -> None:
    names = ("crime, law, police", "Poetry", "Business, Finance, Law", "Wildlife, Animals")
    assert study_topics(names, np.array([3, 9, 1, 0])) == [2, 0]  # in the study's order; the last has no documents


def test_a_link_opens_a_cell_s_document(open_page: Callable[..., AppTest], analysed_cache: Path, files: Files) -> None:
    doc = in_order(files, files.topics[3], 3, 0)[4]
    app = open_page(analysed_cache, stage="3", doc=str(doc + 1), head="7", t="5,3")
    assert not app.exception
    assert not app.toast
    assert f"Document {doc + 1} in head 7" in said(app)
    assert html.escape(files.titles[doc], quote=True) in said(app)
    assert sent(app).told["mark"] == {"panel": 0, "row": 7, "column": 13 + 4}
    (chart,) = figures_of(app)
    texts = [note["text"] for note in chart.json["layout"]["annotations"]]
    assert texts == [signed(files.own[stage][doc, row]) for row in range(13) for stage in (1, 2, 3)]
    assert "Nearest in head 7, at stage 3 output" in said(app)
    (cards,) = [e.proto.body for e in app.get("html") if 'class="hs-cards"' in e.proto.body]
    shown = [html.unescape(title) for title in re.findall(r'hs-title">(.*?)</span>', cards)]
    assert [title[:40] for title in shown] == [title[:40] for title in nearest(analysed_cache, files, 3, 7, doc)]


def nearest(cache: Path, files: Files, stage: int, head: int, doc: int) -> list[str]:
    table = pq.read_table(cache / "demo" / "heads" / f"stage={stage}")
    rows = np.array(table["vector"].to_pylist(), dtype=np.float64).reshape(len(files.titles), 12, -1)[:, head - 1]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    order = np.argsort(-(rows @ rows[doc]), kind="stable")
    return [files.titles[other] for other in order if other != doc][:6]


def test_another_document_sends_no_cells_again(open_page: Callable[..., AppTest], analysed_cache: Path) -> None:
    app = open_page(analysed_cache)
    before = sent(app).message
    app.session_state["doc"], app.session_state["head"] = 40, 2
    app.run()
    assert "Document 40 in head 2" in said(app)
    assert dict(app.query_params) == {"doc": "40", "head": "2"}
    assert sent(app).message == before  # Streamlit sends an equal message by its hash
    app.selectbox(key="sort").select(1).run()
    assert sent(app).message != before


def test_a_topic_s_documents_and_a_head_s_link(
    open_page: Callable[..., AppTest], analysed_cache: Path, files: Files
) -> None:
    app = open_page(analysed_cache, block="4", stage="2")
    docs = in_order(files, files.topics[4], 2, 0)
    assert app.dataframe[0].value["document"].tolist() == [doc + 1 for doc in docs]
    assert app.dataframe[0].value["title"].tolist() == [files.titles[doc] for doc in docs]
    app = open_page(analysed_cache, head="9")
    (link,) = app.get("page_link")
    assert (link.proto.page, link.proto.query_string) == ("head_profile", "head=9")
    app.button[-1].click().run()
    assert app.selectbox(key="sort").value == 9


@pytest.mark.parametrize("value", ["../../etc", "99999", "-7", "<script>alert(1)</script>", "", "٣"])
@pytest.mark.parametrize("name", ["t", "doc", "head", "panel", "block", "size", "sort", "stages", "range", "stage"])
def test_a_hostile_link_falls_back_with_a_notice(
    open_page: Callable[..., AppTest], analysed_cache: Path, name: str, value: str
) -> None:
    app = open_page(analysed_cache, **{name: value})
    assert not app.exception
    assert len(app.toast) == 1
    wanted = "a topic that does not exist" if name == "t" else f"unknown value for '{name}'"
    assert wanted in app.toast[0].value
    assert sent(app).told["columns"] == 104
    assert "script" not in said(app)
    assert name not in app.query_params


def test_known_topics_of_a_hostile_link_are_kept(open_page: Callable[..., AppTest], analysed_cache: Path) -> None:
    app = open_page(analysed_cache, t="3,x,3,99,7")
    assert app.multiselect(key="topics").value == [3, 7]
    assert len(app.toast) == 1
    assert not open_page(analysed_cache, t="3,7").toast


def test_empty_states(
    open_page: Callable[..., AppTest], analysed_cache: Path, demo_cache: Path, bare_cache: Path, tmp_path: Path
) -> None:
    expected = {
        bare_cache: "needs documents with a topic",
        tmp_path / "nothing": "There are no runs yet",
        demo_cache: "python -m precompute analyse demo",
    }
    manifest = json.loads((demo_cache / "demo" / "manifest.json").read_text())
    manifest["steps"]["embed"]["state"] = "running"
    for name, text, sentence in (("half", json.dumps(manifest), "was interrupted"), ("torn", "{", "is damaged")):
        (tmp_path / name / name).mkdir(parents=True)
        (tmp_path / name / name / "manifest.json").write_text(text)
        expected[tmp_path / name] = sentence
    shutil.copytree(analysed_cache / "demo", tmp_path / "gone" / "demo")
    (tmp_path / "gone" / "demo" / "similarity" / "stage=1.parquet").unlink()
    expected[tmp_path / "gone"] = "stage=1"
    for cache, sentence in expected.items():
        app = open_page(cache)
        assert not app.exception
        assert sentence in said(app).replace("\\", "")
        assert not canvases(app)


def test_columns_stay_in_their_blocks() -> None:
    own = np.array([[0.1, 5], [0.3, 6], [0.2, 7], [0.9, 1], [0.8, 2]], dtype=np.float32)
    cells = heat_map(own, np.array([0, 0, 0, 1, 1]), [1, 0])
    assert cells.docs.tolist() == [3, 4, 1, 2, 0]
    assert columns_by(cells, 0).tolist() == [3, 4, 1, 2, 0]
    assert columns_by(cells, 1).tolist() == [4, 3, 2, 1, 0]


def test_the_scale_s_end() -> None:
    assert colour_limit(np.zeros((2, 2))) == 0.05
    assert colour_limit(np.full((2, 2), -0.6)) == 0.6
    assert colour_limit(np.full((2, 2), 0.61)) == 0.65
    assert colour_limit(np.r_[np.full(999, 0.2), 1.0]) == 0.2  # a single strong cell does not pale the others


def test_topics_of_a_link() -> None:
    assert linked_topics("0,3,7", 8).chosen == (0, 3, 7)
    assert not linked_topics(" 3 ,3", 8).unknown
    for text in ("8", "-1", "1e1", "0x1", "", ",", "9" * 5000, "²"):
        assert linked_topics(text, 8) == linked_topics("no", 8)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"kind": "cell", "panel": 0, "row": 2, "column": 3}, Pick("cell", 0, 2, 3)),
        ({"kind": "row", "panel": 0, "row": 0}, Pick("row")),
        ({"kind": "topic", "block": 1}, Pick("topic", block=1)),
        ({"kind": "cell", "panel": 0, "row": 3, "column": 3}, None),
        ({"kind": "cell", "panel": 0, "row": 2, "column": 4}, None),
        ({"kind": "cell", "panel": 1, "row": 2, "column": 3}, None),
        ({"kind": "cell", "panel": 0, "row": -1, "column": 3}, None),
        ({"kind": "cell", "panel": 0, "row": True, "column": 3}, None),
        ({"kind": "cell", "panel": 0, "row": 1.0, "column": 3}, None),
        ({"kind": "topic", "block": 2}, None),
        ({"kind": ["cell"], "panel": 0, "row": 2, "column": 3}, None),
        ({"kind": "else"}, None),
    ],
)
def test_only_a_place_of_this_sheet_is_picked(given: dict, wanted: Pick | None) -> None:
    panels = [Panel("one", np.zeros((3, 4)), 1.0)]
    sheet = Sheet("v", "", panels, ["full", "head 1", "head 2"], ["a", "b"], [0, 2], pa.array(list("wxyz")))
    assert checked_pick({**given, "version": "v"}, sheet) == wanted
    assert checked_pick({**given, "version": "of before"}, sheet) is None
    assert checked_pick("cell", sheet) is None


@pytest.mark.parametrize("look", ["light", "dark"])
def test_numbers_on_cells_can_be_read(look: str) -> None:
    def luminance(colour: np.ndarray) -> float:
        linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    def rgb(text: str) -> np.ndarray:
        return np.array([int(text[at : at + 2], 16) for at in (1, 3, 5)]) / 255

    stops = DIVERGING[look]
    for share in np.linspace(-1, 1, 201):
        cell = np.array(
            [np.interp((share + 1) / 2, [a for a, _ in stops], [rgb(c)[i] for _, c in stops]) for i in range(3)]
        )
        pair = sorted([luminance(cell), luminance(rgb(ink_on(cell_colour(float(share), look))))])
        assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 4.5
    assert [signed(value) for value in (0.414, -0.2, -0.001)] == ["+0.41", "−0.20", "0.00"]
