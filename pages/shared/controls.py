"""The choices that make up a view: stage, head, document. Each is in the address."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from core.manifest import Manifest
from core.stages import STAGES
from core.stored import left_out, stages_said
from pages.shared.text import shortened
from pages.shared.url import choice_from_url, choice_to_url

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
            f":material/layers_clear: This run does not keep {stages_said(missing)}; the Overview says how to get "
            f"{'them' if len(missing) > 1 else 'it'}."
        )
    return stage


def choose_head(heads: int) -> int:
    numbers = list(range(1, heads + 1))
    choice_from_url("head", numbers, 1)
    head = int(st.selectbox("Head", numbers, key="head", help="Heads are counted from 1."))
    choice_to_url("head", head, 1)
    return head


def choose_document(table: pa.Table) -> int | None:
    words = st.text_input(
        "Find a document", key="find", placeholder="words of a title or text", help="All words must occur."
    )
    titles = table["title"]
    found = search(table, words) if words.strip() else np.arange(len(table))
    if not len(found):
        st.info("No document has all of these words. Try fewer.", icon=":material/search_off:")
        return None
    linked = st.query_params.get("doc", "")  # a linked document is listed, however far down the corpus it is
    options = found[:_MOST_OPTIONS].tolist()
    if not words.strip() and linked.isdecimal() and _MOST_OPTIONS < int(linked) <= len(table):
        options.append(int(linked) - 1)
    if len(found) > len(options):
        st.caption(f"{len(options):,} of {len(found):,} documents are listed; search to narrow them down.")
    numbers = [doc + 1 for doc in options]
    choice_from_url("doc", numbers, numbers[0])
    number = int(
        st.selectbox(
            "Document",
            numbers,
            key="doc",
            format_func=lambda number: f"{number} · {shortened(titles[number - 1].as_py(), 120)}",
        )
    )
    choice_to_url("doc", number, 1)
    return number - 1


def search(table: pa.Table, words: str) -> np.ndarray:
    """The documents whose title or text has all of the words."""
    hit = np.ones(len(table), dtype=bool)
    for word in words.split():
        either = [pc.match_substring(table[column], word, ignore_case=True) for column in ("title", "text")]
        hit &= pc.or_(*either).to_numpy(zero_copy_only=False)
    return np.flatnonzero(hit)
