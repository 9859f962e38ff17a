"""The head map beyond a million points: counts by cell and the points of a window, on maps worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

from pages.shared.components import map_data
from pages.shared.components.map_data import message_of_sample
from pages.shared.components.map_density import counts_by_head, counts_by_value, points_inside, read_window
from pages.shared.data import RunState
from tests.pages.test_page_head_map import DOCS, LEFT_HALF, open_page, said, tables_of, told, write_mapped

__all__ = ["open_page"]
PLACES = np.array(
    [  # three documents of two heads; a cell is 64 wide
        [[0, 0], [0, 64]],
        [[63, 63], [65_535, 65_535]],
        [[64, 0], [0, 0]],
    ],
    dtype=np.uint16,
)


def rows(table: pa.Table, name: str) -> list[tuple[int, ...]]:
    """(cell, head, count, ``name``) of every row."""
    cells = np.cumsum(table["step"].to_numpy().astype(int))
    columns = (table[own].to_pylist() for own in ("head", "count", name))
    return list(zip(cells.tolist(), *columns, strict=True))


def test_a_row_counts_a_heads_points_in_a_cell_and_averages_their_activation() -> None:
    shades = np.array([[10, 40], [20, 50], [30, 60]], dtype=np.uint8)
    last = 4**10 - 1  # cells in Z-order: 1 is right of 0, 2 above it
    assert rows(counts_by_head(PLACES, shades), "activation") == [
        (0, 0, 2, 15),
        (0, 1, 1, 60),
        (1, 0, 1, 30),
        (2, 1, 1, 40),
        (last, 1, 1, 50),
    ]


def test_values_are_counted_by_head_and_none_of_them_is_0() -> None:
    assert rows(counts_by_value(PLACES, np.array([0, 0, -1], dtype=np.int16)), "code") == [
        (0, 0, 2, 1),
        (0, 1, 1, 0),
        (1, 0, 1, 0),
        (2, 1, 1, 1),
        (4**10 - 1, 1, 1, 1),
    ]


@pytest.mark.parametrize("seed", range(5))
def test_every_point_is_counted_once_in_the_cell_that_a_window_finds_it_in(seed: int) -> None:
    chance = np.random.default_rng(seed)
    docs, heads = (int(size) for size in chance.integers(1, [300, 9]))
    places = (chance.normal(32_768, 2_000, size=(docs, heads, 2))).astype(np.uint16)
    by_head = counts_by_head(places, chance.integers(256, size=(docs, heads)).astype(np.uint8))
    by_value = counts_by_value(places, chance.integers(-1, 4, size=docs).astype(np.int16))
    assert sum(by_head["count"].to_pylist()) == sum(by_value["count"].to_pylist()) == docs * heads
    for cell, head, count, _ in rows(by_head, "activation"):
        column, row = (int(f"{cell:020b}"[1 - axis :: 2], 2) for axis in (0, 1))
        window = read_window(f"{column}.{row}.{column + 1}.{row + 1}/{head + 1}", heads)
        assert window is not None
        assert len(points_inside(places, window)[0]) == count


def test_a_window_has_the_points_of_its_heads_alone() -> None:
    window = read_window("0.0.1.2/2", 2)
    assert window is not None
    docs, heads = points_inside(PLACES, window)
    assert (docs.tolist(), heads.tolist()) == ([0, 2], [1, 1])
    whole = read_window("0.0.1024.1024", 2)
    assert whole is not None
    assert len(points_inside(PLACES, whole)[0]) == 6


@pytest.mark.parametrize("text", ["", "0.0.1", "0.0.1.2/3", "0.0.1.2/x", "0.0.1.-2", "a", "0.0.1.99999"])
def test_texts_that_name_no_window(text: str) -> None:
    assert read_window(text, 2) is None


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted run of 80 points is beyond the limit, half of it is not too many to be seen one by one."""
    monkeypatch.setattr(map_data, "MOST_POINTS", 4 * 6)
    monkeypatch.setattr(map_data, "MOST_IN_VIEW", 40)


