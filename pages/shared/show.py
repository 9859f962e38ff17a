"""A figure on a page, with its data to take away."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial

import plotly.graph_objects as go
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import streamlit as st

from pages.shared.text import plain


def theme() -> str:
    """'light' or 'dark', as the reader has it."""
    return st.context.theme.type or "light"


def figure(drawn: go.Figure, name: str, data: pa.Table, caption: str = "") -> None:
    """Draws a figure; its picture (SVG) is in its own toolbar, its data below. ``name`` is unique on the page."""
    st.plotly_chart(
        drawn,
        theme=None,
        key=name,
        config={
            "displaylogo": False,
            "modeBarButtonsToRemove": ["zoom2d", "pan2d", "select2d", "lasso2d", "autoScale2d"],
            "toImageButtonOptions": {"format": "svg", "filename": name},
        },
    )
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if caption:
            st.caption(plain(caption))
        downloads(name, lambda: data)


def downloads(name: str, table: Callable[[], pa.Table]) -> None:
    """A figure's data as CSV and Parquet; the table is made when somebody asks for it."""
    kinds = {"CSV": ("text/csv", pacsv.write_csv), "Parquet": ("application/vnd.apache.parquet", pq.write_table)}
    with st.popover("Data", icon=":material/download:", type="tertiary"):
        for label, (mime, write) in kinds.items():
            file = f"{name}.{label.lower()}"
            st.download_button(label, partial(_written, table, write), file, mime, key=file, on_click="ignore")


def _written(table: Callable[[], pa.Table], write: Callable[..., None]) -> bytes:
    stream = io.BytesIO()
    write(table(), stream)
    return stream.getvalue()
