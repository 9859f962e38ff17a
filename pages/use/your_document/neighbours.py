"""The corpus documents nearest to a document: lists, and places on the maps."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa
import streamlit as st

from core.analysis.wording import percent
from core.retrieval.head_index import largest
from core.runs.parquet import RowLookup
from pages.shared import show
from pages.shared.cards import Card, cards
from pages.shared.corpus import place
from pages.shared.data import documents, head_index, places, preview, vector_docs
from pages.shared.empty_states import not_made
from pages.shared.figures.maps import axis_names, stage_maps_figure
from pages.shared.glossary import why
from pages.shared.notices import among, shows_mistakes
from pages.shared.theme import INK, SERIES
from pages.use.your_document.state import (
    NEIGHBOURS,
    DocumentView,
    voting_heads,
)


@shows_mistakes
def neighbours_section(shown: DocumentView) -> None:
    """Three lists side by side."""
    st.subheader("Nearest documents of the corpus", anchor="neighbours")
    table, near, ballot = documents(shown.state), shown.nearest, shown.ballot
    left, middle, right = st.columns(3, gap="medium")
    for column, row, title in ((left, 0, "Full embedding"), (middle, shown.head, f"Head {shown.head}")):
        with column:
            st.markdown(f"##### {title}", help=why("full embedding") if row == 0 else None)
            pairs = zip(near.docs[row][:NEIGHBOURS].tolist(), near.similarity[row].tolist(), strict=False)
            cards([_card(table, doc, [], score) for doc, score in pairs])
    with right:
        st.markdown("##### Votes of all heads", help=why("vote"))
        shares = ballot.scores / max(float(ballot.scores.sum()), 1e-12)
        items = zip(ballot.docs.tolist(), ballot.by_head, shares.tolist(), strict=True)
        cards(
            [
                _card(table, doc, [voting_heads(given), f"{percent(share)} of these votes"])
                for doc, given, share in items
            ]
        )
    st.caption(
        "Numbers are cosines. Votes: each head gives its nearest document its weight, the next one half of it, and so "
        "on; heads with a larger activation and heads that separate documents better have more weight. Click a "
        "document to read "
        f"it.{among(shown.state)}"
    )


def _card(table: RowLookup, doc: int, meta: list[str], score: float | None = None) -> Card:
    row = table.row(doc)
    return Card(row["title"], [row["topic"], *meta], row["text"], score)


@shows_mistakes
def map_section(shown: DocumentView) -> None:
    """Small maps; a run without maps gets a message with the command that makes them."""
    st.subheader("On the map", anchor="map")
    if not shown.state.projected:
        not_made(shown.state, "project")
        return
    with st.spinner("Placing the document on the maps …"):
        placed = all_placed(shown)
    show.figure(
        map_figure(shown, placed, show.theme()),
        "on-the-map",
        lambda: _table(placed),
        map_caption(shown),
        alt="One small map per stage with the document's heads among those of the corpus.",
    )


def map_figure(shown: DocumentView, placed: Mapping[int, np.ndarray], theme: str) -> go.Figure:
    """The document's heads on the map of every stage, with lines from the chosen head to its nearest documents."""
    state = shown.state
    assert state.manifest is not None
    figure = stage_maps_figure(preview(state).places, state.manifest.shape, theme, placed, height=340)
    for column, stage in enumerate(placed, start=1):
        ends = places(state, stage, _near(shown, stage))[:, shown.head - 1]
        figure.add_trace(_joined(placed[stage][shown.head - 1], ends, axis_names(column), theme))
    return figure


def map_caption(shown: DocumentView) -> str:
    count = len(_near(shown, shown.stage))
    return (
        f"The document's heads, numbered, on the maps of the corpus. Lines connect head {shown.head} with its {count} "
        f"nearest documents.{among(shown.state)}"
    )


def all_placed(shown: DocumentView) -> dict[int, np.ndarray]:
    """By stage the places of the document's heads, ``[head, 2]``."""
    assert shown.state.manifest is not None
    return {stage: _placed(shown, stage) for stage in shown.state.manifest.stages}


def _placed(shown: DocumentView, stage: int) -> np.ndarray:
    """Kept for the session: it takes longer than all else on the page, and a change of the head changes nothing."""
    kept: dict[tuple[object, ...], np.ndarray] = st.session_state.setdefault("placed documents", {})
    vectors = shown.vectors(stage)
    key = (shown.state.run.name, shown.state.analysis_version, stage, vectors.tobytes())
    if key not in kept:
        kept[key] = place(shown.state, stage, vectors)
        for old in list(kept)[:-24]:
            del kept[old]
    return kept[key]


def _near(shown: DocumentView, stage: int) -> np.ndarray:
    """The nearest documents in the chosen head, nearest first."""
    found = head_index(shown.state, stage).cosines_in(shown.head, shown.vectors(stage))
    return vector_docs(shown.state)[largest(found, min(NEIGHBOURS, len(found)))]


def _joined(start: np.ndarray, ends: np.ndarray, axes: dict[str, str], theme: str) -> go.Scattergl:
    """Lines from one point to several, with a small mark at each end."""
    nothing = np.full((len(ends), 2), np.nan)
    line = np.stack([np.broadcast_to(start, ends.shape), ends, nothing], axis=1).reshape(-1, 2)
    return go.Scattergl(
        x=line[:, 0],
        y=line[:, 1],
        mode="lines+markers",
        line={"color": SERIES[theme][1], "width": 1.5},
        marker={
            "size": np.tile([0, 6, 0], len(ends)),
            "color": SERIES[theme][1],
            "line": {"color": INK[theme], "width": 0.5},
        },
        hoverinfo="skip",
        **axes,
    )


def _table(placed: dict[int, np.ndarray]) -> pa.Table:
    tables = [
        pa.table(
            {
                "stage": np.full(len(found), stage),
                "head": np.arange(1, len(found) + 1),
                "x": found[:, 0],
                "y": found[:, 1],
            }
        )
        for stage, found in placed.items()
    ]
    return pa.concat_tables(tables)
