"""Lists of documents that open: a table whose rows are clicked, and the document to read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from pages.shared.cards import Card, open_card
from pages.shared.data import RunState, documents

LONG, READING = 500, 260
"""Characters of a text that is scrolled within its own box, and the box's height in pixels."""


def document_list(
    docs: Sequence[int],
    columns: Mapping[str, Any],
    key: str,
    on_open: Callable[[int], None],
    looks: Mapping[str, Any] | None = None,
    height: int = 230,
) -> None:
    """A table with a row per document of ``docs``; ``on_open`` gets the document (from 0) whose row is clicked.

    As in any callback, ``on_open`` runs before the page does: it sets session state, and draws nothing. Texts in
    ``columns`` must have been through ``cells``.
    """

    def opened() -> None:
        rows = st.session_state[key].selection.rows
        if rows and rows[0] < len(docs):
            on_open(int(docs[rows[0]]))

    st.dataframe(
        dict(columns),
        hide_index=True,
        key=key,
        height="content" if 36 * (len(docs) + 1) <= height else height,
        on_select=opened,
        selection_mode="single-row",
        column_config=dict(looks or {}),
    )


def read_document(state: RunState, doc: int) -> None:
    """The document, whole; a long text is scrolled in its own box."""
    row = documents(state).row(doc)
    st.subheader(f"Document {doc + 1}", anchor=False)
    cut = ", truncated for the model" if row["truncated"] else ""
    with st.container(height=READING if len(row["text"]) > LONG else "content", border=False):
        open_card(Card(row["title"], [row["topic"], f"{row['tokens']:,} tokens{cut}"], row["text"]))
