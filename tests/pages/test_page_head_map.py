"""The page Head map without a browser, on a map laid out by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streamlit.testing.v1 import AppTest

from core.model.shape import ModelShape
from core.runs.manifest import Step
from core.runs.parts import write_table
from core.runs.run import Run
from core.runs.schema import MAP
from core.search.index import scan
from pages.shared.components.map_data import inside, read_area
from pages.shared.heads_in_address import format_heads, parse_heads
from pages.shared.theme import group_colours, head_colours, topic_colours
from precompute.steps.search import step as search_step
from tests.support.apps import figures_of, page_at
from tests.support.synthetic import write_run

ROOT = Path(__file__).resolve().parents[2]
PAGE = "pages/explore/head_map/page.py"
SHAPE = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)
DOCS = 20
TOPICS = ("rivers", "engines")
NASTY = '<img src=x onerror="window.hit=1"> **bold** [link](javascript:alert(1)) $x$'
LEFT_HALF = "1_0.0_5000.0_5000.9999_0.9999"
"""Heads 1 and 3 lie in the left half of the map, heads 2 and 4 in the right one."""


def write_mapped(
    cache: Path, name: str = "mapped", fitted: int = DOCS, nasty: bool = False, stacked: bool = False
) -> Run:
    """Four heads in the corners of a square, each a row of twenty documents; documents alternate between two topics.

    ``stacked`` puts all heads of a document on one place.
    """
    labels = [TOPICS[doc % 2] for doc in range(DOCS)]
    run = write_run(cache, name, SHAPE, lambda stage, first, count: np.ones((count, 32)), labels)
    if nasty:
        table = pq.read_table(run.documents_path)
        titles = pa.array([f"{doc} {NASTY}" for doc in range(DOCS)])
        table = table.set_column(table.schema.get_field_index("title"), table.schema.field("title"), titles)
        topics = pa.array([NASTY] * DOCS)
        write_table(
            run.documents_path, table.set_column(table.schema.get_field_index("topic"), "topic", topics), "planted"
        )
    doc, head = (axis.reshape(-1) for axis in np.meshgrid(np.arange(DOCS), np.arange(4), indexing="ij"))
    for stage in (1, 2, 3):
        columns = {
            "doc": doc.astype(np.int32),
            "head": (head + 1).astype(np.int16),
            "x": np.where((head % 2 == 0) | stacked, -10, 10) + doc * 0.3 - 3,
            "y": np.where((head < 2) | stacked, 10.0, -10.0) * (1 if stage == 1 else -1),
            "activation": 1 + head + doc / DOCS,
            "fitted": doc < fitted,
        }
        arrays = [pa.array(columns[field.name], field.type) for field in MAP]
        write_table(run.map_path(stage), pa.Table.from_arrays(arrays, schema=MAP), "planted")
    points = {"points": 4 * DOCS, "fitted": 4 * fitted, "placed": 4 * (DOCS - fitted)}
    run.write_manifest(run.manifest().with_step("project", Step("planted", "done", "2026-01-01", counts=points)))
    return run


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """The page on a cache, at an address."""

    def start(cache: Path, **address: str) -> AppTest:
        return page_at(cache, PAGE, monkeypatch, **address)

    return start


def said(app: AppTest) -> str:
    """All that stands on the page, HTML included; Markdown's escapes taken back."""
    kinds = ("title", "subheader", "markdown", "caption", "info", "warning", "error", "code")
    parts = [re.sub(r"\\(\W)", r"\1", str(element.value)) for kind in kinds for element in app.get(kind)]
    return "\n".join([*parts, *(element.proto.body for element in app.get("html"))])


def told(app: AppTest) -> dict[str, Any]:
    """What the browser was told, tables by their references."""
    feed = next(element.proto for element in app.get("bidi_component") if "feed" in element.proto.component_name)
    found: dict[str, Any] = json.loads(feed.mixed.json if feed.WhichOneof("data") == "mixed" else feed.json)
    return found


