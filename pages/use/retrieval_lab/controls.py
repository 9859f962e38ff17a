"""What is chosen in the Retrieval lab: the query, two ways to rank, and which heads count how much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc
import streamlit as st

from core.analysis.document_profile import Reliability
from core.analysis.roles import RULES
from core.model.shape import ModelShape
from core.model.stages import HEADS, STAGES
from core.retrieval.study import ways_at
from core.retrieval.tasks import TASKS
from core.retrieval.ways import WAYS, Heads
from core.runs.results import QuerySet
from core.runs.run import Run
from pages.shared.components.head_weights import HeadTiles, head_weights
from pages.shared.corpus import best_reliability
from pages.shared.data import RunState, document_vectors, documents, tables, vector_docs
from pages.shared.embedding import embedded_query
from pages.shared.figures.reliability import right_for
from pages.shared.heads_in_address import LONGEST_WEIGHTS, format_weights, parse_weights
from pages.shared.run_version import DOCUMENTS, one_version
from pages.shared.show import theme
from pages.shared.text import plain, shortened
from pages.shared.theme import head_colours
from pages.shared.url import choice_to_url, decide, linked, words_from_url
from pages.use.retrieval_lab.data import LabQuestion, rows

_MOST_TYPED = 2_000
_WAYS = "  \n".join(f"**{name}** – {way.sentence}" for name, way in WAYS.items())


def question_control(state: RunState, stage: int, found: QuerySet | None) -> LabQuestion | None:
    """A query of the set, a document of the corpus, or one that somebody types."""
    typed = st.text_input(
        "Ask something",
        key="lab typed",
        max_chars=_MOST_TYPED,
        placeholder="type a question, or take one below",
        help="It goes through the run's own model and stays with you: neither the link nor the log has it.",
    )
    if typed.strip():
        vectors = embedded_query(state, typed.strip())
        return None if vectors is None else LabQuestion(typed.strip(), vectors)
    if found is not None:
        return _of_the_set(found)
    return _of_the_corpus(state, stage)


def _of_the_set(found: QuerySet) -> LabQuestion:
    numbers = list(range(1, len(found.texts) + 1))
    number = linked(
        st.selectbox,
        "or take one of the query set",
        "query",
        numbers,
        1,
        format_func=lambda number: f"{number} · {shortened(found.texts[number - 1], 140)}",
    )
    vectors = {stage: values[number - 1] for stage, values in found.vectors.items()}
    return LabQuestion(found.texts[number - 1], vectors, frozenset(found.relevant[number - 1]))


def _of_the_corpus(state: RunState, stage: int) -> LabQuestion:
    """Without a query set a document asks for others of its topic."""
    table = documents(state)
    numbers = (vector_docs(state)[:1_000] + 1).tolist()
    titles = dict(zip(numbers, table.rows(np.array(numbers) - 1, ["title"])["title"].to_pylist(), strict=True))
    number = linked(
        st.selectbox,
        "or take a document as the question",
        "query",
        numbers,
        numbers[0],
        format_func=lambda number: f"{number} · {shortened(titles[number], 140)}",
    )
    own = number - 1
    vectors = {stage: document_vectors(state, stage, own)}
    return LabQuestion(titles[number], vectors, _of_its_topic(state.run, state.documents_version, own), own)


@st.cache_resource(max_entries=4, show_spinner=False)
@one_version(*DOCUMENTS)
def _of_its_topic(run: Run, version: str, own: int) -> frozenset[int]:
    """The other documents that have the topic of one."""
    topics = run.documents(["topic"])["topic"]
    if not topics[own].as_py():
        return frozenset()
    alike = pc.fill_null(pc.equal(topics, topics[own]), False).to_numpy()
    return frozenset(np.flatnonzero(alike).tolist()) - {own}


def ways_control(stage: int) -> tuple[str, str]:
    """Two ways to rank, side by side."""
    names = list(ways_at(stage))
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
            way = linked(st.selectbox, label, key, names, default, help=_WAYS)
            st.caption(WAYS[way].sentence)
        found.append(way)
    return found[0], found[1]


def task_control(names: list[str]) -> str:
    """What the heads are judged by."""
    return linked(
        st.segmented_control,
        "Judged by",
        "task",
        names,
        names[0],
        required=True,
        format_func=lambda name: TASKS[name].title,
        help="  \n".join(f"**{TASKS[name].title}** – {TASKS[name].sentence}" for name in names),
    )


def heads_control(state: RunState, stage: int, task: str | None) -> np.ndarray:
    """``[head]`` weights, 0 for heads that are off; presets, then a switch and a weight for every head."""
    assert state.manifest is not None
    shape = state.manifest.shape
    words_from_url("mix", LONGEST_WEIGHTS)
    weights = parse_weights(st.session_state["mix"], shape.heads)
    if weights is None:
        st.toast("The link names heads that do not exist; all heads are kept.", icon=":material/link_off:")
        weights = np.ones(shape.heads)
        decide("mix", "")
    choice_to_url("mix", format_weights(weights), "")
    known = _presets(state, stage, task)
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    with left:
        st.markdown(f"##### Kept heads: {int((weights > 0).sum())} of {shape.heads}")
    with right:
        st.selectbox(
            "Preset",
            list(known),
            index=None,
            key="lab preset",
            placeholder="Preset …",
            label_visibility="collapsed",
            on_change=_take_preset,
            args=(known,),
        )
    head_weights(
        "head weights",
        HeadTiles(_groups(shape), head_colours(shape.heads, shape.kv_heads, theme()), _labels(state, stage)),
        weights.tolist(),
        lambda given: decide("mix", format_weights(given)),
    )
    return weights


def _take_preset(known: dict[str, np.ndarray]) -> None:
    chosen = st.session_state.get("lab preset")
    if chosen in known:
        decide("mix", format_weights(known[chosen]))
    st.session_state["lab preset"] = None


def _presets(state: RunState, stage: int, task: str | None) -> dict[str, np.ndarray]:
    """Weights by the preset's name, those that this run has."""
    assert state.manifest is not None
    shape = state.manifest.shape
    found = {"All heads": np.ones(shape.heads), "No head": np.zeros(shape.heads)}
    known = best_reliability(state, stage)
    if known is not None and known.weights.any():
        found["By reliability"] = known.weights / known.weights.max()
    if task is not None:
        kept: dict[str, np.ndarray] = {}
        for row in rows(state, "importance", stage=stage, task=task):
            kept.setdefault(row["way"], np.zeros(shape.heads))[row["head"] - 1] = row["kept"]
        for way, weights in kept.items():
            found[f"Best pruned, by {way}"] = weights
        learned = rows(state, "head_weights", stage=stage, task=task, kind="learned")
        if learned:
            weights = np.zeros(shape.heads)
            for row in learned:
                weights[row["head"] - 1] = row["weight"]
            found["Learned weights"] = weights
    if shape.kv_heads < shape.heads:
        for number, group in enumerate(_groups(shape), start=1):
            found[f"Key/value group {number}"] = np.isin(np.arange(shape.heads), group).astype(float)
    if state.analysed:
        of_role: dict[str, list[int]] = {}
        for row in tables(state).pick("profiles", stage=stage, slicing=HEADS):
            for role in row["roles"] or ():
                if row["head"] and role in RULES:
                    of_role.setdefault(role, []).append(row["head"] - 1)
        for role, heads in of_role.items():
            found[f"Only {role} heads"] = np.isin(np.arange(shape.heads), heads).astype(float)
    return found