@pytest.mark.usefixtures("few")
def test_all_points_are_counted_and_an_area_is_answered_for_all_of_them(
    open_page: Callable[..., AppTest], tmp_path: Path
) -> None:
    write_mapped(tmp_path)
    app = open_page(tmp_path, area=LEFT_HALF)
    assert sum(tables_of(app, "counts")["count"].to_pylist()) == 80
    assert told(app)["density"] == {"bits": 10, "points": 80, "most": 40}
    assert not {"points", "documents", "values", "extra"} & set(told(app))
    assert "80 points are too many to draw one by one" in said(app)
    assert f"40 points of {DOCS} documents" in said(app)


@pytest.mark.usefixtures("few")
def test_what_the_browser_asks_for_comes_once(open_page: Callable[..., AppTest], tmp_path: Path) -> None:
    write_mapped(tmp_path)
    app = open_page(tmp_path)
    app.session_state["what the head map needs"] = {"column": "topic", "window": "0.0.512.1024"}
    app.run()
    assert "counts" not in told(app), "sent before"
    points, rows_of = tables_of(app, "points"), tables_of(app, "documents")
    assert told(app)["window"] == "0.0.512.1024"
    assert points["head"].to_pylist() == [0, 2] * DOCS, "the left half"
    assert points["row"].to_pylist() == [doc for doc in range(DOCS) for _ in range(2)]
    assert (points["x"].to_numpy() < 32_768).all()
    assert rows_of["title"].to_pylist() == [f"Document {doc}." for doc in range(DOCS)]
    values = tables_of(app, "values")
    assert sum(count for *_, count, code in rows(values, "code") if code == 1) == 40, "half of the documents"
    app.session_state["what the head map needs"] = {"column": "topic", "window": "0.0.1024.1024"}
    app.run()
    assert not {"points", "window", "values"} & set(told(app)), "80 points are too many, and the values are there"


@pytest.mark.usefixtures("few")
def test_the_open_and_found_documents_are_drawn_as_points(open_page: Callable[..., AppTest], tmp_path: Path) -> None:
    write_mapped(tmp_path)
    app = open_page(tmp_path, doc="18", words="document 16.")
    extra, described = tables_of(app, "extra"), tables_of(app, "extra_documents")
    assert described["doc"].to_pylist() == [16, 17]
    assert described["title"].to_pylist() == ["Document 16.", "Document 17."]
    assert described["c0"].to_pylist() == [0, 1]
    assert told(app)["hits"] == [16]
    x = extra["x"].to_numpy().astype(int).reshape(2, 4)
    assert (x[:, [0, 2]] < 32_768).all()
    assert (x[:, [1, 3]] > 32_768).all()
    assert (x[1] > x[0]).all(), "document 17 lies right of 16"


@pytest.mark.usefixtures("few")
def test_a_file_or_notebook_gets_a_sample_by_topic_the_same_at_every_stage(tmp_path: Path) -> None:
    run = write_mapped(tmp_path)
    state = RunState(run, run.manifest())
    told_by_stage = [message_of_sample(state, stage) for stage in (1, 2, 3)]
    docs = told_by_stage[0]["documents"]["doc"].to_pylist()
    assert sorted(doc % 2 for doc in docs) == [0, 0, 0, 1, 1, 1], "each topic has its share"
    assert all(message["documents"]["doc"].to_pylist() == docs for message in told_by_stage)
    assert all(message["points"].num_rows == 4 * 6 for message in told_by_stage)


def test_a_sample_has_the_documents_first_that_the_map_was_fitted_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_data, "MOST_POINTS", 4 * 17)
    run = write_mapped(tmp_path, fitted=15)
    docs = message_of_sample(RunState(run, run.manifest()), 1)["documents"]["doc"].to_pylist()
    assert len(docs) == 17
    assert set(range(15)) <= set(docs)