def points(app: AppTest) -> pa.Table:
    return tables_of(app, "points")


def test_the_points_are_sent_once_a_stage(open_page: Callable[..., AppTest], tmp_path: Path) -> None:
    write_mapped(tmp_path)
    app = open_page(tmp_path)
    sent = points(app)
    assert sent.num_rows == 4 * DOCS
    x, y = (sent[axis].to_numpy().reshape(DOCS, 4).astype(int) for axis in ("x", "y"))
    assert (x[:, [0, 2]] < 32_768).all()
    assert (x[:, [1, 3]] > 32_768).all()
    assert (y[:, :2] > y[:, 2:]).all()
    assert (np.diff(x, axis=0) > 0).all()
    assert [column["name"] for column in told(app)["columns"]] == ["topic"]
    app.run()
    assert "points" not in told(app)
    assert "documents" not in told(app)
    app.segmented_control(key="stage").set_value(2).run()
    assert told(app)["stage"] == 2
    assert "points" in told(app)
    assert "documents" not in told(app)
    app.segmented_control(key="stage").set_value(1).run()
    assert "points" not in told(app)


def test_an_area_in_the_address_is_counted(open_page: Callable[..., AppTest], tmp_path: Path) -> None:
    write_mapped(tmp_path)
    app = open_page(tmp_path, area=LEFT_HALF)
    assert f"{2 * DOCS} points of {DOCS} documents" in said(app)
    rows = app.dataframe[0].value
    assert rows["points"].tolist() == [2] * DOCS
    assert set(rows["heads"]) == {"1, 3"}
    assert set(rows["topic"]) == set(TOPICS)
    app = open_page(tmp_path, area=LEFT_HALF, heads="1-2")
    assert f"{DOCS} points of {DOCS} documents" in said(app)
    assert set(app.dataframe[0].value["heads"]) == {"1"}
    app = open_page(tmp_path, area=LEFT_HALF, heads="2,4")
    assert "This area contains no point of the chosen heads." in said(app)


def test_an_area_goes_with_its_stage(open_page: Callable[..., AppTest], tmp_path: Path) -> None:
    write_mapped(tmp_path)
    app = open_page(tmp_path, area=LEFT_HALF, stage="2")
    assert not app.toast
    assert "points of" not in said(app)
    assert dict(app.query_params) == {"stage": "2"}


def test_a_document_in_the_address_is_shown(open_page: Callable[..., AppTest], tmp_path: Path) -> None:
    write_mapped(tmp_path)
    app = open_page(tmp_path, doc="8")
    assert "Document 8" in said(app)
    assert "Document 7." in said(app)  # its text counts from 0


def listed(app: AppTest) -> list[int]:
    """The documents of the list beside the map, from 1."""
    return [int(number) for number in app.dataframe[0].value["document"]]


def test_a_legend_entry_lists_its_documents(open_page: Callable[..., AppTest], tmp_path: Path) -> None:
    write_mapped(tmp_path)
    app = open_page(tmp_path, colour="topic", focus="2", list="1")
    assert [heading.value for heading in app.subheader] == [told(app)["columns"][0]["values"][1]]
    number = TOPICS.index(told(app)["columns"][0]["values"][1])  # topics alternate, and documents count from 1
    assert listed(app) == list(range(number + 1, DOCS + 1, 2))
    assert not open_page(tmp_path, colour="topic", focus="2").dataframe  # highlighted only
    app = open_page(tmp_path, colour="topic", focus="3", list="1")  # two topics, and every document has one
    assert not app.dataframe
    assert [toast.value for toast in app.toast] == ["The link has an unknown value for 'focus'; it is ignored."]


