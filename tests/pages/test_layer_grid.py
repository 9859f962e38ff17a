"""The grid of layers and heads: what the browser may send back, and the colours and letters of its cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core.model.shape import ModelShape
from pages.shared.components.layer_grid import Cell, ColourKey, GridCell, LayerGrid, Scale, checked_place, grid_numbers
from pages.understand.layers.figures import colour_at, colour_ends, grid_of, short

SHAPE = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)
GRID = LayerGrid("", ["1", "2"], ["a", "b"], [[Cell("#000000", "x"), None]] * 2, Scale([], "", ""))


@pytest.mark.parametrize(
    "given",
    [
        None,
        "0,0",
        {"row": 0, "column": 0},
        {"row": 0, "column": 0, "version": "before"},
        {"row": 2, "column": 0, "version": "now"},
        {"row": -1, "column": 0, "version": "now"},
        {"row": 0, "column": 1, "version": "now"},
        {"row": True, "column": 0, "version": "now"},
        {"row": "0", "column": 0, "version": "now"},
        {"row": 0.0, "column": 0, "version": "now"},
    ],
)
def test_a_place_that_the_grid_has_not_is_none(given: Any) -> None:
    assert checked_place(given, GRID, "now") is None


def test_a_caption_counts_the_cells_of_each_kind_or_names_the_ends_of_the_scale() -> None:
    local, sink = Cell("#000000", "x"), Cell("#FFFFFF", "y")
    kinds = ColourKey([("#000000", "local"), ("#123456", "broad"), ("#FFFFFF", "sink")])
    assert grid_numbers(LayerGrid("", ["1", "2"], ["a", "b"], [[local, sink], [local, None]], kinds)) == (
        "2 × 2 cells: local 2, sink 1."
    )
    ends = Scale([], "−0.5", "+0.5")
    assert grid_numbers(LayerGrid("", ["1"], ["a"], [[local]], ends)) == "1 × 1 cells; colours from −0.5 to +0.5."


def test_a_place_that_it_has() -> None:
    assert checked_place({"row": 1, "column": 0, "version": "now"}, GRID, "now") == GridCell(1, 0)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.694, ".69"), (0.996, "1.0"), (1, "1.0"), (0.004, "0"), (-0.24, "−.2"), (-0.04, "0"), (9.96, "10"), (12.4, "12"),
     (432, "432"), (8_700, "9k"), (250_000, "∞"), (-3.2, "−3")],
)  # fmt: skip
def test_three_letters(value: float, text: str) -> None:
    assert short(value) == text


def test_colours_by_hand() -> None:
    stops = [[0, "#000000"], [0.5, "#646464"], [1, "#FFFFFF"]]
    assert [colour_at(share, stops) for share in (-1, 0, 0.25, 0.5, 1, 7)] == [
        "#000000", "#000000", "#323232", "#646464", "#FFFFFF", "#FFFFFF",
    ]  # fmt: skip
    values = np.array([[0.2, np.nan], [-0.6, 0.4]])
    assert colour_ends(values, "groups", 4) == (-0.6, 0.6)  # a difference: 0 in the middle
    assert colour_ends(values, "probe", 4) == (0.25, 0.4)  # from chance on
    assert colour_ends(values, "topic_match", 4) == (0.0, 0.4)


def test_a_grid_has_its_groups_apart_and_says_what_a_cell_is() -> None:
    value = np.arange(10, dtype=float).reshape(2, 5) / 10
    value[1, 2] = np.nan
    cells = {"value": value, "low": value - 0.05, "high": value + 0.05}
    grid = grid_of(cells, "topic_match", {(1, 3): "selective"}, SHAPE, "light")
    assert (list(grid.columns), list(grid.breaks)) == (["all", "1", "2", "3", "4"], [1, 3])
    first, nothing = grid.cells[0][3], grid.cells[1][2]
    assert first is not None
    assert first.label == "Layer 1, head 3\nTopic match 30.0\u00a0% (25.0\u00a0% to 35.0\u00a0%)\nselective"
    assert (first.text, nothing) == ("30", None)
    assert (grid.legend.low, grid.legend.high) == ("0\u00a0%", "90\u00a0%")
    lightest, darkest = grid.cells[0][0], grid.cells[1][4]
    assert lightest is not None
    assert darkest is not None
    assert (lightest.colour, darkest.colour) == ("#F4F1EA", "#1D3A73")
