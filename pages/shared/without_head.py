"""Without this head: a text through the run's model with one head switched off, and what is near it then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import streamlit as st

from core.analysis.ablation_effects import HEAD, QUALITY
from core.model.one_head_off import OneHeadOff
from core.model.stages import split_heads
from core.retrieval.head_index import largest
from core.runs.results import read_analysis
from core.runs.run import Run
from core.runs.tables import Row
from pages.shared.cards import Card, cards
from pages.shared.data import RunState, analysis, documents, head_index, row_of, vector_docs
from pages.shared.embedding import WhyText, without_head
from pages.shared.glossary import why
from pages.shared.notices import among, shows_mistakes
from pages.shared.run_version import ABLATION, one_version, version_of
from pages.shared.text import plain, shortened
from pages.shared.url import linked

OUTPUT = 3
"""The stage of the model's own embedding."""
SHOWN = 6


@dataclass(frozen=True)
class SearchingText:
    """A text, what it should find if that is known, and which document of the corpus it is (-1: none)."""

    text: WhyText
    relevant: frozenset[int] = frozenset()
    own: int = -1


@dataclass(frozen=True)
class WithoutHead:
    """What a text is near with all heads, and with one of them switched off."""

    sentence: str
    """How far the embedding moves."""
    remain: str = ""
    lists: Mapping[str, list[Card]] = field(default_factory=dict)
    """By title; none in a run that does not store the model's own embedding."""
    caption: str = ""


@shows_mistakes
def without_head_section(state: RunState, asked: SearchingText, count: int = SHOWN) -> WithoutHead | None:
    """A layer and a head to choose, how far the embedding moves without it, and its neighbours before and after."""
    assert state.manifest is not None
    shape = state.manifest.shape
    st.subheader("Without this head", help=why("ablation", "random removals"), anchor="without-this-head")
    layer, head, reason = standout_head(state)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        layer = linked(st.selectbox, "Layer", "off_layer", range(1, shape.layers + 1), layer, width=120)
        head = linked(st.selectbox, "Head switched off", "off_head", range(1, shape.heads + 1), head, width=160)
        st.caption(f"The head is switched off inside the model, live. {reason}")
    if not asked.text.text.strip():
        st.info("The text is empty.", icon=":material/info:")
        return None
    found = without_head(state, asked.text, layer, head)
    if found is None:
        return None
    sentence = moved_sentence(found)
    st.markdown(plain(sentence))
    if OUTPUT not in state.manifest.stages:
        st.info(
            "This run does not store stage 3, the model's own embedding, so the corpus cannot be searched with it.",
            icon=":material/layers_clear:",
        )
        return WithoutHead(sentence)
    near = _neighbours(state, asked, found, count, sentence)
    st.markdown(near.remain)
    sides = zip(st.columns(2, gap="medium"), near.lists.items(), ("with", "without"), strict=True)
    for column, (title, items), key in sides:
        with column, st.container(key=f"neighbours-{key}"):
            st.markdown(f"##### {title}")
            cards(items)
    st.caption(near.caption)
    return near


def moved_sentence(found: OneHeadOff) -> str:
    """How far the embedding turns, and whether that is more than by a random direction of the same norm."""
    low, high = float(found.random.min()), float(found.random.max())
    if found.angle > high:
        verdict = f"farther than by any of {len(found.random)} random directions"
    elif found.angle < low:
        verdict = f"less than by any of {len(found.random)} random directions"
    else:
        verdict = f"no farther than by some of {len(found.random)} random directions"
    return (
        f"Without layer {found.layer} head {found.head}, the embedding turns by {found.angle:.1f}°, {verdict} of the "
        f"same norm (mean {found.random.mean():.1f}°, {low:.1f}° to {high:.1f}°)."
    )


def _neighbours(state: RunState, asked: SearchingText, found: OneHeadOff, count: int, sentence: str) -> WithoutHead:
    docs = vector_docs(state)
    before, after = (_cosines(state, vector, asked.own) for vector in (found.plain, found.without))
    lists = [largest(scores, min(count, int(np.isfinite(scores).sum()))) for scores in (before, after)]
    stay = len(set(lists[0].tolist()) & set(lists[1].tolist()))
    titles = ("With all heads", f"Without layer {found.layer} head {found.head}")
    sides = zip(titles, lists, (before, after), (after, before), ("now", "was"), strict=True)
    return WithoutHead(
        sentence,
        f"{stay} of the {len(lists[0])} nearest documents remain among the nearest.",
        {
            title: [
                _card(state, int(docs[row]), place, float(own[row]), _moved(other, row, place, word), asked)
                for place, row in enumerate(rows.tolist(), 1)
            ]
            for title, rows, own, other, word in sides
        },
        "Cosines of the model's own embedding (stage 3). Only this text was embedded without the head: the corpus "
        f"documents are the stored ones, with the head on.{among(state)}",
    )


def _cosines(state: RunState, vector: np.ndarray, own: int) -> np.ndarray:
    """``[row]`` of the documents that have vectors; the text itself is left out."""
    assert state.manifest is not None
    scores = head_index(state, OUTPUT).cosines(split_heads(vector[None], OUTPUT, state.manifest.shape)[0])[0]
    if (row := row_of(state, own)) >= 0:
        scores[row] = -np.inf
    return np.asarray(scores)


def _moved(other: np.ndarray, row: int, place: int, word: str) -> str:
    """Where the document stands in the other list, if that is another place."""
    there = int((other > other[row]).sum()) + 1
    return "same place" if there == place else f"{word} {there}"


def _card(state: RunState, doc: int, place: int, cosine: float, moved: str, asked: SearchingText) -> Card:
    row = documents(state).row(doc)
    mark = "✓ " if doc in asked.relevant else ""
    return Card(f"{place}. {mark}{shortened(row['title'], 110)}", [row["topic"], moved], row["text"], cosine)


def standout_head(state: RunState) -> tuple[int, int, str]:
    """Layer and head, both from 1, to begin with, and why it is that one."""
    manifest, run = state.manifest, state.run
    assert manifest is not None
    layer = int(manifest.model["layer"])
    if manifest.is_done("ablate") and run.has(run.analysis_path("ablation")):
        heads = [row for row in _ablation(run, version_of(manifest, ABLATION)) if row["kind"] == HEAD]
        measure = next((name for name in QUALITY if any(row["measure"] == name for row in heads)), None)
        rows = [row for row in heads if row["measure"] == measure]
        if rows:
            most = min(rows, key=lambda row: float(row["change"]))
            return int(most["layer"]), int(most["head"]), "Preselected: the head whose removal costs most."
    if state.analysed and run.has(run.analysis_path("null")):
        rows = [row for row in analysis(state, "null").to_pylist() if (row["stage"], row["measure"]) == (1, "names")]
        rows = [row for row in rows if row["head"]]
        if rows:
            best = max(rows, key=lambda row: float(row["value"]))
            return layer, int(best["head"]), "Preselected: the head that finds topics best by itself at stage 1."
    return layer, 1, ""


@st.cache_resource(max_entries=4, show_spinner=False)
@one_version(*ABLATION)
def _ablation(run: Run, version: str) -> list[Row]:
    found: list[Row] = read_analysis(run, "ablation").to_pylist()
    return found
