"""What lies in an area of the Head map: its heads and topics against the whole, and its documents."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa
import streamlit as st

from pages.shared.components.map_data import Column, StageMap, columns, inside
from pages.shared.data import RunState, documents
from pages.shared.figures.template import template
from pages.shared.heads_in_address import ranges
from pages.shared.show import cells, figure, theme
from pages.shared.text import drawn as escaped
from pages.shared.text import plain, visible
from pages.shared.theme import BAR, INK

MOST_ROWS = 1_000


def selection(state: RunState, drawn: StageMap, polygon: np.ndarray, heads_chosen: frozenset[int]) -> None:
    """The points of chosen heads inside a polygon: their heads and topics against the whole, and their documents."""
    assert state.manifest is not None
    heads = state.manifest.shape.heads
    hit = inside(drawn.places, polygon)  # [doc, head]
    hit[:, [head not in heads_chosen for head in range(1, heads + 1)]] = False
    of_doc, of_head = hit.sum(axis=1), hit.sum(axis=0)
    chosen = np.flatnonzero(of_doc)
    st.subheader(f"{int(of_head.sum()):,} points of {len(chosen):,} documents")
    if drawn.left_out:
        every = len(drawn.docs) + drawn.left_out
        st.caption(f"Counted among the {len(drawn.docs):,} documents of {every:,} that are drawn, a sample by topic.")
    if not len(chosen):
        st.caption("There is no point of a chosen head in this area.")
        return
    named = columns(state)
    left, right = st.columns(2, gap="medium")
    with left:
        _head_shares(of_head, heads_chosen, len(drawn.docs))
    with right:
        if named:
            _value_shares(named[0], drawn.docs, of_doc, hit)
    order = chosen[np.argsort(-of_doc[chosen], kind="stable")][:MOST_ROWS]
    docs = drawn.docs[order]
    rows = documents(state).rows(docs, ["title", "topic"])
    st.dataframe(
        {
            "document": docs + 1,
            "title": cells(rows["title"].to_pylist()),
            "topic": cells(rows["topic"].to_pylist()),
            "points": of_doc[order],
            "heads": [ranges((np.flatnonzero(row) + 1).tolist(), "–", ", ") for row in hit[order]],
        },
        hide_index=True,
        column_config={
            "points": st.column_config.ProgressColumn(
                "points here",
                format="%d",
                min_value=0,
                max_value=len(heads_chosen),
                help="Of the document's chosen heads.",
            ),
            "title": st.column_config.TextColumn("title", width="medium"),
            "topic": st.column_config.TextColumn("topic", width="small"),
            "heads": st.column_config.TextColumn("heads", width="small"),
        },
    )
    if len(chosen) > MOST_ROWS:
        st.caption(f"The {MOST_ROWS:,} documents with the most points here, of {len(chosen):,}.")


def _head_shares(of_head: np.ndarray, heads: frozenset[int], docs: int) -> None:
    own = np.array(sorted(heads))
    share = of_head[own - 1] / docs
    st.markdown("##### Heads", help="How much of each head's points lie in the selection; the line is all heads' mean.")
    data = pa.table({"head": own, "points in the selection": of_head[own - 1], "share of the head's points": share})
    kept = np.sort(np.argsort(-share, kind="stable")[:12])
    figure(
        _bars(
            [f"head {head}" for head in own[kept]],
            share[kept],
            np.full(len(kept), share.mean()),
            "of the head's points",
        ),
        "head-map-heads",
        data,
        f"The {len(kept)} heads with most of their points here." if len(kept) < len(own) else "",
    )


def _value_shares(column: Column, docs: np.ndarray, of_doc: np.ndarray, hit: np.ndarray) -> None:
    codes = column.codes[docs]
    labelled = codes >= 0
    count = len(column.values)
    here = np.bincount(codes[labelled], weights=of_doc[labelled], minlength=count)
    whole = np.bincount(codes[labelled], minlength=count)
    share, usual = here / max(1, here.sum()), whole / max(1, whole.sum())
    st.markdown(
        f"##### {plain(column.label)}s", help="Share of the selection's points; the line is the share of all documents."
    )
    data = pa.table(
        {
            column.name: list(column.values),
            "points in the selection": here,
            "share of the selection": share,
            "share of all": usual,
        }
    )
    kept = np.argsort(-(share - usual), kind="stable")[:12]
    kept = kept[np.argsort(-share[kept], kind="stable")]
    figure(
        _bars([column.values[number] for number in kept], share[kept], usual[kept], "of the selection"),
        "head-map-topics",
        data,
        f"The {len(kept)} that are most over their usual share." if len(kept) < count else "",
    )


def _bars(names: list[str], share: np.ndarray, usual: np.ndarray, unit: str) -> go.Figure:
    """Bars with a line each for what would be usual; names are escaped, for Plotly reads HTML in them."""
    look = theme()
    short = [visible(name) for name in names]
    shown = [escaped(name if len(name) <= 28 else f"{name[:27]}…") for name in short]
    made = go.Figure(
        go.Bar(
            x=share,
            y=list(range(len(names))),
            orientation="h",
            marker={"color": BAR[look]},
            hovertemplate=f"%{{x:.1%}} {unit}<extra></extra>",
        )
    )
    made.add_scatter(
        x=usual,
        y=list(range(len(names))),
        mode="markers",
        marker={"symbol": "line-ns", "size": 15, "line": {"width": 2, "color": INK[look]}},
        hovertemplate="%{x:.1%} usual<extra></extra>",
    )
    made.update_layout(
        template=template(look),
        showlegend=False,
        height=60 + 24 * len(names),
        bargap=0.35,
        dragmode=False,
        xaxis={"tickformat": ".0%", "rangemode": "tozero", "nticks": 5},
        yaxis={"tickvals": list(range(len(names))), "ticktext": shown, "autorange": "reversed", "automargin": True},
    )
    return made
