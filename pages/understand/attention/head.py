"""One head on the Attention page: its type with what decided it, its figures, and its average pattern."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import streamlit as st

from core.analysis.attention_measures import OFFSETS
from core.analysis.attention_types import sentence
from core.runs.tables import Row
from pages.shared import show
from pages.shared.attention import attention_patterns, evidence_of
from pages.shared.figures.table import figure_table, interval, number
from pages.shared.glossary import why
from pages.shared.notices import shows_mistakes
from pages.shared.text import plain, safe
from pages.understand.attention.figures import NEAR, Pattern, pattern_figure
from pages.understand.attention.sections import AttentionView

WORDS = {
    "previous": "Token before",
    "same": "Itself",
    "next": "Token after",
    "first": "First token",
    "delimiters": "Delimiters",
    "rare": "Rare tokens",
    "window": "Within 8 tokens",
    "distance": "Mean distance, tokens",
    "entropy": "Entropy",
}
"""The measures as people read them, in the order of the table."""


@shows_mistakes
def verdict(shown: AttentionView) -> None:
    """The type, the rule in words, and the numbers that decided."""
    row = shown.row
    with st.container(border=True):
        st.subheader(f"{shown.name}: {plain(row['type'])}", help=why("attention type"), anchor=False)
        st.markdown(plain(sentence(row["type"])))
        said = evidence_of(row, row["type"]).removeprefix("no rule holds: ")
        st.markdown(f"**Evidence** – {plain(said)}")
        for other in (row["types"] or [])[1:]:
            st.markdown(f"**Also {plain(other)}** – {plain(evidence_of(row, other))}")
    st.html(figure_table(["share", "shuffled"], 0, [(safe(WORDS[name]), _cells(row, name)) for name in WORDS]))
    st.caption(
        "Means over all tokens that have a choice, with 95 % intervals over documents, beside what shuffled positions "
        "give.",
        help=why("shuffled", "interval", "entropy", "sink", "delimiters", "rare tokens"),
    )


def _cells(row: Row, name: str) -> list[str]:
    value, shuffled = row[name], row[f"{name}_shuffled"]
    if value is None:
        return ["not possible", "–"]
    if name == "distance":
        ends = f"{row['distance_low']:.0f} to {row['distance_high']:.0f}"
        return [f"{value:.0f}<small>{safe(ends)}</small>", f"{shuffled:.0f}"]
    if name == "entropy":
        return [f"{safe(number(value))}<small>{safe(interval(row, name))}</small>", "the same"]
    ends = f"{row[f'{name}_low']:.1%} to {row[f'{name}_high']:.1%}"
    return [f"{value:.1%}<small>{safe(ends)}</small>", f"{shuffled:.1%}"]


@shows_mistakes
def average(shown: AttentionView) -> None:
    """How far away it looks, on average."""
    st.subheader("Its average pattern", help=why("attention", "sink", "shuffled"), anchor=False)
    patterns, row = attention_patterns(shown.state), shown.row
    share, shuffled = patterns.share[shown.layer - 1, shown.head - 1], patterns.shuffled[shown.layer - 1]
    if not np.isfinite(share).all():
        st.info(
            "No document of the sample has two tokens, so that there is nothing to look at.", icon=":material/info:"
        )
        return
    found, causal = Pattern.of(share), row["next"] is None
    show.figure(
        pattern_figure(found, Pattern.of(shuffled), causal, show.theme()),
        f"pattern of layer {shown.layer} head {shown.head}",
        pa.table({"offset": OFFSETS, "share": share, "shuffled": shuffled}),
        "On top all of its attention: red on the text's first token, grey 32 or more tokens away, blue nearer. Below "
        "it the near part by distance." + (" A causal model never looks ahead." if causal else ""),
        alt=f"{shown.name} looks {found.first:.0%} at the first token, {found.before:.0%} far before, "
        f"{found.near.sum():.0%} near by, most at distance {int(NEAR[int(np.argmax(found.near))])}, and "
        f"{found.after:.0%} far after.",
    )
