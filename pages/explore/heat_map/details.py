"""What a click on the heat map opens: a document, a head, or a topic's documents."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import streamlit as st

from core.model.stages import STAGES
from core.runs.tables import Row
from pages.explore.heat_map.state import NO_TOPIC, HeatMapView, drawable, row_name
from pages.shared.cards import Card, cards, open_card
from pages.shared.corpus import EXAMPLES, own_topic_similarity
from pages.shared.data import RunState, documents, labels, neighbours, row_of, topics
from pages.shared.figures.similarity import similarity_figure
from pages.shared.glossary import why
from pages.shared.notices import among, no_vectors
from pages.shared.show import cells, figure, theme
from pages.shared.text import plain, shortened
from pages.shared.topic_link import topic_link
from pages.shared.url import decide

NEIGHBOURS = 6
MOST_ROWS = 1_000


def details(state: RunState, view: HeatMapView) -> None:
    """The document, the topic or the head that was clicked last, or how to click."""
    doc, topic, row = st.session_state["doc"] - 1, st.session_state["block"], st.session_state["head"]
    st.divider()
    if doc >= 0:
        _document(state, doc, row, st.session_state["panel"], view.reference)
    elif topic != NO_TOPIC:
        _topic(state, topic, view.stage, view.reference)
    elif row:
        _head(row)
    else:
        st.caption("Click a cell to read its document, a head's name for its profile, a topic's name for its list.")


def _document(state: RunState, doc: int, row: int, stage: int, reference: str) -> None:
    assert state.manifest is not None
    table = documents(state)
    st.subheader(f"Document {doc + 1} in the {row_name(0)}" if row == 0 else f"Document {doc + 1} in {row_name(row)}")
    left, right = st.columns([3, 2], gap="medium")
    with left:
        open_card(_card(table.row(doc)))
        if row:
            _profile_link(row)
    with right:
        st.markdown("##### Similarity to its topic", help=why("similarity", "stage"))
        if drawable(state, reference)[doc] >= 0:
            near = [own_topic_similarity(state, other, reference)[doc] for other in state.manifest.stages]
            values = np.stack(near, axis=1)
            _by_stage(values, state.manifest.stages, row, stage)
        else:
            st.caption(
                "This document has no topic from the run's list."
                if labels(state)[doc] < 0
                else "This document cannot be compared with its topic's examples: there are too few."
            )
    where = f"at stage {stage} {STAGES[stage].name}"
    st.markdown(f"##### Nearest in {row_name(row) if row else 'the full embedding'}, {where}")
    if row_of(state, doc) < 0:
        no_vectors(state, doc, "nearest documents")
        return
    found = neighbours(state, stage, row, doc, NEIGHBOURS)
    if not len(found.docs):
        st.caption("There is no other document in this run.")
    pairs = zip(found.docs.tolist(), found.similarity.tolist(), strict=True)
    cards([_card(table.row(other), score) for other, score in pairs])
    st.caption(f"By cosine of the two documents. Open one to read it.{among(state)}")


def _by_stage(values: np.ndarray, stages: tuple[int, ...], row: int, stage: int) -> None:
    rows = [row_name(number) for number in range(len(values))]
    data = {"row": rows} | {f"stage {number}": values[:, index] for index, number in enumerate(stages)}
    figure(similarity_figure(values, stages, row, stage, theme()), "document-similarity", pa.table(data))


def _topic(state: RunState, topic: int, stage: int, reference: str) -> None:
    docs = np.flatnonzero(drawable(state, reference) == topic)
    near = own_topic_similarity(state, stage, reference)[docs]
    every = len(docs)
    order = np.argsort(-near[:, 0], kind="stable")[:MOST_ROWS] if len(docs) else docs
    docs, near = docs[order], near[order]
    table = documents(state).rows(docs, ["title", "tokens"])
    st.subheader(plain(shortened(topics(state).names[topic], 200)))
    topic_link(topics(state).names[topic], "Heads that follow this topic")
    key = f"documents of topic {topic}"

    def opened() -> None:
        rows = st.session_state[key].selection.rows
        if rows:
            decide("doc", int(docs[rows[0]]) + 1)

    st.dataframe(
        {
            "document": docs + 1,
            "title": cells(table["title"].to_pylist()),
            "full embedding": near[:, 0],
            "best head": 1 + np.argmax(near[:, 1:], axis=1),
            "its similarity": near[:, 1:].max(axis=1, initial=-1.0),
            "tokens": table["tokens"].to_numpy(),
        },
        hide_index=True,
        key=key,
        on_select=opened,
        selection_mode="single-row",
        column_config={
            "full embedding": st.column_config.NumberColumn(format="%.3f", help=why("similarity")),
            "its similarity": st.column_config.NumberColumn(format="%.3f"),
            "title": st.column_config.TextColumn(width="large"),
        },
    )
    first = f"The first {len(docs):,} of {every:,}" if len(docs) < every else f"{every:,}"
    what = "examples" if reference == EXAMPLES else "name"
    st.caption(f"{first} documents, nearest to the topic's {what} first, at stage {stage}. Select one to read it.")


def _head(head: int) -> None:
    st.subheader(f"Head {head}")
    _profile_link(head)

    def sort() -> None:
        st.session_state["sort"] = head

    st.button(f"Sort the documents by head {head}", icon=":material/sort:", on_click=sort)


def _profile_link(head: int) -> None:
    st.page_link(
        "pages/explore/head_profile/page.py",
        label=f"Profile of head {head}",
        icon=":material/person_search:",
        query_params={"head": str(head)},
    )


def _card(row: Row, score: float | None = None) -> Card:
    meta = [row["topic"]]
    if score is None:
        meta.append(f"{row['tokens']:,} tokens{', cut' if row['truncated'] else ''}")
    return Card(row["title"], meta, row["text"], score)
