"""The choices that make up a view: run, stage, head, document, and a run to compare with. Each is in the address."""

from __future__ import annotations

import numpy as np
import streamlit as st

from core.model.presets import PRESETS
from core.model.stages import STAGES, STUDY
from core.runs.backend import fetched_by, trouble_at
from core.runs.describe import heads_in_groups, left_out, stage_names
from core.runs.manifest import Manifest
from core.runs.replace import is_being_renewed
from core.search.index import SearchHits
from core.settings import setting
from pages.shared.components.copy_link import copy_link
from pages.shared.data import RunState, cache_folder, documents, runs, search
from pages.shared.paper.caption import run_facts
from pages.shared.show import note_run
from pages.shared.text import plain, shortened
from pages.shared.url import choice_from_url, choice_to_url, keep_choices, linked

SEARCH_HELP = "All words must occur; prefixes count. Accents and capitals are ignored."
_MOST_OPTIONS, _MOST_BUTTONS = 1_000, 64


def choose_run() -> RunState | None:
    """The run that is chosen, or None where the cache is empty."""
    keep_choices()
    states = {state.run.name: state for state in runs()}
    if not states:
        return None
    if trouble := trouble_at(cache_folder()):
        when = f"by {moment}" if (moment := fetched_by(cache_folder())) else "before"
        st.sidebar.warning(
            f"This page shows what the server fetched {when}. {plain(trouble)}", icon=":material/cloud_off:"
        )
    names = list(states)
    first = next((name for name in (setting("HEADSCOPE_RUN"), "demo") if name in states), names[0])
    name = linked(
        st.sidebar.selectbox,
        "Run",
        "run",
        names,
        first,
        help="A run is one corpus embedded with one model at one layer: one folder in the cache.",
    )
    state = states[name]
    if state.manifest is not None:
        model = state.manifest.model
        note_run(name, run_facts(name, state.manifest))
        st.sidebar.caption(
            f"{plain(model['name'])}  \nlayer {model['layer']} of {model['layers']} · {heads_in_groups(state.manifest)}"
        )
        preset = PRESETS.get(model["name"])
        if preset:
            st.sidebar.caption(f"Licence of the model: {plain(preset.licence)}")
        if state.finished and is_being_renewed(state.run):
            st.sidebar.caption("A new version of this run is being built. You see the old one until it is finished.")
    with st.sidebar:
        copy_link()
    return state


def choose_stage(manifest: Manifest, among: tuple[int, ...] | None = None, first: int | None = None) -> int:
    """One of the stages that the run keeps, or of those ``among`` them; those that it leaves out are named.

    It begins with the ``first`` one, if the run keeps it.
    """
    stages, missing = among or manifest.stages, left_out(manifest)
    stage = linked(
        st.segmented_control,
        "Stage",
        "stage",
        stages,
        first if first in stages else stages[0],
        format_func=lambda number: f"{number} {STAGES[number].name}",
        required=True,
        help="Where in the model the heads are read.  \n"
        + "  \n".join(
            f"**{stage.number} {stage.name}** – {stage.sentence}"
            for stage in STAGES.values()
            if stage.number in (*STUDY, *stages)
        ),
    )
    st.caption(f"{STAGES[stage].sentence} {STAGES[stage].caveat}")
    if missing:
        st.caption(
            f":material/layers_clear: This run does not store {stage_names(missing)}; the Overview says how to get "
            f"{'them' if len(missing) > 1 else 'it'}."
        )
    return stage


def choose_head(heads: int, as_buttons: bool = False, opens_on: int | None = None) -> int:
    """From a list; of some heads each is a button. ``opens_on`` is the head of an address that names none.

    What is opened on depends on the run, so the address then always names the head: other pages open on head 1.
    """
    numbers, help = list(range(1, heads + 1)), "Heads are counted from 1."
    if opens_on is not None:
        choice_from_url("head", numbers, opens_on)
        head = int(st.selectbox("Head", numbers, key="head", help=help))
        choice_to_url("head", head, 0)
        return head
    if as_buttons and heads <= _MOST_BUTTONS:
        return linked(st.pills, "Head", "head", numbers, 1, required=True, help=help)
    return linked(st.selectbox, "Head", "head", numbers, 1, help=help)


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
    given = st.query_params.get("doc", "")  # a linked document is listed, however far down the corpus it is
    options = docs[:_MOST_OPTIONS].tolist()
    if not words.strip() and given.isdecimal() and len(given) < 10:
        options += [int(given) - 1] if 0 < int(given) <= len(table) and int(given) - 1 not in options else []
    count = len(docs) if words.strip() else len(table)
    if count > len(options):
        more = "more than " if found.more else ""
        st.caption(f"{len(options):,} of {more}{count:,} documents are listed; search to narrow them down.")
    numbers = [doc + 1 for doc in options]
    titles = dict(zip(numbers, table.rows(options, ["title"])["title"].to_pylist(), strict=True))
    choice_from_url("doc", numbers, numbers[0])
    number = int(
        st.selectbox(
            "Document", numbers, key="doc", format_func=lambda number: f"{number} · {shortened(titles[number], 120)}"
        )
    )
    choice_to_url("doc", number, int(every[0]) + 1)  # not what a search found first: an address is for all searches
    return number - 1


def other_runs(state: RunState) -> dict[str, RunState]:
    """The runs that this one can be compared with, by name: those that have figures."""
    return {other.run.name: other for other in runs() if other.analysed and other.run.name != state.run.name}


def compare_link(state: RunState) -> None:
    """To the page that compares this run with another: the one that a link names, or the page's own choice."""
    others = other_runs(state)
    if others:
        named = st.query_params.get("beside", "")
        query = {"run": state.run.name} | ({"beside": named} if named in others else {})
        label = f"Compare with {plain(named)}" if named in others else "Compare with another run"
        st.page_link("pages/explore/compare_runs/page.py", label=label, icon=":material/compare:", query_params=query)


def choose_other_run(state: RunState) -> RunState | None:
    """A run to compare with; without another one that has figures, nothing is asked."""
    others = other_runs(state)
    if not others:
        return None
    name = linked(
        st.selectbox,
        "Compare with another run",
        "beside",
        ["", *others],
        "",
        format_func=lambda name: name or "none",
        help="Another model, or the same one at another layer.",
    )
    return others.get(name)


def say_what_was_searched(state: RunState, found: SearchHits) -> None:
    """Where a run has no index, how much of it was looked through, and what to do."""
    assert state.manifest is not None
    if found.searched is not None:
        st.caption(
            f":material/search: Only the first {found.searched:,} of {state.manifest.corpus['documents']:,} documents "
            "were searched, because this run has no search index. Build it with "
            f"`python -m precompute search {state.run.name}`."
        )
