"""The choices of the page Your document: the head, the part of a long document, and what was cut."""

from __future__ import annotations

import streamlit as st

from pages.shared.controls import choose_head
from pages.shared.embedding import MOST_CHUNKS, Reading
from pages.shared.text import plain
from pages.shared.url import choice_from_url, choice_to_url

_MOST_PILLS = 64
_LITTLE = 12
"""Tokens below which a profile says little."""


def head_pills(heads: int) -> int:
    """The head, a click away; of very many heads a list."""
    if heads > _MOST_PILLS:
        return choose_head(heads)
    numbers = list(range(1, heads + 1))
    choice_from_url("head", numbers, 1)
    head = st.pills("Head", numbers, key="head", required=True, help="Heads are counted from 1.")
    head = int(head or 1)
    choice_to_url("head", head, 1)
    return head


def length_notes(found: Reading) -> bool:
    """What of the text the model saw; whether a long one is to be read whole, in chunks."""
    if found.reach.truncated:
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            st.markdown(f":material/content_cut: The model reads the **{plain(found.reach)}** in one piece.")
            return st.toggle(
                "Read all of it, in chunks",
                key="chunks",
                persist_state="session",
                help=f"Each chunk gets a profile of its own, along the document. At most {MOST_CHUNKS} chunks.",
            )
    if found.reach.total < _LITTLE:
        st.info(
            f"Only {found.reach.total} tokens: a profile of so little text says little.", icon=":material/short_text:"
        )
    else:
        st.caption(f"The model reads {plain(found.reach)}.")
    return False


def part_control(found: Reading) -> int:
    """Which part of a document in chunks the page is about: 0 is the beginning, as the model reads it in one piece."""
    if len(found.parts) == 1:
        return 0
    if st.session_state.get("part", 0) not in range(len(found.parts)):
        st.session_state["part"] = 0

    def name(part: int) -> str:
        if part == 0:
            return f"Beginning, {found.parts[0].tokens:,} tokens"
        chunk = found.parts[part]
        return f"Chunk {part}, {chunk.tokens:,} tokens: {chunk.text[:40]} …"

    return int(
        st.selectbox(
            "Part of the document", range(len(found.parts)), key="part", format_func=name, persist_state="session"
        )
        or 0
    )
