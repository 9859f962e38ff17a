"""One text on the Attention page: a head's matrix, and the words shaded by where it looks from one of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import streamlit as st

from core.model.attention import Matrix
from core.uploads import MAX_CHARACTERS
from pages.shared import show
from pages.shared.components.in_view import bring_into_view, in_view
from pages.shared.controls import choose_document
from pages.shared.data import documents
from pages.shared.embedding import attention_matrix
from pages.shared.figures.words import strongest_words, words_html
from pages.shared.notices import shows_mistakes
from pages.shared.section import section
from pages.shared.text import plain, shortened
from pages.shared.url import linked
from pages.understand.attention.figures import matrix_figure
from pages.understand.attention.sections import AttentionView

SOURCES = {"none": "No text", "corpus": "A corpus document", "own": "Your own text"}
_OWN, _ASKED = "text for attention", "the text whose attention was asked for"
"""Keys of the session: what is being written, and what was sent off. Neither is ever in the address or the log."""


@shows_mistakes
def in_a_text(shown: AttentionView) -> None:
    """What the head does in a text, by the run's own model.

    No fragment: within one that is run again, the fragment that watches a job would not be called any more.
    """
    section(f"{shown.name} in a text", "text", "attention")
    source = linked(
        st.segmented_control,
        "Text",
        "text",
        list(SOURCES),
        "none",
        format_func=SOURCES.__getitem__,
        required=True,
    )
    if source == "none":
        st.caption("The run's model reads the text you choose. This takes a moment.")
        return
    text = _of_the_corpus(shown) if source == "corpus" else _own()
    if not text:
        return
    found = attention_matrix(shown.state, text, shown.layer)
    if found is not None:
        _looked(shown, text, found)


def _of_the_corpus(shown: AttentionView) -> str | None:
    doc = choose_document(shown.state)
    return None if doc is None else str(documents(shown.state).row(doc, ["text"])["text"])


def _own() -> str | None:
    with st.form("attention text", border=False):
        st.text_area(
            "Your text",
            key=_OWN,
            height=110,
            max_chars=MAX_CHARACTERS,
            persist_state="session",
            placeholder="A sentence or two, in any language that the model knows …",
        )
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.form_submit_button("Show its attention", icon=":material/visibility:", on_click=_ask)
            st.caption("The text stays in this session. It is not stored, and links do not contain it.")
    return st.session_state.get(_ASKED)


def _ask() -> None:
    st.session_state[_ASKED] = str(st.session_state.get(_OWN) or "").strip() or None
    bring_into_view(_ASKED)


def _looked(shown: AttentionView, text: str, found: Matrix) -> None:
    tokens = [piece.text for piece in found.pieces]
    numbers = list(range(1, len(tokens) + 1))
    in_view(_ASKED)
    left, right = st.columns([2, 1], gap="medium")
    with right:
        token = linked(
            st.selectbox,
            "From token",
            "token",
            numbers,
            numbers[-1],
            format_func=lambda number: f"{number} · {shortened(tokens[number - 1], 40) or '␣'}",
            help="Framed in the matrix. A causal model only looks back: the last token sees the whole text.",
        )
        seen = found.seen_from(token - 1)
        words = strongest_words(text, seen, shown.head)
        if words:
            st.markdown(plain(f"It attends most to {', '.join(f'“{word}”' for word in words)}."))
        st.html(words_html(text, seen, shown.head, chosen=token - 1))
    with left:
        weights = found.weights[shown.head - 1].astype(np.float32)
        cut = f" The model read the first {len(tokens)} of {found.total:,} tokens." if found.total > len(tokens) else ""
        show.figure(
            matrix_figure(weights, tokens, token - 1, show.theme()),
            "attention matrix",
            lambda: _table(weights, tokens),
            f"Rows attend to columns; each row adds up to 100 %. Colours are clipped at the 98th percentile.{cut}",
            alt=f"Attention matrix of {shown.name.lower()}, {len(tokens)} by {len(tokens)} tokens. Token {token} "
            f"attends most to {' and '.join(words) or 'no single word'}.",
        )


def _table(weights: np.ndarray, tokens: list[str]) -> pa.Table:
    count = len(tokens)
    place = np.indices((count, count)).reshape(2, -1)
    return pa.table(
        {
            "from": place[0] + 1,
            "from_token": [tokens[at] for at in place[0]],
            "to": place[1] + 1,
            "to_token": [tokens[at] for at in place[1]],
            "share": weights.ravel(),
        }
    )
