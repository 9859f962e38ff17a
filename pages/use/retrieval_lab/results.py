"""The documents that two ways find, side by side, and what each head gave them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import streamlit as st

from core.retrieval.ways import WAYS, Heads, Ranking, Seen, rank
from core.runs.parquet import RowLookup
from pages.shared.cards import Card, cards
from pages.shared.data import documents, row_of, vector_docs
from pages.shared.head_choice import heads_named
from pages.shared.kept import among
from pages.shared.sections import told
from pages.shared.show import figure, theme
from pages.shared.text import drawn, plain, shortened
from pages.use.retrieval_lab.controls import asked_for
from pages.use.retrieval_lab.figures import votes_figure
from pages.use.retrieval_lab.state import Shown

SHOWN = 10


@told
def results_section(shown: Shown, seen: Seen) -> None:
    """Both rankings with the heads that are on; nothing but these sums is computed when a switch moves."""
    question = shown.question
    st.subheader("What they find", anchor=False)
    docs = vector_docs(shown.state)
    assert shown.state.manifest is not None
    can_be_found = question.relevant
    if shown.state.manifest.is_sampled:
        can_be_found &= frozenset(docs.tolist())
    wanted = len(can_be_found)
    to_find = f" {wanted} document{'s' if wanted != 1 else ''} should be found, marked ✓." if wanted else ""
    st.caption(f"For “{asked_for(question)}”.{to_find}{among(shown.state)}")
    table = documents(shown.state)
    for column, way, side in zip(st.columns(2, gap="medium"), shown.ways, ("left", "right"), strict=True):
        with column:
            st.markdown(f"##### {plain(way)}", help=WAYS[way].sentence)
            found = ranked(way, seen, shown.heads, row_of(shown.state, question.own))
            found = replace(found, docs=docs[found.docs])
            _cards(table, found, question.relevant, shown.weights)
            _votes(table, found, way, side)


def ranked(way: str, seen: Seen, heads: Heads, own: int, count: int = SHOWN) -> Ranking:
    """The best documents; one that is the question itself is not among them."""
    found = rank(way, seen, heads, count + 1)
    others = found.docs != own
    return Ranking(found.docs[others][:count], found.scores[others][:count], found.by_head[others][:count])


def _cards(table: RowLookup, found: Ranking, relevant: frozenset[int], weights: np.ndarray) -> None:
    items = []
    for place, (doc, score, given) in enumerate(zip(found.docs.tolist(), found.scores, found.by_head, strict=True), 1):
        row = table.row(doc)
        mark = "✓ " if doc in relevant else ""
        meta = [row["topic"], f"{score:.3f}", _most(given, weights)]
        items.append(Card(f"{place}. {mark}{row['title']}", meta, row["text"]))
    cards(items)


def _most(given: np.ndarray, weights: np.ndarray) -> str:
    """The heads that gave a document most: together half of what it got."""
    on = np.flatnonzero((weights > 0) & (given > 0))
    if not len(on):
        return "no head gave it anything"
    order = on[np.argsort(-given[on], kind="stable")]
    enough = int(np.searchsorted(given[order].cumsum(), given[order].sum() / 2)) + 1
    return "most from " + heads_named(sorted(int(head) + 1 for head in order[: min(enough, 5)]))


def _votes(table: RowLookup, found: Ranking, way: str, side: str) -> None:
    titles = table.rows(found.docs, ["title"])["title"].to_pylist()

    def data() -> pa.Table:
        ranks, heads = found.by_head.shape
        return pa.table(
            {
                "place": np.repeat(np.arange(1, ranks + 1), heads),
                "doc": np.repeat(found.docs + 1, heads),
                "head": np.tile(np.arange(1, heads + 1), ranks),
                "given": found.by_head.reshape(-1),
            }
        )

    figure(
        votes_figure(found.by_head, [drawn(shortened(title, 60)) for title in titles], theme()),
        f"votes-{side}",
        data,
        caption=f"What each head gave each document by ‘{way}’.",
        alt=f"Documents by heads: what each head gave each of the first {len(titles)} documents by {way}.",
    )
