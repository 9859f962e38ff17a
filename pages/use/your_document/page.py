"""Your document: a text that the model has never seen, through every head of a run."""

from __future__ import annotations

import streamlit as st

from core.analysis.examples import LEAST_EXAMPLES
from pages.shared.aspect_guess import aspects_section
from pages.shared.controls import choose_head, choose_run, choose_stage
from pages.shared.corpus import EXAMPLES, NAMES, references
from pages.shared.data import RunState, tables
from pages.shared.embedding import MOST_CHUNKS, EmbeddedText, WhyText, reading
from pages.shared.empty_states import ready
from pages.shared.glossary import why
from pages.shared.notices import shows_mistakes
from pages.shared.text import plain
from pages.shared.url import linked
from pages.shared.why_similar import choose_why, corpus_text, why_similar
from pages.use.your_document.export import keep_section
from pages.use.your_document.input import Chosen, document_input, own_documents
from pages.use.your_document.sections import (
    activation_section,
    along_section,
    compare_section,
    consensus_section,
    map_section,
    neighbours_section,
    profile_section,
    words_section,
)
from pages.use.your_document.state import MEASURES, NEIGHBOURS, REFERENCES, DocumentView

_LITTLE = 12  # tokens below which a profile is not reliable; no text of its own here, for Streamlit would show it


def length_notes(found: EmbeddedText) -> bool:
    """What of the text the model saw; whether a long one is to be read whole, in chunks."""
    if found.reach.truncated:
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            st.markdown(f":material/content_cut: The model reads the **{plain(found.reach)}** in one piece.")
            return st.toggle(
                "Read all of it, in chunks",
                key="chunks",
                persist_state="session",
                help=f"Each chunk gets a profile of its own, along the document. At most {MOST_CHUNKS} chunks.",
            )
    if found.reach.total < _LITTLE:
        st.info(f"Only {found.reach.total} tokens: too short for a reliable profile.", icon=":material/short_text:")
    else:
        st.caption(f"The model reads {plain(found.reach)}.")
    return False


def part_control(found: EmbeddedText) -> int:
    """Which part of a document in chunks the page is about: 0 is the beginning, as the model reads it in one piece."""
    if len(found.parts) == 1:
        return 0
    if st.session_state.get("part", 0) not in range(len(found.parts)):
        st.session_state["part"] = 0

    def name(part: int) -> str:
        if part == 0:
            return f"Beginning, {found.parts[0].tokens:,} tokens"
        chunk = found.parts[part]
        return f"Chunk {part}, {chunk.tokens:,} tokens: {chunk.text[:40]} …"

    return int(
        st.selectbox(
            "Part of the document", range(len(found.parts)), key="part", format_func=name, persist_state="session"
        )
        or 0
    )


def reference_control(state: RunState) -> str:
    """Examples or names; a run that has names alone says what brings examples."""
    known = references(state)
    if known == (NAMES,):
        few = "example_match" in tables(state).rows
        st.caption(
            f"Topics are compared by their names: fewer than two topics have {LEAST_EXAMPLES} labelled documents."
            if few
            else "Topics are compared by their names. To compare with examples, run "
            f"`python -m precompute analyse {state.run.name}`.",
            help=why("examples or names"),
        )
        return NAMES
    return linked(
        st.segmented_control,
        "Compare with",
        "reference",
        known,
        EXAMPLES,
        format_func=REFERENCES.__getitem__,
        required=True,
        help=why("examples or names"),
    )


def measure_control(reference: str) -> str:
    """Percentile or raw cosine."""
    return linked(
        st.segmented_control,
        "Cells show" if reference == EXAMPLES else "Cells and votes by",
        "measure",
        list(MEASURES),
        "percentile",
        format_func=lambda name: "Cosine" if (name, reference) == ("cosine", EXAMPLES) else MEASURES[name],
        required=True,
        help=why("percentile", "vote"),
    )


@shows_mistakes
def why_section(shown: DocumentView, chosen: Chosen) -> None:
    """Why this document is near one of the corpus, or near the other one of this session that it is compared with."""
    near = [*shown.nearest.docs[0][:NEIGHBOURS].tolist(), *shown.nearest.docs[shown.head][:NEIGHBOURS].tolist()]
    doc = choose_why(shown.state, list(dict.fromkeys(near)), "Why is it similar to a document of the corpus?")
    own, kept = WhyText(chosen.name, shown.text), own_documents()
    if doc is not None:
        why_similar(shown.state, own, corpus_text(shown.state, doc))
    elif kept.compared in kept.found and kept.compared != chosen.key:
        other = kept.found[kept.compared]
        why_similar(shown.state, own, WhyText(kept.names()[kept.compared], other.asked or other.text))


@shows_mistakes
def through_every_head(state: RunState, chosen: Chosen) -> None:
    assert state.manifest is not None
    found = reading(state, chosen.text)
    if found is None:
        return
    if length_notes(found):
        # Until the chunks are there, and where there are too many of them, the beginning is shown.
        found = reading(state, chosen.text, found) or found
    left, right = st.columns(2, gap="medium", vertical_alignment="top")
    with left:
        stage = choose_stage(state.manifest)
        part = part_control(found)
    with right:
        head = choose_head(state.manifest.shape.heads, as_buttons=True)
        reference, measure = NAMES, "percentile"
        if state.analysed:
            with st.container(horizontal=True, gap="medium"):
                reference = reference_control(state)
                measure = measure_control(reference)
    shown = DocumentView(state, chosen.name, found, part, stage, head, measure, reference)
    consensus_section(shown)
    profile_section(shown)
    aspects_section(state, stage, head, shown.vectors(stage))
    along_section(shown)
    neighbours_section(shown)
    words_section(shown)
    map_section(shown)
    activation_section(shown)
    compare_section(shown, chosen)
    why_section(shown, chosen)
    keep_section(shown)


state = choose_run()
st.title("Your document")
if ready(state):
    assert state.manifest is not None
    st.markdown(
        f"A text goes through **{plain(state.manifest.model['name'])}**, the model of this run; out comes what each of "
        f"its {state.manifest.shape.heads} heads makes of it, against the {state.manifest.corpus['documents']:,} "
        "documents of the corpus."
    )
    chosen = document_input()
    if chosen is not None:
        through_every_head(state, chosen)