def test_a_search_lists_what_it_has_found_and_closing_clears_it(
    open_page: Callable[..., AppTest], tmp_path: Path
) -> None:
    write_mapped(tmp_path)
    app = open_page(tmp_path, words="document 1", doc="3")
    assert listed(app) == [2, *range(11, 21)]
    assert "Document 3" in said(app)
    before = told(app)["turn"]
    app.session_state["what the panel beside the map has decided"] = {"doc": "", "area": "", "list": ""}
    app.text_input(key="words").input("").run()
    assert not app.dataframe
    assert "Document 3" not in said(app)
    assert dict(app.query_params) == {}
    assert told(app)["turn"] == before + 1  # so that the map takes its rings away
    assert told(app)["chosen"] == {"area": None, "doc": None, "list": None}


def test_search_names_the_documents(open_page: Callable[..., AppTest], tmp_path: Path) -> None:
    write_mapped(tmp_path)
    app = open_page(tmp_path)
    assert told(app)["hits"] is None
    app.text_input(key="words").input("DOCUMENT 1").run()
    assert told(app)["hits"] == [1, *range(10, 20)]
    app.text_input(key="words").input("nowhere").run()
    assert told(app)["hits"] == []
    assert "No document contains all of these words" in said(app)


def test_words_in_the_address_are_searched_for(open_page: Callable[..., AppTest], tmp_path: Path) -> None:
    write_mapped(tmp_path)
    app = open_page(tmp_path, words=" DOCUMENT\n\x00 1 ")
    assert app.text_input(key="words").value == "DOCUMENT 1"
    assert told(app)["hits"] == [1, *range(10, 20)]
    assert dict(app.query_params) == {"words": "DOCUMENT 1"}
    assert len(open_page(tmp_path, words="x" * 5_000).text_input(key="words").value) == 200


def test_camera_and_layout_stay_in_the_address(open_page: Callable[..., AppTest], tmp_path: Path) -> None:
    write_mapped(tmp_path)
    view = {"camera": "-0.125,1.5,12.25", "layout": "heads"}
    app = open_page(tmp_path, **view)
    app.segmented_control(key="stage").set_value(2).run()
    assert dict(app.query_params) == {**view, "stage": "2"}
    assert not app.toast


@pytest.mark.parametrize("name", ["doc", "heads", "area", "camera", "layout", "focus", "list", "front"])
@pytest.mark.parametrize("value", ["../../etc", "99999", "-1", "1-", "<script>alert(1)</script>", "1_1.1_2", "²"])
def test_a_hostile_link_is_left_out_with_a_notice(
    open_page: Callable[..., AppTest], tmp_path: Path, name: str, value: str
) -> None:
    write_mapped(tmp_path)
    app = open_page(tmp_path, **{name: value})
    assert [toast.value for toast in app.toast] == [f"The link has an unknown value for '{name}'; it is ignored."]
    assert dict(app.query_params) == {}
    assert told(app)["key"]


def test_documents_placed_after_the_fit_are_drawn_too(open_page: Callable[..., AppTest], tmp_path: Path) -> None:
    write_mapped(tmp_path, fitted=15)
    app = open_page(tmp_path)
    assert points(app).num_rows == 4 * DOCS
    assert "too many to draw" not in said(app)


def test_a_run_without_maps_says_what_makes_them(open_page: Callable[..., AppTest], tmp_path: Path) -> None:
    run = write_mapped(tmp_path)
    manifest = run.manifest()
    run.write_manifest(replace(manifest, steps={"embed": manifest.steps["embed"]}))
    app = open_page(tmp_path)
    assert "python -m precompute project mapped" in said(app)
    assert not any("map" in element.proto.component_name for element in app.get("bidi_component"))


def test_a_missing_map_is_told_in_a_sentence(open_page: Callable[..., AppTest], tmp_path: Path) -> None:
    write_mapped(tmp_path).map_path(1).unlink()
    assert "python -m precompute project mapped --again" in said(open_page(tmp_path))


def test_no_run(open_page: Callable[..., AppTest], tmp_path: Path) -> None:
    assert "There are no runs yet" in said(open_page(tmp_path / "nothing"))


