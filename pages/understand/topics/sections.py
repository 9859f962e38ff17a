"""The parts of the Topics page that are figures alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa
import streamlit as st

from core.analysis import study
from core.analysis.cautions import joined
from core.analysis.redundancy import cluster_order
from core.analysis.similarity import POOLINGS
from core.analysis.topic_match import WITHIN, by_construction
from core.analysis.wording import percent, plural
from core.model.stages import HEADS
from core.runs.tables import Row
from pages.shared.data import RunState, tables, topic_cosines, topics
from pages.shared.empty_states import no_labels
from pages.shared.figures.table import number
from pages.shared.glossary import why
from pages.shared.notices import circular_notice, shows_mistakes
from pages.shared.show import Remake, downloads, drawn_once, figure, theme
from pages.shared.text import plain, shortened
from pages.understand.topics.figures import counts_figure, map_figure, rates_figure, rates_of

MOST_BARS = 60
MOST_ROWS = 16


def _drawn(state: RunState, name: str, stage: int, draw: Callable[[], go.Figure]) -> go.Figure:
    return drawn_once(state.run, state.analysis_version, name, stage, theme(), draw)


@shows_mistakes
def topic_match(state: RunState, stage: int) -> None:
    """§3.5 for the full embedding, naive poolings and the best head; then every head."""
    st.subheader(
        "Is a document's topic the nearest one?",
        help=why("topic match", "full embedding", "interval"),
        anchor="topic-match",
    )
    rows = tables(state).pick("topic_match", stage=stage, slicing=HEADS)
    if not rows:
        no_labels("Topic match")
        return
    circular_notice(tables(state))
    found = {(row["head"] if row["method"] == "head" else row["method"], row["within"]): row for row in rows}
    full, heads = found["full", 1], sorted({row["head"] for row in rows if row["method"] == "head"})
    best = max(heads, key=lambda head: (found[head, 1]["rate"], -head))
    st.markdown(
        f"At this stage the labelled topic is the nearest of {len(topics(state).names)} for "
        f"**{percent(full['rate'], 1)}** of {full['documents']:,} documents (95 % CI {percent(full['low'], 1)} to "
        f"{percent(full['high'], 1)}). Guessing reaches {percent(full['chance'], 1)}; the best single head, head "
        f"{best}, "
        f"{percent(found[best, 1]['rate'], 1)}."
    )
    within = tuple(k for k in WITHIN if not by_construction(found["full", k]))
    methods = {"full": "full embedding", **{name: name for name in POOLINGS}, best: f"best head ({best})"}
    figure(
        _drawn(state, "match", stage, lambda: rates_figure(rates_of(found, methods, within, stage), theme())),
        "topic match",
        pa.Table.from_pylist(rows),
        f"Pooling turns all heads into one vector or one cosine. The best of {len(heads)} heads was chosen by this "
        "very figure, so its value is somewhat optimistic."
        + (f" The study: {study.MODEL}, 25 topics ({study.CITATION})." if stage == 3 else "")
        + _left_out(within, len(topics(state).names)),
        alt=f"Topic match of the full embedding, {percent(full['rate'], 1)}, of pooled heads and of head {best}, "
        "with 95 % CI, and chance.",
        remake=Remake("topic match", {"stage": stage}),
    )
    st.markdown("##### Each head alone")
    st.dataframe(
        [
            {"head": head} | {key: value for k in within for key, value in _cells(found[head, k], k).items()}
            for head in heads
        ],
        hide_index=True,
        height="content" if len(heads) <= MOST_ROWS else 35 * MOST_ROWS,
        column_config={
            "head": st.column_config.NumberColumn("Head", width="small", format="%d", pinned=True),
            **{f"top {k}": _bar(f"Top {k}") for k in within},
            **{f"interval {k}": _interval() for k in within},
        },
    )


def _left_out(within: Sequence[int], topics: int) -> str:
    """A sentence where fewer topics exist than the nearest that are asked for."""
    missing = [k for k in WITHIN if k not in within]
    if not missing:
        return ""
    return f" Not shown: top {joined(missing)}. With {plural(topics, 'topic')} these are 100\u00a0% by construction."


def _cells(row: Row, within: int) -> dict[str, object]:
    return {f"top {within}": 100 * row["rate"], f"interval {within}": f"{100 * row['low']:.1f}–{100 * row['high']:.1f}"}


def _named(topic: str) -> str:
    return plain(shortened(topic, 120))


def _bar(name: str) -> Any:
    return st.column_config.ProgressColumn(name, format="%.1f %%", min_value=0, max_value=100)


def _interval() -> Any:
    return st.column_config.TextColumn("95 % CI", help=why("interval"))


@shows_mistakes
def topic_map(state: RunState, stage: int) -> None:
    """Fig. 1: how near the topics' names are to each other."""
    st.subheader("How similar are the topics to each other?", help=why("similarity"), anchor="topic-by-topic")
    names = topics(state).names
    if len(names) < 2:
        st.info("Needs at least two topics.", icon=":material/info:")
        return
    cosine = topic_cosines(state, stage)
    first, second = np.triu_indices(len(names), 1)
    values = cosine[first, second]
    near, far = int(values.argmax()), int(values.argmin())
    st.markdown(
        f"Most similar: **{_named(names[first[near]])}** and **{_named(names[second[near]])}** "
        f"({number(values[near])}). Least similar: **{_named(names[first[far]])}** and "
        f"**{_named(names[second[far]])}** ({number(values[far])})."
    )
    data = {
        "topic": [names[topic] for topic in first],
        "other": [names[topic] for topic in second],
        "cosine": values,
    }
    figure(
        _drawn(state, "map", stage, lambda: map_figure(names, cosine, cluster_order(cosine), theme())),
        "topic map",
        pa.table(data),
        "Cosines of the topics' names, as this model embeds them (the study's Fig. 1). Similar topics are next to each "
        "other (average linkage). The colour scale runs from this run's smallest cosine to its largest.",
        alt=f"Cosines of all pairs of {len(names)} topics.",
        remake=Remake("topics", {"stage": stage}),
    )


