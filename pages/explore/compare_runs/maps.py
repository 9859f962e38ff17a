"""The maps of two runs under one brush: documents selected on one stand out on the other."""

from __future__ import annotations

from functools import partial

import numpy as np
import streamlit as st

from core.analysis.head_matching import HeadMatches
from core.runs.steps import command
from pages.explore.compare_runs.figures import map_figure
from pages.explore.compare_runs.state import (
    Pair,
    PairMaps,
    brush_from_address,
    brush_name,
    brushed,
    pair_maps,
)
from pages.shared.cards import Card, cards
from pages.shared.components.figure import area, plotted
from pages.shared.components.map_data import area_text, columns
from pages.shared.data import RunState, documents
from pages.shared.notices import shows_mistakes
from pages.shared.show import theme
from pages.shared.text import drawn, plain, shortened
from pages.shared.url import choice_to_url, linked

_PICKED = "a brush that was just drawn"
_MAP_HEIGHT, _MOST_CARDS = 430, 30


@shows_mistakes
def maps_section(pair: Pair, stage: int, found: HeadMatches | None) -> None:
    """Both maps, and what is selected on them."""
    if not len(pair.shared):
        st.info(
            "The two runs share no documents: no text occurs in both. Embed the same corpus in both runs to compare "
            "their maps and heads. Their findings are compared below.",
            icon=":material/join_inner:",
        )
        return
    lacking = [one for one in pair.both if not one.projected]
    for one in lacking:
        st.info(f"The run {plain(one.run.name)} has no maps yet.", icon=":material/scatter_plot:")
        st.code(command("project", one.run.name), language=None, wrap_lines=True)
    if lacking:
        return
    maps = pair_maps(pair, stage)
    if maps is None:
        st.info(
            "The maps of the two runs are samples, and these samples have no document in common.",
            icon=":material/join_inner:",
        )
        return
    _maps(pair, stage, maps, found)


@st.fragment
@shows_mistakes
def _maps(pair: Pair, stage: int, maps: PairMaps, found: HeadMatches | None) -> None:
    picked = st.session_state.pop(_PICKED, None)
    if picked is not None:
        choice_to_url("brush", picked, "")
    *halves, side = st.columns([5, 5, 3], gap="medium")
    with side:
        heads = _choose_heads(found)
    brush = brush_from_address(stage)
    chosen = None if brush is None else brushed(maps, brush, None if heads is None else heads[brush.side])
    named = columns(pair.here)
    topics = named[0].codes[maps.docs[:, 0]] if named else None
    titles = [drawn(shortened(title, 80)) for title in _titles(pair.here, maps.docs[:, 0])] if heads else []
    look = theme()
    for number, (one, column, places) in enumerate(zip(pair.both, halves, maps.places, strict=True)):
        assert one.manifest is not None
        head = None if heads is None else heads[number]
        made = map_figure(
            places,
            one.manifest.shape,
            look,
            head,
            chosen,
            brush.corners if brush is not None and brush.side == number else None,
            titles,
            topics,
            _MAP_HEIGHT,
        )
        key = f"map {number} {stage}"
        with column:
            _what_it_is(one, head)
            plotted(
                made,
                key,
                config={"modeBarButtonsToRemove": ["autoScale2d"], "scrollZoom": False},
                on_area=partial(_note_brush, key, stage, number),
                alt=f"Map of {len(maps.docs):,} documents of the run {shortened(one.run.name, 60)}, "
                f"{'all heads' if head is None else f'head {head + 1}'}"
                + ("" if chosen is None else f"; {len(chosen):,} selected documents stand out")
                + ".",
            )
    with side:
        _selected(pair, maps, chosen, None if brush is None else brush.side, heads is not None and topics is not None)


def _note_brush(key: str, stage: int, side: int) -> None:
    """The last box or lasso that was drawn, as it goes into the address."""
    x, y = area(key)
    if len(x) < 2:
        st.session_state[_PICKED] = ""
        return
    if len(x) == 2:  # a box has two corners
        x, y = [x[0], x[1], x[1], x[0]], [y[0], y[0], y[1], y[1]]
    st.session_state[_PICKED] = area_text(brush_name(stage, side), np.array([x, y], dtype=float).T)


def _choose_heads(found: HeadMatches | None) -> tuple[int, int] | None:
    """A head here and its most similar one there, from 0; None for all heads."""
    if found is None:
        return None
    chosen = linked(
        st.selectbox,
        "Heads on the maps",
        "pair",
        list(range(len(found.best) + 1)),
        0,
        format_func=lambda head: "all heads" if not head else f"head {head} · head {found.best[head - 1] + 1} there",
        help="All heads, or one head and the most similar head of the other run.",
    )
    return (chosen - 1, int(found.best[chosen - 1])) if chosen else None


def _what_it_is(one: RunState, head: int | None) -> None:
    assert one.manifest is not None
    model, corpus = one.manifest.model, one.manifest.corpus
    shown = "" if head is None else f" · head {head + 1}"
    st.markdown(f"**{plain(one.run.name)}**{shown}")
    st.caption(
        f"{plain(shortened(str(model['name']), 60))}, layer {model['layer']} of {model['layers']}, {model['heads']} "
        f"heads on {model['kv_heads']} · {plain(shortened(str(corpus['source']), 40))}, "
        f"{corpus['documents']:,} documents"
    )


def _selected(pair: Pair, maps: PairMaps, chosen: np.ndarray | None, side: int | None, by_topic: bool) -> None:
    drawn_docs = (
        f"{len(maps.docs):,} of {len(pair.shared):,} shared documents"
        if maps.left_out
        else (f"All {len(maps.docs):,} shared documents")
    )
    sample = ", a random sample," if maps.left_out else ""
    if chosen is None or side is None:
        st.markdown("Drag a box or a lasso on one map. The same documents stand out on the other.")
        if by_topic:
            st.caption("Colours are topics.")
        st.caption(f"{drawn_docs}{sample} are drawn on both maps: those whose text is the same in both runs.")
        return
    name = plain(pair.both[side].run.name)
    st.markdown(f"**{len(chosen):,} {'document' if len(chosen) == 1 else 'documents'}** selected on {name}")
    st.button("Clear selection", icon=":material/close:", on_click=_clear)
    with st.container(height=_MAP_HEIGHT - 90, border=False):
        docs = maps.docs[chosen[:_MOST_CARDS], 0]
        rows = documents(pair.here).rows(docs, ["title", "topic", "text"]).to_pylist()
        cards([Card(row["title"], [row["topic"]], row["text"]) for row in rows])
        if len(chosen) > _MOST_CARDS:
            st.caption(f"The first {_MOST_CARDS} are listed.")
    if maps.left_out:
        st.caption(f"{drawn_docs}, a random sample, are drawn.")


def _clear() -> None:
    st.session_state[_PICKED] = ""


def _titles(state: RunState, docs: np.ndarray) -> list[str]:
    return [str(title) for title in documents(state).rows(docs, ["title"])["title"].to_pylist()]
