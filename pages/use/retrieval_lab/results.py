"""The tab Results: what both ways find, which head gave what, and why a result was found."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import streamlit as st

from core.analysis.document_profile import Reliability
from core.retrieval.ways import Ranking
from core.runs.parquet import RowLookup
from pages.shared.cards import Card, cards_with_buttons
from pages.shared.components.in_view import bring_into_view, in_view
from pages.shared.data import documents, vector_docs
from pages.shared.embedding import WhyText
from pages.shared.heads_in_address import heads_named
from pages.shared.notices import among, shows_mistakes
from pages.shared.show import figure, theme
from pages.shared.text import drawn, plain, shortened
from pages.shared.url import decide, linked_clicks
from pages.shared.why_similar import corpus_text, why_similar
from pages.use.retrieval_lab.controls import question_text
from pages.use.retrieval_lab.figures import votes_figure
from pages.use.retrieval_lab.state import LabView, ranked, way_sentence

WHY = "why"


@shows_mistakes
def results_section(shown: LabView) -> None:
    """Both rankings with the kept heads; nothing but these sums is computed when a switch moves."""
    question = shown.question
    st.subheader("What the kept heads find", anchor="results")
    assert shown.state.manifest is not None
    can_be_found = question.relevant
    if shown.state.manifest.is_sampled:
        can_be_found &= frozenset(vector_docs(shown.state).tolist())
    wanted = len(can_be_found)
    to_find = f" {wanted} relevant document{'s' if wanted != 1 else ''}, marked ✓." if wanted else ""
    st.caption(f"For “{question_text(question)}”.{to_find}{among(shown.state)}")
    table = documents(shown.state)
    found = [ranked(shown, way) for way in shown.ways]
    for column, way, side, ranking in zip(
        st.columns(2, gap="medium"), shown.ways, ("left", "right"), found, strict=True
    ):
        with column, st.container(key=f"results-{side}", gap="xsmall"):
            st.markdown(f"##### {plain(way)}", help=way_sentence(way, shown.stage, shown.rest))
            _cards(table, ranking, question.relevant, shown.weights, side)
    for column, way, side, ranking in zip(
        st.columns(2, gap="medium"), shown.ways, ("left", "right"), found, strict=True
    ):
        with column:
            _votes(table, ranking, way, side, shown.reliability)


@shows_mistakes
def why_section(shown: LabView) -> None:
    """Why the model finds the clicked result near the question; it is in the address as the document's number."""
    count = len(documents(shown.state))
    doc = linked_clicks({WHY: (range(count + 1), 0)})[WHY] - 1
    if doc < 0:
        return
    question = shown.question
    in_view(WHY)
    asked = WhyText(shortened(question.text, 90), question.text, query=question.own < 0)
    if question.own >= 0:
        asked = corpus_text(shown.state, question.own)
    st.button("Close", icon=":material/close:", key="close why", on_click=decide, args=(WHY, 0))
    why_similar(shown.state, asked, corpus_text(shown.state, doc))


def _cards(table: RowLookup, found: Ranking, relevant: frozenset[int], weights: np.ndarray, side: str) -> None:
    items: list[Card] = []
    numbers, rows = (found.docs + 1).tolist(), table.rows(found.docs).to_pylist()
    for row, number, score, given in zip(rows, numbers, found.scores, found.by_head, strict=True):
        mark = "✓ " if number - 1 in relevant else ""
        meta = [row["topic"], f"{score:.3f}".replace("-", "−"), _most(given, weights)]
        items.append(Card(f"{len(items) + 1}. {mark}{row['title']}", meta, row["text"]))

    def clicked(place: int) -> None:
        decide(WHY, numbers[place])
        bring_into_view(WHY)

    keys = [f"why {side} {place}" for place in range(len(items))]
    cards_with_buttons(items, "Why?", keys, clicked)


def _most(given: np.ndarray, weights: np.ndarray) -> str:
    """The heads that gave a document most: together half of what it got."""
    on = np.flatnonzero((weights > 0) & (given > 0))
    if not len(on):
        return "no head contributes to it"
    order = on[np.argsort(-given[on], kind="stable")]
    enough = int(np.searchsorted(given[order].cumsum(), given[order].sum() / 2)) + 1
    return "most from " + heads_named(sorted(int(head) + 1 for head in order[: min(enough, 5)]))


_RELIABILITY = (
    " Below each head's number: for how many of 100 corpus documents its nearest topic is the right one; paler = less "
    "reliable. The ranking ignores this; the preset “By reliability” uses it."
)


def _votes(table: RowLookup, found: Ranking, way: str, side: str, reliability: Reliability | None) -> None:
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
        votes_figure(found.by_head, [drawn(shortened(title, 60)) for title in titles], theme(), reliability),
        f"votes-{side}",
        data,
        caption=f"What each head contributes to each document by “{way}”."
        + (_RELIABILITY if reliability is not None else ""),
        alt=f"Heat map of documents by heads: what each head contributes to each of the first {len(titles)} by {way}.",
    )