@shows_mistakes
def label_distribution(state: RunState) -> None:
    """How many documents each topic has, and how many have none."""
    st.subheader("Documents per topic", anchor="documents-per-topic")
    assert state.manifest is not None
    counts = state.manifest.steps["analyse"].counts
    if not counts["labelled"]:
        no_labels("The distribution of labels")
        return
    found = topics(state)
    order = np.argsort(-found.documents, kind="stable")
    empty = int((found.documents == 0).sum())
    unlabelled, strange = counts["unlabelled"], counts["label_not_a_topic"]
    said = [
        f"**{plural(counts['labelled'], 'document has', 'documents have')}** one of {plural(len(found.names), 'topic')}"
    ]
    said.append(
        f"**{unlabelled:,}** {'has' if unlabelled == 1 else 'have'} no label" if unlabelled else "all are labelled"
    )
    if strange:
        said.append(f"**{strange:,}** {'has' if strange == 1 else 'have'} a label that is not on the list of topics")
    said.append(
        f"**{plural(empty, 'topic has', 'topics have')}** no document" if empty else "every topic has a document"
    )
    st.markdown("; ".join(said) + ".")
    table = pa.table({"topic": found.names, "documents": found.documents})
    if (each := same_for_all(found.documents)) is not None:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(f"Every topic has {plural(each, 'document')}.")
            downloads("label distribution", lambda: table)
        return
    shown = order[:MOST_BARS]
    names = [found.names[topic] for topic in shown]
    figure(
        _drawn(state, "labels", 0, lambda: counts_figure(names, found.documents[shown], theme())),
        "label distribution",
        table,
        f"The {MOST_BARS} largest of {len(order)} topics; the download has all." if len(order) > MOST_BARS else "",
        alt=f"Documents of each topic, from {int(found.documents.max())} down to {int(found.documents.min())}.",
    )


def same_for_all(counts: np.ndarray) -> int | None:
    """The count that all have: equal bars would show nothing."""
    return int(counts[0]) if len(counts) and (counts == counts[0]).all() else None
