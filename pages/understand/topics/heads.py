"""From a topic to its heads: all heads by how well they follow it, and its documents to read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import streamlit as st

from core.analysis.cautions import TOPIC_MATCH, cautions, ruled_out
from core.analysis.head_measures import LabelledSample
from core.analysis.profiles import LEAST_IN_TOPIC
from core.analysis.topic_heads import FOLLOWS, TopicHeads, choose_documents, topic_heads, topic_sentence
from core.analysis.wording import plural
from core.retrieval.head_index import largest
from core.runs.run import Run
from pages.shared.cards import Card, cards
from pages.shared.data import (
    RunState,
    documents,
    head_index,
    labels,
    own_similarity,
    tables,
    topics,
    vector_docs,
)
from pages.shared.empty_states import no_labels
from pages.shared.glossary import why
from pages.shared.notices import among, circular_notice, shows_mistakes
from pages.shared.run_version import FIGURES, one_version
from pages.shared.show import figure, theme
from pages.shared.text import plain, shortened
from pages.shared.url import linked
from pages.understand.topics.heads_figure import heads_figure

PROFILE = "pages/explore/head_profile/page.py"
TO_READ, MOST_LINKS = 6, 6


@st.fragment
@shows_mistakes
def heads_of_topic(state: RunState, stage: int) -> None:
    """A topic of one's choice, the heads that follow it, and its documents."""
    found = topics(state)
    enough = [name for name, count in zip(found.names, found.documents, strict=True) if count >= LEAST_IN_TOPIC]
    if not tables(state).labelled or len(enough) < 2:
        no_labels("Ranking heads by a topic")
        return
    counts = dict(zip(found.names, found.documents.tolist(), strict=True))
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.subheader("Which heads follow a topic?", help=why("AUC", "random slices", "interval"), anchor="topic-heads")
        topic = linked(
            st.selectbox,
            "Topic",
            "topic",
            enough,
            max(enough, key=counts.__getitem__),
            format_func=lambda name: f"{shortened(name, 120)} ({plural(counts[name], 'document')})",
        )
    number = found.names.index(topic)
    compared = _compared(state.run, state.analysis_version, state, stage, number, len(enough))
    if compared is None:
        st.info("Too few documents of this topic have vectors in this run.", icon=":material/info:")
        return
    with left:
        _heads(state, stage, compared)
    with right:
        head = int(compared.ranking[0])
        _read(state, stage, number, head)


def _heads(state: RunState, stage: int, compared: TopicHeads) -> None:
    caution = ruled_out(cautions(tables(state)), TOPIC_MATCH, stage)
    if caution is None:
        st.markdown(plain(topic_sentence(compared)))
        _links(compared.heads(FOLLOWS)[:MOST_LINKS])
    else:
        st.warning(plain(caution.sentence), icon=":material/warning:")
    circular_notice(tables(state))
    rows = range(len(compared.auc.value))
    data = {
        "head": list(rows),
        **{name: getattr(compared.auc, name) for name in ("value", "low", "high")},
        "p_against_random_slices": [None, *compared.p_slices.tolist()],
        "p_against_chance": [None, *compared.p_chance.tolist()],
        "verdict": [None, *compared.verdicts],
    }
    named = compared.heads(FOLLOWS)
    figure(
        heads_figure(compared, theme()),
        "heads of a topic",
        pa.table(data),
        f"Every head, best first, with its 95 % CI: {compared.documents:,} documents of the topic against "
        f"{compared.others:,} others, by the cosine with the topic's name. Filled heads lie beyond random slices (5 %, "
        f"corrected for the heads) and beyond chance (5 %, corrected for heads and {compared.topics} topics)."
        f"{among(state, 'Compared')}",
        alt=f"Heads ranked by how well they follow it; {_list(named) if named else 'none'} beyond random slices.",
    )


def _links(heads: list[int]) -> None:
    if not heads:
        return
    kept = {name: value for name, value in st.query_params.items() if name in ("run", "stage")}
    with st.container(horizontal=True, gap="small"):
        for head in heads:
            st.page_link(
                PROFILE,
                label=f"Profile of head {head}",
                icon=":material/person_search:",
                query_params={**kept, "head": str(head)},
            )


def _list(heads: list[int]) -> str:
    return f"head{'s' if len(heads) > 1 else ''} {', '.join(map(str, heads))}"


def _read(state: RunState, stage: int, topic: int, head: int) -> None:
    """The topic's documents, nearest to its name in ``head`` first."""
    st.subheader("Its documents", anchor="topic-documents")
    own = own_similarity(state, stage)[:, head]
    docs = np.flatnonzero((labels(state) == topic) & np.isfinite(own))
    shown = docs[largest(own[docs], min(TO_READ, len(docs)))]
    st.caption(
        f"{len(shown):,} of {len(docs):,}, most similar to the topic's name in head {head} first. Open one to read it."
    )
    rows = documents(state).rows(shown, ["title", "topic", "text"]).to_pylist()
    cards([Card(row["title"], [], row["text"], float(own[doc])) for row, doc in zip(rows, shown, strict=True)])


@st.cache_resource(max_entries=256, show_spinner="Comparing heads with random slices …")
@one_version(*FIGURES)
def _compared(run: Run, version: str, _state: RunState, stage: int, topic: int, topics_: int) -> TopicHeads | None:
    docs = vector_docs(_state)
    known = labels(_state)[docs]
    chosen = choose_documents(known, topic)
    index, names = head_index(_state, stage), topics(_state).vectors[stage].astype(np.float32)
    assert _state.manifest is not None
    centre = bool(_state.manifest.steps["analyse"].options.get("centre"))
    rows = index.vectors[chosen].astype(np.float32)
    mean = index.vectors.mean(axis=0, dtype=np.float32).reshape(-1) if centre else np.zeros(names.shape[1], np.float32)
    sample = LabelledSample(rows.reshape(len(rows), -1), known[chosen], names, mean, centre, rows.shape[1], index.space)
    return topic_heads(sample, topic, topics_)
