"""Small pieces of HTML that Streamlit has no widget for; every text in them is escaped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st

from core.runs.tables import Row
from pages.shared.figures.table import Form, interval, number
from pages.shared.glossary import why
from pages.shared.text import plain, safe, shortened
from pages.shared.theme import CSS

_STYLE = (
    f"<style>{CSS}"
    + """
.hs-cards { display: flex; flex-direction: column; gap: .5rem; }
.hs-card { border: 1px solid color-mix(in srgb, currentColor 16%, transparent); border-radius: .5rem;
  padding: .55rem .8rem; overflow-wrap: anywhere; }
.hs-card summary { cursor: pointer; list-style: none; }
.hs-card summary::-webkit-details-marker { display: none; }
.hs-card summary:focus-visible { outline: 2px solid currentColor; outline-offset: 3px; border-radius: .2rem; }
.hs-row { display: flex; gap: .7rem; align-items: baseline; }
.hs-score { font-variant-numeric: tabular-nums; font-weight: 600; min-width: 3.1rem; }
.hs-title { font-weight: 600; flex: 1; }
.hs-meta { opacity: .78; font-size: .85em; margin-top: .1rem; }
.hs-bar { height: .28rem; border-radius: .2rem; margin-top: .4rem;
  background: color-mix(in srgb, currentColor 12%, transparent); }
.hs-bar > span { display: block; height: 100%; border-radius: .2rem; background: var(--hs-positive); }
.hs-bar > span.hs-negative { background: var(--hs-negative); }
.hs-text { white-space: pre-wrap; margin-top: .55rem; line-height: 1.5; }
</style>
"""
)


@dataclass(frozen=True)
class Card:
    """A document: ``score`` is a cosine, or None."""

    title: str
    meta: Sequence[str | None]
    text: str
    score: float | None = None


def cards(items: Sequence[Card]) -> None:
    """Documents one under another; a click, or Enter, opens a document's text."""
    st.html(_STYLE + f'<div class="hs-cards">{"".join(_card(item) for item in items)}</div>')


def cards_with_buttons(
    items: Sequence[Card], label: str, keys: Sequence[str], on_click: Callable[[int], None], help: str | None = None
) -> None:
    """The same with a button beside each; ``on_click`` gets the card's place in the list."""
    st.html(_STYLE)
    for place, (item, key) in enumerate(zip(items, keys, strict=True)):
        with st.container(horizontal=True, vertical_alignment="center", gap="small", wrap=False):
            st.html(_card(item), width="stretch")
            st.button(label, key=key, type="tertiary", on_click=on_click, args=(place,), help=help)


def open_card(item: Card) -> None:
    """One document with its text shown."""
    meta = " · ".join(safe(part) for part in item.meta if part)
    st.html(
        f'{_STYLE}<div class="hs-card"><div class="hs-title">{safe(item.title)}</div>'
        f'<div class="hs-meta">{meta}</div><div class="hs-text">{safe(item.text)}</div></div>'
    )


def _card(item: Card) -> str:
    meta = " · ".join(safe(part) for part in item.meta if part)
    score = bar = ""
    if item.score is not None:
        number = f"{item.score:+.2f}".replace("-", "−")
        score = f'<span class="hs-score">{number}</span>'
        negative = ' class="hs-negative"' if item.score < 0 else ""
        bar = f'<div class="hs-bar"><span{negative} style="width: {min(1.0, abs(item.score)):.0%}"></span></div>'
    return (
        f'<details class="hs-card"><summary><div class="hs-row">{score}'
        f'<span class="hs-title">{safe(shortened(item.title, 110))}</span></div>'
        f'<div class="hs-meta">{meta}</div>{bar}</summary><div class="hs-text">{safe(item.text)}</div></details>'
    )


def figure_card(label: str, row: Row, name: str, against: str, *terms: str, form: Form = number) -> None:
    """One figure of a row in a frame: its value, its interval, and what to hold it against, a line each."""
    with st.container(border=True, width=176, height="stretch", gap=None):
        found = interval(row, name, form)
        help_ = why(*terms, *(["interval"] if found else [])) if terms else None
        st.metric(label, form(row.get(name)), help=help_)
        st.caption("  \n".join(plain(line) for line in (found, *against.split("\n")) if line))
