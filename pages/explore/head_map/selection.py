"""What was chosen on the Head map: an area, a legend entry or search results, each with a list of documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa
import streamlit as st

from core.analysis.wording import PERCENT, percent
from pages.explore.head_map.state import Value, decide_view
from pages.shared.components.map_data import Column, StageMap, columns, inside
from pages.shared.data import RunState, documents
from pages.shared.document_list import document_list
from pages.shared.figures.template import PERCENT_TICKS, template
from pages.shared.heads_in_address import ranges
from pages.shared.show import cells, figure, theme
from pages.shared.text import drawn as escaped
from pages.shared.text import plain, shortened, visible
from pages.shared.theme import BAR, INK

MOST_ROWS = 1_000


def selection(
    state: RunState,
    drawn: StageMap,
    polygon: np.ndarray,
    heads_chosen: frozenset[int],
    document: Callable[[], None],
) -> None:
    """The points of chosen heads inside a polygon: their documents, the open one, and heads and topics against all."""
    assert state.manifest is not None
    heads = state.manifest.shape.heads
    hit = inside(drawn.places, polygon)  # [doc, head]
    hit[:, [head not in heads_chosen for head in range(1, heads + 1)]] = False
    of_doc, of_head = hit.sum(axis=1), hit.sum(axis=0)
    chosen = np.flatnonzero(of_doc)
    points, docs = int(of_head.sum()), len(chosen)
    st.subheader(f"{_counted(points, 'point')} of {_counted(docs, 'document')}", anchor=False)
    if not len(chosen):
        st.caption("This area contains no point of the chosen heads.")
        document()
        return
    order = chosen[np.argsort(-of_doc[chosen], kind="stable")][:MOST_ROWS]
    own = [ranges((np.flatnonzero(row) + 1).tolist(), "–", ", ") for row in hit[order]]
    _table(
        state,
        order,
        {"points": of_doc[order], "heads": own},
        {
            "points": st.column_config.ProgressColumn(
                "points inside",
                format="%d",
                min_value=0,
                max_value=len(heads_chosen),
                help="How many of the chosen heads place the document inside.",
            ),
            "heads": st.column_config.TextColumn("heads", width="small"),
        },
    )
    if len(chosen) > MOST_ROWS:
        st.caption(f"The {MOST_ROWS:,} documents with the most points inside, of {len(chosen):,}.")
    document()
    _head_shares(of_head, heads_chosen, len(of_doc))
    if named := columns(state):
        _value_shares(named[0], of_doc)


def value_list(state: RunState, value: Value) -> None:
    """The documents of a legend entry."""
    docs = value.docs
    name = plain(shortened(value.name, 120)) if value.code >= 0 else f"No {plain(value.column.label.lower())}"
    st.subheader(name, anchor=False)
    _simple_list(state, docs, f"{_counted(len(docs), 'document')}.", with_topic=value.column.name != "topic")


def found_list(state: RunState, docs: np.ndarray, words: str, more: bool) -> None:
    """The documents that a search has found."""
    count = f"More than {len(docs):,} documents" if more else _counted(len(docs), "document")
    st.subheader(f"“{plain(shortened(words, 60))}”", anchor=False)
    _simple_list(state, docs, f"{count}.")


def _simple_list(state: RunState, docs: np.ndarray, count: str, with_topic: bool = True) -> None:
    shown = docs[:MOST_ROWS]
    first = f" The first {MOST_ROWS:,} are listed." if len(docs) > MOST_ROWS else ""
    st.caption(f"{count}{first} Select a row to read it.")
    _table(state, shown, {}, {}, with_topic)


def _table(
    state: RunState,
    docs: np.ndarray,
    more: Mapping[str, Any],
    looks: Mapping[str, Any],
    with_topic: bool = True,
) -> None:
    rows = documents(state).rows(docs, ["title", "topic"])
    document_list(
        docs.tolist(),
        {
            "title": cells(rows["title"].to_pylist()),
            **more,
            **({"topic": cells(rows["topic"].to_pylist())} if with_topic else {}),
            "document": docs + 1,
        },
        f"documents chosen on the map {hash(docs.tobytes())}",
        lambda doc: decide_view(doc=str(doc + 1)),
        {
            "title": st.column_config.TextColumn("title", width="medium"),
            "topic": st.column_config.TextColumn("topic", width="small"),
            "document": st.column_config.NumberColumn("no.", width="small"),
            **looks,
        },
    )


def _counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _head_shares(of_head: np.ndarray, heads: frozenset[int], docs: int) -> None:
    own = np.array(sorted(heads))
    share = of_head[own - 1] / docs
    said = "The share of each head's points inside the selection. The line marks the mean over heads."
    st.markdown("##### Heads", help=said)
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
        f"The {len(kept)} heads with the largest shares." if len(kept) < len(own) else "",
        alt=f"Share of each head's points inside the selection: highest head {int(own[np.argmax(share)])} with "
        f"{percent(share.max())}, mean {percent(share.mean())}.",
    )


def _value_shares(column: Column, of_doc: np.ndarray) -> None:
    codes = column.codes
    labelled = codes >= 0
    count = len(column.values)
    here = np.bincount(codes[labelled], weights=of_doc[labelled], minlength=count)
    whole = np.bincount(codes[labelled], minlength=count)
    share, usual = here / max(1, here.sum()), whole / max(1, whole.sum())
    said = "Shares of the points inside the selection. The line marks the share among all documents."
    st.markdown(f"##### {plain(column.label)}s", help=said)
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
        f"The {len(kept)} most over-represented." if len(kept) < count else "",
        alt=f"Shares of the points inside the selection by {column.label.lower()}, each with its share among all "
        f"documents: highest {visible(shortened(column.values[kept[0]], 60))} with {percent(share[kept[0]])}, "
        f"{percent(usual[kept[0]])} among all.",
    )


def _bars(names: list[str], share: np.ndarray, usual: np.ndarray, unit: str) -> go.Figure:
    """Bars with a line each for what would be usual; names are escaped, for Plotly reads HTML in them."""
    look = theme()
    short = [visible(name) for name in names]
    shown = [escaped(name if len(name) <= 28 else f"{name[:27]}…") for name in short]
    made = go.Figure(
        go.Bar(
            x=100 * share,
            y=list(range(len(names))),
            orientation="h",
            marker={"color": BAR[look]},
            hovertemplate=f"%{{x:.1f}}{PERCENT} {unit}<extra></extra>",
        )
    )
    made.add_scatter(
        x=100 * usual,
        y=list(range(len(names))),
        mode="markers",
        marker={"symbol": "line-ns", "size": 15, "line": {"width": 2, "color": INK[look]}},
        hovertemplate=f"%{{x:.1f}}{PERCENT} expected<extra></extra>",
    )
    made.layout = {
        "template": template(look),
        "showlegend": False,
        "height": 70 + 24 * len(names),
        "margin": {"t": 8},
        "bargap": 0.35,
        "dragmode": False,
        "xaxis": {**PERCENT_TICKS, "rangemode": "tozero", "nticks": 5, "title": {"text": f"share {unit}"}},
        "yaxis": {"tickvals": list(range(len(names))), "ticktext": shown, "autorange": "reversed", "automargin": True},
    }
    return made
