"""The choices that make up a view: stage, head, document. Each is in the address."""

from __future__ import annotations

import numpy as np
import streamlit as st

from core.model.stages import STAGES
from core.runs.describe import left_out, stage_names
from core.runs.manifest import Manifest
from core.search.index import SearchHits
from pages.shared.data import RunState, documents, search
from pages.shared.text import shortened
from pages.shared.url import choice_from_url, choice_to_url

SEARCH_HELP = "All words must occur, or words that begin so. Accents and capitals do not count."
_MOST_OPTIONS = 1_000


def choose_stage(manifest: Manifest) -> int:
    """One of the stages that the run keeps; those that it was told to leave out are named."""
    stages, missing = manifest.stages, left_out(manifest)
    choice_from_url("stage", stages, stages[0])
    stage = st.segmented_control(
        "Stage",
        stages,
        format_func=lambda number: f"{number} {STAGES[number].name}",
        required=True,
        key="stage",
        help="Where in the model the heads are read.  \n"
        + "  \n".join(f"**{stage.number} {stage.name}** – {stage.sentence}" for stage in STAGES.values()),
    )
    stage = int(stage or stages[0])
    choice_to_url("stage", stage, stages[0])
    st.caption(f"{STAGES[stage].sentence} {STAGES[stage].caveat}")
    if missing:
        st.caption(
            f":material/layers_clear: This run does not keep {stage_names(missing)}; the Overview says how to get "
            f"{'them' if len(missing) > 1 else 'it'}."
        )
    return stage


def choose_head(heads: int) -> int:
    numbers = list(range(1, heads + 1))
    choice_from_url("head", numbers, 1)
    head = int(st.selectbox("Head", numbers, key="head", help="Heads are counted from 1."))
    choice_to_url("head", head, 1)
    return head


def choose_document(state: RunState, first: np.ndarray | None = None) -> int | None:
    """Of what is searched for, or of the documents ``first``, which are all unless others are given."""
    table = documents(state)
    words = st.text_input("Find a document", key="find", placeholder="words of a title or text", help=SEARCH_HELP)
    every = np.arange(len(table)) if first is None else first
    found = search(state, words) if words.strip() else SearchHits(every[:_MOST_OPTIONS])
    docs = found.docs
    if words.strip():
        say_what_was_searched(state, found)
    if not len(docs):
        st.info("No document has all of these words. Try fewer.", icon=":material/search_off:")
        return None
    linked = st.query_params.get("doc", "")  # a linked document is listed, however far down the corpus it is
    options = docs[:_MOST_OPTIONS].tolist()
    if not words.strip() and linked.isdecimal() and len(linked) < 10:
        options += [int(linked) - 1] if 0 < int(linked) <= len(table) and int(linked) - 1 not in options else []
    count = len(docs) if words.strip() else len(table)
    if count > len(options):
        more = "more than " if found.more else ""
        st.caption(f"{len(options):,} of {more}{count:,} documents are listed; search to narrow them down.")
    numbers = [doc + 1 for doc in options]
    choice_from_url("doc", numbers, numbers[0])
    titles = dict(zip(numbers, table.rows(options, ["title"])["title"].to_pylist(), strict=True))
    number = int(
        st.selectbox(
            "Document",
            numbers,
            key="doc",
            format_func=lambda number: f"{number} · {shortened(titles[number], 120)}",
        )
    )
    choice_to_url("doc", number, int(every[0]) + 1)
    return number - 1


def say_what_was_searched(state: RunState, found: SearchHits) -> None:
    """Where a run has no index, how much of it was looked through, and what to do."""
    assert state.manifest is not None
    if found.searched is not None:
        st.caption(
            f":material/search: Only the first {found.searched:,} of {state.manifest.corpus['documents']:,} documents "
            "were looked through, as this run has no index for search. It is built by "
            f"`python -m precompute search {state.run.name}`."
        )
