"""Figures and tables on a page, with their pictures and data to take away."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import plotly.graph_objects as go
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import streamlit as st

from core.runs.run import Run
from pages.shared.components.figure import plotted
from pages.shared.components.layer_grid import LayerGrid, grid_numbers
from pages.shared.components.picture import picture
from pages.shared.paper.caption import app_command, figure_command
from pages.shared.paper.caption import caption as figure_caption
from pages.shared.text import plain, shortened

SHOWN_RUN = "the run of the figures' captions"
_FORMULA = r"^[=+\-@\t\r]"


def defused_text(text: str) -> str:
    """One cell's text, with an apostrophe before it where it begins as a formula does."""
    return f"'{text}" if re.match(_FORMULA, text) else text


def defused(table: pa.Table) -> pa.Table:
    """Every text cell that begins as a formula does gets an apostrophe before it; numbers stay numbers."""
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            risky = pc.match_substring_regex(column, _FORMULA)
            column = pc.if_else(risky, pc.binary_join_element_wise("'", column, ""), column)
        columns[defused_text(name)] = column
    return pa.table(columns)


def cells(texts: Sequence[str | None]) -> list[str | None]:
    """Texts for a table on a page, none very long; defused, for Streamlit's own button saves tables as CSV."""
    return [None if text is None else defused_text(shortened(text, 300)) for text in texts]


@dataclass(frozen=True)
class Remake:
    """The figure of that name in ``OpenedRun.figure``, with these choices."""

    figure: str
    choices: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Paper:
    """What a figure's caption is made of; ``own`` is the name of one that a component draws, not Plotly."""

    drawn: go.Figure | None
    sentences: Sequence[str]
    remake: Remake | None = None
    own: str | None = None

    def caption(self, name: str) -> str:
        run, facts = st.session_state.get(SHOWN_RUN, ("", ""))
        if self.remake is None:
            again = app_command(run)
        else:
            again = figure_command(run, self.remake.figure, self.remake.choices, f"{name}.pdf")
        return figure_caption(self.sentences, self.drawn, facts, again)


def grid_paper(grid: LayerGrid, *sentences: str) -> Paper:
    """For a grid of layers by heads."""
    return Paper(None, [grid.label, grid_numbers(grid), *sentences], own=grid.name)


def note_run(name: str, facts: str) -> None:
    """The run that the page's figures are of, for their captions."""
    st.session_state[SHOWN_RUN] = (name, facts)


def theme() -> str:
    """'light' or 'dark', as the reader has it."""
    return st.context.theme.type or "light"


def figure(
    drawn: go.Figure,
    name: str,
    data: pa.Table | Callable[[], pa.Table],
    caption: str = "",
    alt: str | None = None,
    on_pick: Callable[[], None] | None = None,
    remake: Remake | None = None,
) -> None:
    """Draws a figure, with its picture and its data to take away below. ``name`` is unique on the page.

    ``on_pick`` is called when a point is clicked; ``picked(name)`` is its custom data. ``remake`` is what
    ``headscope figure`` is told to draw the same; without it, the page's address is.
    """
    config = {
        "modeBarButtonsToRemove": ["zoom2d", "pan2d", "select2d", "lasso2d", "autoScale2d"],
        "toImageButtonOptions": {"format": "svg", "filename": name},
    }
    plotted(drawn, name, alt, config, on_pick)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if caption:
            st.caption(plain(caption))
        downloads(name, data if callable(data) else lambda: data, Paper(drawn, (alt or "", caption), remake))


@st.fragment
def downloads(name: str, table: Callable[[], pa.Table], paper: Paper | None = None) -> None:
    """A figure as a picture, and its data as CSV and Parquet; what is in the box is made when somebody opens it."""
    box = st.popover("Save", icon=":material/download:", type="tertiary", key=f"save {name}", on_change="rerun")
    if not box.open:
        return
    kinds = {"CSV": ("text/csv", _write_csv), "Parquet": ("application/vnd.apache.parquet", pq.write_table)}
    with box:
        if paper is not None:
            st.caption("Figure" if theme() == "light" else "Figure. For white paper, choose the light theme first.")
            picture(name, name, paper.caption(name), paper.remake is None, paper.own)
        st.caption("Data")
        with st.container(horizontal=True, gap="small"):
            for label, (mime, write) in kinds.items():
                file = f"{name}.{label.lower()}"
                st.download_button(label, partial(_written, table, write), file, mime, key=file, on_click="ignore")


def _written(table: Callable[[], pa.Table], write: Callable[..., None]) -> bytes:
    stream = io.BytesIO()
    write(table(), stream)
    return stream.getvalue()


def _write_csv(table: pa.Table, stream: io.BytesIO) -> None:
    pacsv.write_csv(defused(table), stream)


@st.cache_resource(max_entries=128, show_spinner=False)
def drawn_once(run: Run, version: str, name: str, stage: int, theme: str, _draw: Callable[[], go.Figure]) -> go.Figure:
    """A figure that changes with the run, the stage and the theme alone: building it costs more than sending it."""
    return _draw()