def _groups(shape: ModelShape) -> list[list[int]]:
    groups: dict[int, list[int]] = {}
    for head in range(shape.heads):
        groups.setdefault(shape.group_of(head), []).append(head)
    return list(groups.values())


def _labels(state: RunState, stage: int) -> list[str]:
    """What is said of each head: its role, topic and reliability, where they are known."""
    assert state.manifest is not None
    said = dict.fromkeys(range(1, state.manifest.shape.heads + 1), "")
    if state.analysed:
        for row in tables(state).pick("profiles", stage=stage, slicing=HEADS):
            if row["head"]:
                topic = f", {row['topic']}" if row["role"] == "selective" and row["topic"] else ""
                said[row["head"]] = f"{row['role'] or 'no role'}{topic}"
    known = best_reliability(state, stage)
    rates = [""] * len(said) if known is None else [f", {right_for(rate)}" for rate in known.rates[1:]]
    return [f"{words or STAGES[stage].name}{rate}" for words, rate in zip(said.values(), rates, strict=True)]


def question_text(question: LabQuestion) -> str:
    return plain(shortened(question.text, 300))


@dataclass(frozen=True)
class LabView:
    """A question, two ways to rank, and heads that count."""

    state: RunState
    stage: int
    task: str | None
    """None where the heads have not been judged yet."""
    question: LabQuestion
    ways: tuple[str, str]
    weights: np.ndarray
    """``[head]``, at least one above 0."""
    scores: np.ndarray
    """``[head]``: MRAG's."""

    @property
    def reliability(self) -> Reliability | None:
        return best_reliability(self.state, self.stage)

    @property
    def heads(self) -> Heads:
        return Heads(self.weights, self.scores)
