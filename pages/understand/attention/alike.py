"""Heads of one type side by side, and where types meet the heads' topic roles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import streamlit as st

from core.analysis.attention_roles import Association, Head, association, meeting
from core.analysis.attention_types import MIXED, TYPES, sentence
from core.analysis.roles import RULES as ROLES
from core.model.stages import HEADS
from core.runs.tables import Row
from pages.shared import show
from pages.shared.attention import attention_patterns, attention_rows, evidence_of, layer_roles, types_here
from pages.shared.controls import choose_stage
from pages.shared.data import tables
from pages.shared.empty_states import no_labels, not_analysed
from pages.shared.figures.table import figure_table
from pages.shared.figures.topic_gaps import GRID
from pages.shared.notices import shows_mistakes
from pages.shared.section import section
from pages.shared.text import plain, safe, shortened
from pages.shared.url import decide, linked
from pages.understand.attention.figures import Pattern, small_pattern
from pages.understand.attention.sections import AttentionView

SAME = "same"
MOST = 24
_CLEAREST = {
    "previous token": "previous", "next token": "next", "sink": "first", "delimiter": "delimiters",
    "rare token": "rare", "local": "window", "long-range": "distance", "broad": "entropy",
}  # fmt: skip
"""The measure by which a type's clearest heads come first; those that experiments show, by their strength."""


@shows_mistakes
def same_type(shown: AttentionView) -> None:
    """Average patterns of heads that have one type."""
    rows = attention_rows(shown.state)
    mine = str(shown.row["type"])
    counts = {name: sum(row["type"] == name for row in rows.values()) for name in TYPES}
    options = [SAME, *(name for name in TYPES if counts[name])]
    section("Heads of one type side by side", "same-type", "attention type")
    name = linked(
        st.selectbox,
        "Type",
        "type",
        options,
        SAME,
        format_func=lambda one: "the chosen head's type" if one == SAME else f"{one} · {counts[one]}",
    )
    name = mine if name == SAME else name
    st.markdown(f"**{plain(name.capitalize())}** – {plain(sentence(name))}")
    chosen = sorted((row for row in rows.values() if row["type"] == name), key=lambda row: -_clear(row, name))[:MOST]
    if counts[name] > MOST:
        st.caption(f"The {MOST} clearest of {counts[name]}, clearest first.")
    patterns = attention_patterns(shown.state)
    st.html(GRID)
    with st.container(horizontal=True, gap="small", key="grid-same-type"):
        for row in chosen:
            share = np.nan_to_num(patterns.share[row["layer"] - 1, row["head"] - 1])
            with st.container(border=True, width=212, height="stretch", gap="xsmall"):
                st.button(
                    f"Layer {row['layer']}, head {row['head']}",
                    key=f"look at {row['layer']} {row['head']}",
                    type="tertiary",
                    on_click=_go,
                    args=(row["layer"], row["head"]),
                )
                said = evidence_of(row, name).removeprefix("no rule holds: ")
                st.html(small_pattern(Pattern.of(share), row["next"] is None, show.theme(), said))
                st.caption(plain(shortened(said, 90)))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(
            "Thin bars: nearby tokens by distance, each picture on its own scale. Wide bars: shares of all attention, "
            "on the first token and on distant tokens."
        )
        show.downloads("heads of one type", lambda: pa.Table.from_pylist(chosen))


@st.fragment
@shows_mistakes
def roles(shown: AttentionView) -> None:
    """Types against topic roles, at the one layer that has both."""
    state = shown.state
    assert state.manifest is not None
    section("Do selective heads attend broadly?", "roles", "role", "attention type", "entropy")
    if not state.analysed:
        not_analysed(state)
        return
    found = tables(state)
    if not found.labelled:
        no_labels("A head's role")
        return
    stage = choose_stage(state.manifest)
    here = types_here(state)
    profiles = {row["head"]: row for row in found.pick("profiles", stage=stage, slicing=HEADS) if row["head"]}
    heads = [
        Head(row["type"], profiles[head]["role"], row["entropy"] if row["entropy"] is not None else float("nan"))
        for head, row in here.items()
        if head in profiles
    ]
    own = int(state.manifest.model["layer"])
    met = meeting(heads)
    st.markdown(plain(met.sentence))
    rows, by_layer = attention_rows(state), layer_roles(state, stage)
    every = [(*at, row["type"], by_layer[at]) for at, row in rows.items() if at in by_layer]
    meet = [(layer, type_, role) for layer, _, type_, role in every] or [(own, one.type, one.role) for one in heads]
    together = _together(tuple(meet))
    if together is not None:
        st.markdown(plain(together.sentence))
    counts = Counter((type_, role) for _, type_, role in meet)
    st.html(_cross(counts, together))
    where = "all layers" if every else f"layer {own}, the layer of this run's vectors"
    st.caption(
        f"Table: heads of {where}; roles at stage {stage}."
        + (" In parentheses: the mean count when roles are shuffled among the heads of each layer." if together else "")
        + (f" The first sentence is about layer {own}." if every else "")
    )


@st.cache_data(max_entries=16, show_spinner=False)
def _together(heads: tuple[tuple[int, str, str | None], ...]) -> Association | None:
    return association(heads)


def _cross(met: Mapping[tuple[str, str | None], int], together: Association | None) -> str:
    types = [name for name in TYPES if any(key[0] == name for key in met)]
    known = {key[1] for key in met}

    def cell(type_: str, role: str | None) -> str:
        count = met.get((type_, role), 0)
        if together is None:
            return str(count or "·")
        return f"{count or '·'} ({together.expected[type_, role]:.1f})"

    columns = [role for role in (*ROLES, *sorted(str(role) for role in known - {None, *ROLES})) if role in known]
    names: list[str | None] = [*columns, *([None] if None in known else [])]
    lines = [(safe(name), [cell(name, role) for role in names]) for name in types]
    return figure_table([safe(role or "no clear role") for role in names], -1, lines)


def _clear(row: Row, name: str) -> float:
    """The mixed ones are in no order but their layers'."""
    if name == MIXED:
        return -1000.0 * row["layer"] - row["head"]
    if name in _CLEAREST:
        return float(row[_CLEAREST[name]] or 0.0)
    strength = dict(zip(row["types"] or [], row["strength"], strict=False))
    return float(strength.get(name) or 0.0)


def _go(layer: int, head: int) -> None:
    decide("layer", layer)
    decide("head", head)
