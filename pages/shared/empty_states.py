"""Where there is nothing to show yet: an empty cache, or a run that is being built or was interrupted."""

from __future__ import annotations

from typing import TypeGuard

import streamlit as st

from core.settings import is_read_only, read_settings
from core.store import trouble_at
from pages.shared.build import current_build, start_build
from pages.shared.data import RunState, cache_folder
from pages.shared.problem import show_problem
from pages.shared.text import plain


def empty_cache() -> None:
    """Nothing has been computed yet: says so, and offers to."""
    if trouble := trouble_at(cache_folder()):
        show_problem(trouble, "store")
        return
    if not cache_folder().is_dir():
        st.warning(
            "The cache folder is not there. If it was a moment ago, see to it that its volume is mounted: the page "
            "finds it again by itself at the next click.",
            icon=":material/folder_off:",
        )
    with st.container(border=True):
        st.subheader("There is nothing to look at yet")
        st.markdown(
            "Headscope shows **runs**: a corpus that has been embedded once, with every head's vector kept. The demo "
            "is a corpus of short texts on 25 topics, embedded with the small model all-MiniLM-L6-v2. It takes about "
            "two minutes on a laptop and needs no network and no GPU."
        )
        _offer_demo()
        st.caption("For a corpus of your own, in a terminal:")
        st.code("python -m precompute all my-run --source my-corpus.jsonl", language="bash")


def _offer_demo() -> None:
    if is_read_only(read_settings()):
        st.info(
            "This server only reads its cache. Build the demo where the cache can be written, with 'make demo'.",
            icon=":material/lock:",
        )
    else:
        _build_demo()


@st.fragment(run_every=0.7)
def _build_demo() -> None:
    cache = cache_folder()
    build = current_build(cache)
    if build is not None and build.running:
        st.progress(build.fraction, text=plain(f"Building the demo: {build.sentence}"))
        return
    if build is not None and not build.problem:
        st.rerun()
    if build is not None:
        show_problem(build.problem, "build")
    if st.button("Build the demo", icon=":material/play_arrow:"):
        start_build(cache)
        st.rerun(scope="fragment")


def ready(state: RunState | None, *steps: str) -> TypeGuard[RunState]:
    """Whether a page can show its run; where not, it says what is there instead, and what to do."""
    if state is None:
        empty_cache()
    elif state.manifest is None:
        show_problem(state.problem, "manifest")
    elif not state.finished:
        half_built(state)
    elif "analyse" in steps and not state.analysed:
        not_analysed(state)
    elif missing := [step for step in steps if step != "analyse" and not state.manifest.is_done(step)]:
        not_made(state, missing[0])
    else:
        return True
    return False


def not_analysed(state: RunState) -> None:
    """A run that has vectors, but no figures yet, or only those of other labels."""
    lacks = "has other labels than its figures were made from" if state.outdated else "has vectors, but no figures yet"
    st.info(f"The run {plain(state.run.name)} {lacks}.", icon=":material/query_stats:")
    st.caption("Compute them in a terminal; the page fills itself when they are there.")
    st.code(f"python -m precompute analyse {state.run.name}", language="bash")


MAKES = {
    "project": ("maps", ":material/scatter_plot:"),
    "retrieve": ("measurements of retrieval", ":material/manage_search:"),
    "layers": ("figures of its layers", ":material/stacked_line_chart:"),
    "attention": ("figures of attention", ":material/visibility:"),
}
"""What a step makes for its page, in a word, and the picture beside it."""


def not_made(state: RunState, step: str) -> None:
    """A run that has vectors, but not yet what ``step`` makes."""
    what, icon = MAKES[step]
    st.info(f"The run {plain(state.run.name)} has vectors, but no {what} yet.", icon=icon)
    st.caption("Make them in a terminal, then load this page again.")
    st.code(f"python -m precompute {step} {state.run.name}", language="bash")


def no_labels(what: str) -> None:
    """``what`` needs labelled documents, and there are none."""
    st.info(
        f"{what} needs documents with a topic, and no document of this run has one from its list of topics.",
        icon=":material/label_off:",
    )


def half_built(state: RunState) -> None:
    """A run whose vectors are not all there."""
    build = current_build(cache_folder())
    if build is not None and build.running:
        _build_demo()
    elif state.run.is_locked():
        st.info(f"The run {plain(state.run.name)} is being built. Come back in a while.", icon=":material/hourglass:")
        st.button("Look again", icon=":material/refresh:")
    else:
        st.warning(
            f"The run {plain(state.run.name)} was interrupted. Start the same command again; what is finished is kept.",
            icon=":material/pause_circle:",
        )
        if state.run.name == "demo":
            _offer_demo()
