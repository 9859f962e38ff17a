"""A grid of layers by heads whose cells can be clicked: a Streamlit component, its other half is layer_grid.js.

The cells are elements, not a canvas: a thousand of them are few, and a screen reader and the arrow keys find each one.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.shared.components.mount import TIP_CSS, component
from pages.shared.theme import ink_on

_CSS = """
.hs-grid { font-family: var(--st-font, sans-serif); font-size: var(--hs-text); color: var(--st-text-color);
  position: relative; }
.hs-grid:empty { min-height: 200px; }
.tools { display: flex; flex-wrap: wrap; gap: 6px 16px; align-items: center; margin-bottom: 8px; }
.legend { flex: 1; display: flex; flex-wrap: wrap; gap: 4px 12px; align-items: center; font-size: var(--hs-note);
  font-variant-numeric: tabular-nums; }
.legend .kind { display: inline-flex; gap: 5px; align-items: center; }
.legend i { width: 12px; height: 12px; border-radius: 3px;
  box-shadow: 0 0 0 1px color-mix(in srgb, currentColor 22%, transparent); }
.legend .scale { width: 132px; height: 10px; border-radius: 3px;
  box-shadow: 0 0 0 1px color-mix(in srgb, currentColor 22%, transparent); }
button { font: inherit; color: inherit; background: none; border: 1px solid var(--st-border-color);
  border-radius: 7px; height: 28px; padding: 0 9px; font-size: var(--hs-note); font-weight: 600; cursor: pointer; }
button:hover { border-color: var(--st-primary-color); color: var(--st-primary-color); }
button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 2px; }
.frame { overflow-x: auto; padding: 3px; margin: -3px; }
.grid { display: flex; flex-direction: column; gap: 2px; width: max-content; min-width: 100%; }
.row { display: flex; gap: 2px; height: var(--tall); }
.name { flex: none; width: var(--gutter); position: sticky; left: -3px; z-index: 1; text-align: right;
  padding-right: 7px; box-sizing: border-box; line-height: var(--tall); white-space: nowrap;
  font-size: var(--hs-label); font-variant-numeric: tabular-nums; background: var(--st-background-color); }
.top { flex: 1 0 var(--least); max-width: 76px; text-align: center; font-size: var(--hs-label);
  line-height: var(--tall); font-variant-numeric: tabular-nums; overflow: hidden; }
.cell { flex: 1 0 var(--least); max-width: 76px; border-radius: 3px; cursor: pointer; text-align: center;
  line-height: var(--tall); font-size: var(--hs-cell); overflow: hidden; font-variant-numeric: tabular-nums;
  outline: none; white-space: nowrap; user-select: none; box-sizing: border-box; }
.cell.none { cursor: default;
  background: repeating-linear-gradient(135deg, transparent 0 4px,
    color-mix(in srgb, currentColor 14%, transparent) 4px 5px); }
.parted { margin-left: 7px; }
.cell:hover { box-shadow: inset 0 0 0 1.5px color-mix(in srgb, var(--st-text-color) 55%, transparent); }
.cell[aria-selected="true"] { box-shadow: 0 0 0 1px var(--st-background-color), 0 0 0 3px var(--st-text-color); }
.cell:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 2px; z-index: 1; position: relative; }
.tip { max-width: min(300px, 100%); padding: 7px 10px; }
.tip div:first-child { font-weight: 650; }
"""

_mount = component(
    "layer_grid",
    "dom.js",
    "layer_grid.js",
    html='<div class="hs-grid"></div>',
    css=TIP_CSS + _CSS,
)


@dataclass(frozen=True)
class Cell:
    """``colour`` as ``#RRGGBB``; ``label`` is said of the cell, a line a fact; ``text`` (three letters) is in it."""

    colour: str
    label: str
    text: str = ""


@dataclass(frozen=True)
class ColourKey:
    """A legend of colours that each stand for something: ``(colour, name)``."""

    kinds: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Scale:
    """A legend of colours from one end to the other: ``stops`` are ``[share, colour]``, as Plotly has them."""

    stops: Sequence[Sequence[Any]]
    low: str
    high: str


@dataclass(frozen=True)
class LayerGrid:
    """``cells[layer][head]``, layer 1 on top; None where there is nothing to show, and nothing to click."""

    label: str
    """What the grid shows, for those who cannot see it."""
    rows: Sequence[str]
    columns: Sequence[str]
    cells: Sequence[Sequence[Cell | None]]
    legend: ColourKey | Scale
    breaks: Sequence[int] = ()
    """Columns (from 0) before which there is a gap: where a key/value group begins, for one."""
    name: str = "layers"
    """Of the picture, when it is saved."""
    least: int | None = None
    """Pixels of the narrowest cell, where its text is longer than three letters."""


@dataclass(frozen=True)
class GridCell:
    """A cell, by its row and column from 0."""

    row: int
    column: int


def grid_numbers(grid: LayerGrid) -> str:
    """How many cells each colour of the legend has; of a scale, its ends."""
    cells = [cell for row in grid.cells for cell in row if cell is not None]
    size = f"{len(grid.rows)} × {len(grid.columns)} cells"
    if isinstance(grid.legend, Scale):
        return f"{size}; colours from {grid.legend.low} to {grid.legend.high}."
    counts = Counter(cell.colour for cell in cells)
    told = ", ".join(f"{name} {counts[colour]}" for colour, name in grid.legend.kinds if counts[colour])
    return f"{size}: {told}."


def layer_grid(grid: LayerGrid, key: str, mark: GridCell | None, on_pick: Callable[[GridCell], None]) -> None:
    """Draws the grid with the cell at ``mark`` framed; ``on_pick`` gets the cell that is clicked or entered.

    As in any callback, ``on_pick`` runs before the page does: it sets session state, and draws nothing.
    """
    legend = grid.legend
    data: dict[str, Any] = {
        "label": grid.label,
        "name": grid.name,
        "rows": list(grid.rows),
        "columns": list(grid.columns),
        "cells": [
            [None if one is None else [one.colour, one.text, one.label, ink_on(one.colour)] for one in row]
            for row in grid.cells
        ],
        "kinds": [list(kind) for kind in legend.kinds] if isinstance(legend, ColourKey) else None,
        "scale": [list(stop) for stop in legend.stops] if isinstance(legend, Scale) else None,
        "ends": [legend.low, legend.high] if isinstance(legend, Scale) else None,
        "breaks": [int(column) for column in grid.breaks],
        **({} if grid.least is None else {"least": grid.least}),
    }
    # The browser builds its cells again when the version changes; a new mark alone moves the frame.
    data["version"] = hashlib.blake2b(json.dumps(data).encode(), digest_size=8).hexdigest()
    data["mark"] = None if mark is None else [mark.row, mark.column]

    key = f"hs grid {key}"  # what is below waits until it is drawn: index_page.py

    def picked() -> None:
        place = checked_place((st.session_state.get(key) or {}).get("pick"), grid, data["version"])
        if place is not None:
            on_pick(place)

    _mount(key=key, data=data, on_pick_change=picked)


def checked_place(given: Any, grid: LayerGrid, version: str) -> GridCell | None:
    """``given`` as the browser sent it, if this version of the grid has such a cell."""
    if not isinstance(given, dict) or given.get("version") != version:
        return None
    row, column = given.get("row"), given.get("column")
    if type(row) is not int or type(column) is not int:
        return None
    if not (0 <= row < len(grid.rows) and 0 <= column < len(grid.columns)) or grid.cells[row][column] is None:
        return None
    return GridCell(row, column)
