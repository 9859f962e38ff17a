"""What is chosen in the Retrieval lab: the query, what heads are judged by, and two ways to rank."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
import streamlit as st

from core.model.stages import SHARE
from core.retrieval.study import ways_at
from core.retrieval.tasks import TASKS
from core.runs.results import QuerySet
from core.runs.run import Run
from pages.shared.data import RunState, documents, held_vectors, vector_docs
from pages.shared.embedding import embedded_query
from pages.shared.run_version import DOCUMENTS, VECTORS, one_version
from pages.shared.text import plain, shortened
from pages.shared.url import decide, linked
from pages.use.retrieval_lab.data import LabQuestion, has_rest
from pages.use.retrieval_lab.state import way_sentence

_MOST_TYPED = 2_000
_MOST_OPTIONS = 1_000
REST = "rest"


def question_control(state: RunState, stage: int, found: QuerySet | None) -> LabQuestion | None:
    """A query of the set, a document of the corpus, or one that somebody types."""
    left, right = st.columns(2, gap="medium")
    with left:
        typed = st.text_input(
            "Ask something",
            key="lab typed",
            max_chars=_MOST_TYPED,
            placeholder="Type a question, or choose one on the right",
            help="The run's own model embeds it. Your question is neither stored nor logged, and no link contains it.",
        )
    with right:
        given = _of_the_set(found) if found is not None else _of_the_corpus(state, stage)
    if typed.strip():
        vectors = embedded_query(state, typed.strip())
        return None if vectors is None else LabQuestion(typed.strip(), vectors)
    return given


def _of_the_set(found: QuerySet) -> LabQuestion:
    numbers = list(range(1, len(found.texts) + 1))
    number = linked(
        st.selectbox,
        "or choose one of the query set",
        "query",
        numbers,
        1,
        format_func=lambda number: f"{number} · {shortened(found.texts[number - 1], 140)}",
    )
    vectors = {stage: values[number - 1] for stage, values in found.vectors.items()}
    return LabQuestion(found.texts[number - 1], vectors, frozenset(found.relevant[number - 1]))


def _of_the_corpus(state: RunState, stage: int) -> LabQuestion:
    """Without a query set a document asks for others of its topic."""
    titles = _titles(state.run, state.version, state)
    number = linked(
        st.selectbox,
        "or choose a document as the question",
        "query",
        list(titles),
        next(iter(titles)),
        format_func=lambda number: f"{number} · {titles[number]}",
    )
    own = number - 1
    vectors = {stage: held_vectors(state, stage, own)}
    title = documents(state).row(own, ["title"])["title"]
    return LabQuestion(title, vectors, _of_its_topic(state.run, state.documents_version, own), own)


@st.cache_resource(max_entries=4, show_spinner=False)
@one_version(*VECTORS)
def _titles(run: Run, version: str, _state: RunState) -> dict[int, str]:
    """By number, of the first documents that have vectors."""
    docs = vector_docs(_state)[:_MOST_OPTIONS]
    titles = documents(_state).rows(docs, ["title"])["title"].to_pylist()
    return {doc + 1: shortened(title, 140) for doc, title in zip(docs.tolist(), titles, strict=True)}


@st.cache_resource(max_entries=4, show_spinner=False)
@one_version(*DOCUMENTS)
def _of_its_topic(run: Run, version: str, own: int) -> frozenset[int]:
    """The other documents that have the topic of one."""
    topics = run.documents(["topic"])["topic"]
    if not topics[own].as_py():
        return frozenset()
    alike = pc.fill_null(pc.equal(topics, topics[own]), False).to_numpy()
    return frozenset(np.flatnonzero(alike).tolist()) - {own}


def ways_control(state: RunState, stage: int) -> tuple[tuple[str, str], bool]:
    """Two ways to rank, side by side; and whether the sum of stage 4 has what no head of the layer adds."""
    names = list(ways_at(stage))
    rest = has_rest(state) and bool(st.session_state.get(REST, 1))
    explained = "  \n".join(f"**{name}** – {way_sentence(name, stage, rest)}" for name in names)
    found = []
    for column, key, label, default in zip(
        st.columns(2, gap="medium"),
        ("way", "other"),
        ("Rank by", "Compare with"),
        ("full", "split" if stage == 3 else "voting"),
        strict=True,
    ):
        # Voting goes by another name on slices of the final vector: a change of stage is no change of mind.
        before = st.session_state.get(key)
        if before in ("voting", "split") and before not in names:
            decide(key, default if key == "other" else ("split" if stage == 3 else "voting"))
        with column:
            way = linked(st.selectbox, label, key, names, default, help=explained)
            note = st.empty()
            if stage == SHARE and key == "way":
                rest = _rest_control(state)
            note.caption(way_sentence(way, stage, rest))
        found.append(way)
    return (found[0], found[1]), rest


def _rest_control(state: RunState) -> bool:
    if not has_rest(state):
        st.caption("The rest is left out: this run does not store stage 3.")
        return False
    return bool(
        linked(
            lambda label, _, **looks: int(st.toggle(label, **looks)),
            "Keep the rest",
            REST,
            (0, 1),
            1,
            help="What the embedding has besides the shares of this layer's heads: earlier layers, feed-forward blocks "
            "and biases. With the rest and all weights 1, this is the model's own embedding.",
        )
    )


def task_control(names: list[str]) -> str:
    """What the heads are judged by."""
    return linked(
        st.segmented_control,
        "Task",
        "task",
        names,
        names[0],
        required=True,
        format_func=lambda name: TASKS[name].title,
        help="  \n".join(f"**{TASKS[name].title}** – {TASKS[name].sentence}" for name in names),
    )


def question_text(question: LabQuestion) -> str:
    return plain(shortened(question.text, 300))
