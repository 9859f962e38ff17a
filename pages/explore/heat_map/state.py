"""What the heat map shows: stage, topics, how many documents, in which order, on which scale. All of it is a link."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from core.analysis.heat_map import BLOCKS, PER_TOPIC, frequent_topics
from core.analysis.topics import merged
from pages.shared.controls import choose_stage
from pages.shared.corpus import EXAMPLES, NAMES, own_topic_similarity, references
from pages.shared.data import RunState, labels, topics
from pages.shared.glossary import why
from pages.shared.text import shortened
from pages.shared.url import linked, linked_toggle

SIZES = (20, 60, PER_TOPIC, 250, 500, 1_000, 2_500)
NO_TOPIC = -1
STUDY_HELP = (
    "The study's heat map shows eight of its 25 topics and does not name them. These are the first eight in its list "
    "that have documents in this run."
)
_WRITTEN, _NAMES = "written to the address: t", "topics that were offered"


@dataclass(frozen=True)
class HeatMapView:
    """``stage`` orders the columns, ``shown`` are drawn; ``sort`` is a row: 0 the full embedding, then heads."""

    stage: int
    shown: tuple[int, ...]
    topics: tuple[int, ...]
    per_topic: int
    sort: int
    same_range: bool
    reference: str
    """What a document's topic is: its name, or its examples."""


@dataclass(frozen=True)
class Linked:
    """Topics that a link names, each once, and whether it names others as well."""

    chosen: tuple[int, ...]
    unknown: bool


def linked_topics(text: str, count: int) -> Linked:
    """Reads ``0,3,7``: numbers below ``count``; whatever else stands there is unknown."""
    parts = [part.strip() for part in text.split(",")]
    good = [int(part) for part in parts if part.isascii() and part.isdecimal() and len(part) < 7 and int(part) < count]
    return Linked(tuple(dict.fromkeys(good)), len(good) < len(parts))


def study_topics(names: tuple[str, ...], counts: np.ndarray) -> list[int]:
    """The first eight of the study's topics, in its order, that have documents; the study does not name its own."""
    places = {name.casefold(): topic for topic, name in enumerate(names) if counts[topic]}
    return [places[name.casefold()] for name in merged() if name.casefold() in places][:BLOCKS]


def row_name(row: int) -> str:
    """Row 0 is the full embedding."""
    return f"head {row}" if row else "full embedding"


def choose_view(state: RunState) -> HeatMapView | None:
    """The controls, or None while no topic is chosen."""
    assert state.manifest is not None
    stages, heads = state.manifest.stages, state.manifest.shape.heads
    left, right = st.columns([3, 2], gap="medium")
    with left:
        stage = choose_stage(state.manifest)
    with right, st.container(gap="small"):
        every = len(stages) > 1 and linked_toggle(
            f"Show all {len(stages)} stages",
            "stages",
            "Each document keeps its column in all stages; the chosen stage decides the order.",
        )
        same = len(stages) > 1 and linked_toggle(
            "Same colour scale for all stages", "range", "If off, each stage has its own colour scale."
        )
    first, second, third, fourth = st.columns(4, gap="medium", vertical_alignment="bottom")
    with fourth:
        reference = _choose_reference(state)
    with first:
        chosen = _choose_topics(state, reference)
    own = drawable(state, reference)
    largest = max((int((own == topic).sum()) for topic in chosen), default=0)
    with second:
        size = linked(
            st.selectbox,
            "Documents per topic",
            "size",
            SIZES,
            PER_TOPIC,
            format_func=lambda most: _size_name(most, largest),
            help="Larger topics are sampled to this size.",
        )
    with third:
        sort = linked(
            st.selectbox,
            "Order within a topic",
            "sort",
            range(heads + 1),
            0,
            format_func=lambda row: f"by {'the ' if row == 0 else ''}{row_name(row)}",
            help="The most similar document is on the left.  \n" + why("full embedding"),
        )
    if not chosen:
        st.info("Choose at least one topic.", icon=":material/category:")
        return None
    return HeatMapView(stage, tuple(stages) if every else (stage,), chosen, size, sort, same, reference)


def _size_name(most: int, largest: int) -> str:
    """What a limit comes to: the chosen topics may have fewer documents than that."""
    return f"up to {most:,}" if largest >= most else f"up to {most:,} (largest topic: {largest:,})"


def _choose_reference(state: RunState) -> str:
    """The topics' names, as in the study, or their examples where the run has them."""
    return linked(
        st.selectbox,
        "Compare with",
        "by",
        [NAMES, *(known for known in references(state) if known != NAMES)],
        NAMES,
        format_func=lambda name: f"the topic's {name}" if name == EXAMPLES else "the topic's name",
        help=why("examples or names"),
    )


def drawable(state: RunState, reference: str) -> np.ndarray:
    """``labels[doc]``, with -1 also for documents that cannot be compared with their topic in this way."""
    assert state.manifest is not None
    own = labels(state)
    if reference == NAMES:
        return own
    return np.where(np.isfinite(own_topic_similarity(state, state.manifest.stages[0], reference)[:, 0]), own, -1)


def _choose_topics(state: RunState, reference: str) -> tuple[int, ...]:
    names, own = topics(state).names, drawable(state, reference)
    counts = np.bincount(own[own >= 0], minlength=len(names))
    usual = [int(topic) for topic in frequent_topics(own)]
    _topics_from_url(names, usual)
    there = [int(topic) for topic in np.flatnonzero(counts)]

    def set_topics(wanted: list[int]) -> None:
        st.session_state["topics"] = wanted

    label = f"Topics: {len(st.session_state['topics'])} of {len(there)}"
    with st.popover(label, icon=":material/category:", width="stretch"):
        chosen = st.multiselect(
            "Topics",
            there,
            key="topics",
            format_func=lambda topic: f"{shortened(names[topic], 120)} ({counts[topic]})",
            help="In parentheses: the number of documents with that topic.",
            placeholder="Choose topics",
        )
        with st.container(horizontal=True):
            st.button(f"{len(usual)} most frequent", on_click=set_topics, args=(usual,))
            if len(study := study_topics(names, counts)) > 1:
                st.button(f"The study's {len(study)}", on_click=set_topics, args=(study,), help=STUDY_HELP)
            st.button("All", on_click=set_topics, args=(there,))
    text = None if chosen == usual else ",".join(str(topic) for topic in chosen)
    if text is None:
        st.query_params.pop("t", None)
    elif st.query_params.get("t") != text:
        st.query_params["t"] = text
    st.session_state[_WRITTEN], st.session_state["kept topics"] = text, tuple(chosen)
    return tuple(chosen)


def _topics_from_url(names: tuple[str, ...], usual: list[int]) -> None:
    """As ``choice_from_url``, for several topics: the address wins when somebody else changed it."""
    same = st.session_state.get(_NAMES) == names
    st.session_state[_NAMES] = names
    given = st.query_params.get("t")
    if given == st.session_state.get(_WRITTEN):
        if not same:  # another run's numbers mean other topics
            st.session_state["topics"] = usual
        elif "topics" not in st.session_state:
            st.session_state["topics"] = list(st.session_state.get("kept topics", usual))
        return
    if given is None:
        kept = st.session_state.get("kept topics", usual) if st.session_state.get("page changed") and same else usual
        st.session_state["topics"] = list(kept)
        return
    found = linked_topics(given, len(names))
    if found.unknown:
        st.toast("The link names a topic that does not exist; it is ignored.", icon=":material/link_off:")
    st.session_state["topics"] = list(found.chosen) or usual
