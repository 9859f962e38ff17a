"""What the app is measured against: the same points and cells with ``st.plotly_chart``, as anybody would write it.

Started by ``benchmarks.app`` as ``streamlit run benchmarks/app_plain.py``; ``?page=`` chooses one of PAGES, or none.
What is read is kept, as in the app; the points have the head's number as their colour, which is what the map is for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa
import streamlit as st

from core.analysis.heat_map import heat_map
from core.remote.mirror import default_cache
from core.runs.labels import labels_of
from core.runs.results import read_map, read_own_similarity, read_topics
from core.runs.run import open_run

RUN = "big"


@st.cache_resource
def points(stage: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``x``, ``y`` and ``head`` of every point."""
    table = read_map(open_run(default_cache(), RUN), stage)
    return tuple(table[name].to_numpy() for name in ("x", "y", "head"))


@dataclass(frozen=True)
class Cells:
    """``values[1 + head, column]``: all documents, as the app's heat map orders them; and what it says of them."""

    values: np.ndarray
    titles: list[str]
    topics: list[str]


@st.cache_resource
def cells() -> Cells:
    run = open_run(default_cache(), RUN)
    names = read_topics(run).names
    documents = run.documents(["title", "topic"])
    labels = labels_of(documents["topic"].to_pylist(), names)
    own = read_own_similarity(run, 1, labels, len(names)).astype(np.float32)
    found = heat_map(own, labels, range(len(names)), len(own))
    about = documents.take(pa.array(found.docs))
    return Cells(found.values, about["title"].to_pylist(), about["topic"].to_pylist())


def one_trace(stage: int) -> go.Figure:
    x, y, head = points(stage)
    marker = {"size": 2, "color": head, "colorscale": "Turbo"}
    return go.Figure(go.Scattergl(x=x, y=y, mode="markers", marker=marker))


def a_trace_a_head(stage: int) -> go.Figure:
    x, y, head = points(stage)
    drawn = go.Figure()
    for number in np.unique(head):
        own = head == number
        drawn.add_scattergl(x=x[own], y=y[own], mode="markers", marker={"size": 2}, name=f"head {number}")
    return drawn


def heat(stage: int) -> go.Figure:
    return go.Figure(go.Heatmap(z=cells().values, zmid=0, colorscale="RdBu_r"))


def heat_with_names(stage: int) -> go.Figure:
    """The same, telling under the pointer what the app does: the head, the document's title, its topic."""
    found = cells()
    rows = len(found.values)
    named = [f"{title}<br>{topic}" for title, topic in zip(found.titles, found.topics, strict=True)]
    return go.Figure(
        go.Heatmap(
            z=found.values,
            y=["full", *(f"head {head}" for head in range(1, rows))],
            customdata=[named] * rows,
            zmid=0,
            colorscale="RdBu_r",
            hovertemplate="%{y}<br>%{customdata}<br>%{z:+.3f}<extra></extra>",
        )
    )


PAGES = {"one-trace": one_trace, "a-trace-a-head": a_trace_a_head, "heat": heat, "heat-with-names": heat_with_names}

if __name__ == "__main__":
    st.set_page_config(layout="wide")
    stage = int(st.segmented_control("Stage", (1, 2, 3), default=1, required=True) or 1)
    draw = PAGES.get(st.query_params.get("page", ""))
    if draw is not None:
        figure = draw(stage)
        figure.update_layout(height=640, meta={"stage": stage})
        st.plotly_chart(figure, key="chart")
