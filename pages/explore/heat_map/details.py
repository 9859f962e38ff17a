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
from pages.shared.document_list import LONG, READING, document_list
from pages.shared.figures.similarity import similarity_figure
from pages.shared.glossary import why
from pages.shared.notices import among, no_vectors
from pages.shared.show import cells, figure, theme
from pages.shared.text import plain, shortened
from pages.shared.topic_link import topic_link
from pages.shared.url import decide

NEIGHBOURS = 6
MOST_ROWS = 1_000


def chosen() -> bool:
    """Whether something was clicked, or is in the address."""
    return bool(st.session_state["doc"] or st.session_state["block"] != NO_TOPIC or st.session_state["head"])


def close() -> None:
    """Nothing is chosen any more."""
    for name, value in {"doc": 0, "block": NO_TOPIC, "head": 0}.items():
        decide(name, value)


def details(state: RunState, view: HeatMapView) -> None:
    """The document, the topic or the head that was clicked last."""
    doc, topic, row = st.session_state["doc"] - 1, st.session_state["block"], st.session_state["head"]
    if doc >= 0:
        _document(state, doc, row, st.session_state["panel"], view.reference)
    elif topic != NO_TOPIC:
        _topic(state, topic, view.stage, view.reference)
    else:
        _head(row)


def _document(state: RunState, doc: int, row: int, stage: int, reference: str) -> None:
    assert state.manifest is not None
    table = documents(state)
    st.subheader(f"Document {doc + 1} in {'the ' if row == 0 else ''}{row_name(row)}", anchor=False)
    document = table.row(doc)
    with st.container(height=READING if len(document["text"]) > LONG else "content", border=False):
        open_card(_card(document))
    if row:
        _profile_link(row)
    st.markdown("##### Similarity to its topic", help=why("similarity", "stage"))
    if drawable(state, reference)[doc] >= 0:
        near = [own_topic_similarity(state, other, reference)[doc] for other in state.manifest.stages]
        values = np.stack(near, axis=1)
        _by_stage(values, state.manifest.stages, row, stage)
    else:
        st.caption(
            "This document's topic is not in the run's list of topics."
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
        st.caption("This run has no other document.")
    pairs = zip(found.docs.tolist(), found.similarity.tolist(), strict=True)
    cards([_card(table.row(other), score) for other, score in pairs])
    st.caption(f"By cosine similarity. Click a document to read it.{among(state)}")


def _by_stage(values: np.ndarray, stages: tuple[int, ...], row: int, stage: int) -> None:
    rows = [row_name(number) for number in range(len(values))]
    data = {"row": rows} | {f"stage {number}": values[:, index] for index, number in enumerate(stages)}
    highest = int(np.nanargmax(values[:, stages.index(stage)]))
    figure(
        similarity_figure(values, stages, row, stage, theme()),
        "document-similarity",
        pa.table(data),
        alt="Similarity to the document's topic in the full embedding and each head, by stage. Highest at stage "
        f"{stage}: {rows[highest]}.",
    )


def _topic(state: RunState, topic: int, stage: int, reference: str) -> None:
    docs = np.flatnonzero(drawable(state, reference) == topic)
    near = own_topic_similarity(state, stage, reference)[docs]
    every = len(docs)
    order = np.argsort(-near[:, 0], kind="stable")[:MOST_ROWS] if len(docs) else docs
    docs, near = docs[order], near[order]
    table = documents(state).rows(docs, ["title", "tokens"])
    st.subheader(plain(shortened(topics(state).names[topic], 200)), anchor=False)
    topic_link(topics(state).names[topic], "Heads that follow this topic")
    first = f"The first {len(docs):,} of {every:,}" if len(docs) < every else f"{every:,}"
    what = "examples" if reference == EXAMPLES else "name"
    st.caption(
        f"{first} document{'' if every == 1 else 's'}, nearest to the topic's {what} first, at stage {stage}. Select a "
        "row to read it."
    )
    document_list(
        docs.tolist(),
        {
            "title": cells(table["title"].to_pylist()),
            "full embedding": near[:, 0],
            "best head": 1 + np.argmax(near[:, 1:], axis=1),
            "its similarity": near[:, 1:].max(axis=1, initial=-1.0),
            "tokens": table["tokens"].to_numpy(),
            "document": docs + 1,
        },
        f"documents of topic {topic}",
        lambda doc: decide("doc", doc + 1),
        {
            "full embedding": st.column_config.NumberColumn(format="%.3f", help=why("similarity")),
            "its similarity": st.column_config.NumberColumn(format="%.3f"),
            "title": st.column_config.TextColumn(width="medium"),
            "document": st.column_config.NumberColumn("no.", width="small"),
        },
        height=480,
    )


def _head(head: int) -> None:
    st.subheader(f"Head {head}", anchor=False)
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