def test_titles_and_topics_stay_text(open_page: Callable[..., AppTest], tmp_path: Path) -> None:
    write_mapped(tmp_path, nasty=True)
    app = open_page(tmp_path, doc="3", area=LEFT_HALF)
    assert "<img" not in "\n".join(element.proto.body for element in app.get("html"))
    for element in figures_of(app):
        assert "<img" not in element.spec.replace("\\u003c", "<")


@pytest.mark.parametrize(
    ("text", "heads"),
    [(None, {1, 2, 3, 4, 5, 6, 7, 8}), ("1-4,7", {1, 2, 3, 4, 7}), ("none", set()), ("8", {8})],
)
def test_heads_in_the_address_and_back(text: str | None, heads: set[int]) -> None:
    assert parse_heads(text, 8) == heads
    assert format_heads(heads, 8) == text


@pytest.mark.parametrize("text", ["", "0", "9", "4-1", "1-9", "1,,2", "1 ", "１", "all"])
def test_heads_that_are_none(text: str) -> None:
    assert parse_heads(text, 8) is None


def test_inside_a_polygon_with_a_notch() -> None:
    polygon = read_area("1_0.0_9999.0_9999.9999_5000.5000_0.9999", 1)
    assert polygon is not None
    places = np.array([[[30_000, 10_000], [32_767, 60_000]], [[1_000, 50_000], [64_000, 50_000]]], dtype=np.uint16)
    assert inside(places, polygon).tolist() == [[True, False], [True, True]]
    assert read_area("1_0.0_9999.0_9999.9999", 2) is None


def test_a_polygon_with_a_bay_and_corners_at_the_height_of_points() -> None:
    """A block of 100 × 100 with a bay from the top down to its middle: (40, 100), (50, 50), (60, 100)."""
    bay = np.array([[0, 0], [100, 0], [100, 100], [60, 100], [50, 50], [40, 100], [0, 100]], dtype=float)
    rows = {
        (50, 40): True,  # under the bay
        (50, 60): False,  # in it
        (45, 60): True,  # at this height it reaches from 48 to 52
        (51, 60): False,
        (53, 60): True,
        (49, 50): True,  # at the height of its lowest corner
        (101, 50): False,
        (50, 101): False,
    }
    assert inside(np.array([list(rows)], dtype=np.uint16), bay).tolist() == [list(rows.values())]


def test_colours_differ_and_groups_share_a_hue() -> None:
    import colorsys

    for theme in ("light", "dark"):
        heads = head_colours(32, 8, theme)
        assert len(set(heads)) == 32
        assert len(set(group_colours(8, theme))) == 8
        assert len(set(topic_colours(25, theme))) == 25
        hues = [colorsys.rgb_to_hls(*(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)))[0] for colour in heads]
        for group in range(8):
            own = np.array(hues[4 * group : 4 * group + 4])
            turned = np.minimum(np.abs(own - own[0]), 1 - np.abs(own - own[0]))
            assert turned.max() < 0.06


def test_a_run_without_an_index_says_how_much_was_searched(
    open_page: Callable[..., AppTest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_mapped(tmp_path)
    monkeypatch.setattr("pages.shared.data.scan", partial(scan, most=12))
    app = open_page(tmp_path, words="document")
    assert told(app)["hits"] == list(range(12))
    assert f"Only the first 12 of {DOCS} documents were searched" in said(app)
    search_step.run(search_step.SearchConfig(tmp_path, "mapped"))
    app = open_page(tmp_path, words="docu")
    assert told(app)["hits"] == list(range(DOCS))
    assert "looked through" not in said(app)


def tables_of(app: AppTest, name: str) -> pa.Table:
    feed = next(element.proto for element in app.get("bidi_component") if "feed" in element.proto.component_name)
    reference = next(iter(told(app)[name].values()))
    return pa.ipc.open_stream(feed.mixed.arrow_blobs[reference].data).read_all()
