"""Where there is nothing to show yet: an empty cache, or a run that is being built or was interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import TypeGuard

import streamlit as st

from core.errors import Mistake
from core.model.stages import STAGES
from core.remote.mirror import is_read_only
from core.runs.backend import trouble_at
from core.runs.describe import adds_shares, brings_stages, lacks_shares, left_out, sampled, stage_names
from core.runs.manifest import Manifest
from core.runs.run import Run
from core.runs.steps import STEPS, command
from core.settings import read_settings
from pages.shared.build import current_build, start_build
from pages.shared.data import RunState, cache_folder
from pages.shared.notices import show_problem
from pages.shared.text import plain


def empty_cache() -> None:
    """Nothing has been computed yet: says so, and offers to."""
    if trouble := trouble_at(cache_folder()):
        show_problem(trouble, "store")
        return
    if not cache_folder().is_dir():
        st.warning(
            "The cache folder is missing. If it was there a moment ago, check that its volume is mounted. The page "
            "finds it again at the next click.",
            icon=":material/folder_off:",
        )
    with st.container(border=True):
        st.subheader("There are no runs yet")
        st.markdown(
            "Headscope shows **runs**: a corpus that has been embedded once, with every head's vector stored. The demo "
            "is a corpus of short texts on 25 topics, embedded with the small model all-MiniLM-L6-v2. It takes a few "
            "minutes on a laptop, most pages are ready sooner, and it needs no network and no GPU."
        )
        _offer_demo()
        st.caption("For a corpus of your own, in a terminal:")
        st.code("python -m precompute all my-run --source my-corpus.jsonl", language=None, wrap_lines=True)


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
        if _has_maps(cache):  # most pages can be read by now; the others tell what is still being made
            st.rerun()
        st.progress(build.fraction, text=plain(f"Building the demo: {build.sentence}"))
        return
    if build is not None and not build.problem:
        st.rerun()
    if build is not None:
        show_problem(build.problem, "build")
    if st.button("Build the demo", icon=":material/play_arrow:"):
        start_build(cache)
        st.rerun(scope="fragment")


def _has_maps(cache: Path) -> bool:
    try:
        return Run(cache, "demo").manifest().is_done("project")
    except Mistake:  # there is none yet
        return False


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
    outdated = "has labels that differ from those its figures were computed with"
    lacks = outdated if state.outdated else "has vectors, but no figures yet"
    st.info(f"The run {plain(state.run.name)} {lacks}.", icon=":material/query_stats:")
    st.caption("Compute them in a terminal; the page updates when they are ready.")
    st.code(command("analyse", state.run.name), language=None, wrap_lines=True)


_ICONS = {
    "project": ":material/scatter_plot:",
    "retrieve": ":material/manage_search:",
    "layers": ":material/stacked_line_chart:",
    "attention": ":material/visibility:",
    "ablate": ":material/toggle_off:",
}
"""By the step that a page needs."""


def not_made(state: RunState, step: str) -> None:
    """A run that has vectors, but not yet what ``step`` makes."""
    what, icon = STEPS[step].makes, _ICONS.get(step, ":material/hourglass_empty:")
    if state.run.is_locked():
        st.info(f"A job is still working on the run {plain(state.run.name)}, which has no {what} yet.", icon=icon)
        st.button("Check again", icon=":material/refresh:")
        return
    st.info(f"The run {plain(state.run.name)} has vectors, but no {what} yet.", icon=icon)
    st.caption("Create them in a terminal, then reload this page.")
    st.code(command(step, state.run.name), language=None, wrap_lines=True)


def no_labels(what: str) -> None:
    """``what`` needs labelled documents, and there are none."""
    st.info(
        f"{what} needs documents with a topic, and no document in this run has a topic from its list.",
        icon=":material/label_off:",
    )


_LOST = {
    1: "what each head read before a projection mixes the heads, the only stage where a slice is certain to be a head",
    2: "what the projection makes of the heads",
    3: "the model's own embedding, and so the results of a search with the whole model",
}
"""What is not to be seen without a stage."""


def slim(manifest: Manifest, run: str) -> None:
    """What a run that keeps some stages only cannot show, and how to come by it; nothing for a run that has all."""
    missing = left_out(manifest)
    if not missing:
        return
    with st.container(border=True):
        st.markdown(f":material/layers_clear: **A slim run: it stores {stage_names(manifest.stages)}**")
        lines = [f"- stage {stage} {STAGES[stage].name}: {_LOST[stage]}" for stage in missing]
        st.markdown("\n".join(["What this run cannot show:", "", *lines, _compared(manifest)]))
        st.caption("To add them, embed the corpus again without --stages. Readers see this run until that is finished:")
        st.code(brings_stages(run, manifest), language=None, wrap_lines=True)


def some_vectors(manifest: Manifest, run: str) -> None:
    """The same for a run that keeps the vectors of some documents."""
    if not manifest.is_sampled:
        return
    with st.container(border=True):
        st.markdown(f":material/layers_clear: **A slim run: it stores the vectors of {sampled(manifest)}**")
        st.markdown(
            "Figures, maps and the heat map cover all documents: they were computed before the other vectors were "
            "deleted. What this run cannot show:\n\n"
            "- the vectors of other documents, and the documents nearest to them\n"
            "- other documents among the nearest: this page, Your document and the Retrieval lab search only "
            "the documents with vectors, and evaluate queries on those alone\n"
            "- figures for other labels, topics or queries, and other maps: they need all vectors"
        )
        st.caption("To add them, embed the corpus again. Readers see this run until that is finished:")
        st.code(brings_stages(run, manifest), language=None, wrap_lines=True)


def without_shares(manifest: Manifest, run: str) -> None:
    """How to add stage 4 to a run of an older version, or to one that was told to leave it out."""
    if lacks_shares(manifest):
        st.caption(
            "Stage 4, what each head adds to the model's own embedding, is not stored in this run. "
            f"`{adds_shares(run, manifest)}` adds it; the other stages stay as they are."
        )


def _compared(manifest: Manifest) -> str:
    if len(manifest.stages) > 1:
        return "- how a head changes across the missing stages"
    return "- how heads change from stage to stage: only one is stored"


def half_built(state: RunState) -> None:
    """A run whose vectors are not all there."""
    build = current_build(cache_folder())
    if build is not None and build.running:
        _build_demo()
    elif state.run.is_locked():
        st.info(f"The run {plain(state.run.name)} is being built. Check back later.", icon=":material/hourglass:")
        st.button("Check again", icon=":material/refresh:")
    else:
        st.warning(
            f"The run {plain(state.run.name)} was interrupted. Start the same command again; finished parts are kept.",
            icon=":material/pause_circle:",
        )
        if state.run.name == "demo":
            _offer_demo()
