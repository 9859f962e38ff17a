"""The nearest documents to read: by the full embedding, by one head, and by the votes of all heads."""

from __future__ import annotations

import numpy as np
import streamlit as st

from core.runs.parquet import RowLookup
from pages.shared.cards import Card, cards
from pages.shared.data import documents
from pages.shared.glossary import why
from pages.shared.head_choice import heads_named
from pages.shared.kept import among
from pages.shared.sections import told
from pages.use.your_document.state import NEIGHBOURS, Shown


@told
def neighbours_section(shown: Shown) -> None:
    """Three lists side by side."""
    st.subheader("Nearest documents of the corpus", anchor=False)
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
        cards([_card(table, doc, [_voters(given), f"{share:.0%} of these votes"]) for doc, given, share in items])
    st.caption(
        "Numbers are cosines. Votes: each head gives its nearest document its weight, the next one half of it, and so "
        "on; a head weighs more the more strongly it speaks and the better it tells documents apart. "
        f"Open a document to read it.{among(shown.state)}"
    )


def _voters(given: np.ndarray) -> str:
    """The heads whose vote makes a difference: at least a hundredth of what the document got."""
    heads = [int(head) + 1 for head in np.flatnonzero(given >= 0.01 * max(given.sum(), 1e-12))]
    return heads_named(heads)


def _card(table: RowLookup, doc: int, meta: list[str], score: float | None = None) -> Card:
    row = table.row(doc)
    return Card(row["title"], [row["topic"], *meta], row["text"], score)
