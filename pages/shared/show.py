"""A figure on a page, with its picture and its data to take away."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import partial

import plotly.graph_objects as go
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import streamlit as st

from pages.shared.components.picture import picture
from pages.shared.csv_cells import defused, defused_text
from pages.shared.text import plain, shortened


def cells(texts: Sequence[str | None]) -> list[str | None]:
    """Texts for a table on a page, none very long; defused, for Streamlit's own button saves tables as CSV."""
    return [None if text is None else defused_text(shortened(text, 300)) for text in texts]


def theme() -> str:
    """'light' or 'dark', as the reader has it."""
    return st.context.theme.type or "light"


def figure(
    drawn: go.Figure,
    name: str,
    data: pa.Table | Callable[[], pa.Table],
    caption: str = "",
    alt: str | None = None,
) -> None:
    """Draws a figure, with its picture and its data to take away below. ``name`` is unique on the page."""
    st.plotly_chart(
        drawn,
        theme=None,
        key=name,
        alt=alt,
        config={
            "displaylogo": False,
            "modeBarButtonsToRemove": ["zoom2d", "pan2d", "select2d", "lasso2d", "autoScale2d"],
            "toImageButtonOptions": {"format": "svg", "filename": name},
        },
    )
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if caption:
            st.caption(plain(caption))
        downloads(name, data if callable(data) else lambda: data, with_picture=True)


def downloads(name: str, table: Callable[[], pa.Table], with_picture: bool = False) -> None:
    """A figure's data as CSV and Parquet; the table is made when somebody asks for it."""
    kinds = {"CSV": ("text/csv", _write_csv), "Parquet": ("application/vnd.apache.parquet", pq.write_table)}
    with st.popover("Save", icon=":material/download:", type="tertiary"):
        if with_picture:
            st.caption("Picture")
            picture(name, name)
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
