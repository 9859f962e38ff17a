"""Your document: a text that the model has never seen, through every head of a run."""

from __future__ import annotations

import streamlit as st

from core.analysis.examples import LEAST_EXAMPLES
from pages.shared.aspect_guess import aspects_section
from pages.shared.controls import choose_head, choose_run, choose_stage
from pages.shared.corpus import EXAMPLES, NAMES, references
from pages.shared.data import RunState, tables
from pages.shared.embedding import MOST_CHUNKS, EmbeddedText, WhyText, begin_reading, reading
from pages.shared.empty_states import ready
from pages.shared.glossary import why
from pages.shared.notices import shows_mistakes
from pages.shared.text import plain, shortened
from pages.shared.url import linked
from pages.shared.without_head import SearchingText, without_head_section
from pages.use.your_document.compare import compare_section, other_document, why_section
from pages.use.your_document.documents import own_documents
from pages.use.your_document.export import keep_section
from pages.use.your_document.heads import activation_section, words_section
from pages.use.your_document.input import MOVED, Chosen, document_input
from pages.use.your_document.neighbours import map_section, neighbours_section
from pages.use.your_document.report import PageExperiments
from pages.use.your_document.state import MEASURES, NEIGHBOURS, REFERENCES, DocumentView
from pages.use.your_document.topics import along_section, consensus_section, profile_section

_LITTLE = 12  # tokens below which a profile is not reliable; no text of its own here, for Streamlit would show it


def length_notes(found: EmbeddedText) -> bool:
    """How much of the text the model read, and whether to read a long one whole, in chunks."""
    if found.reach.truncated:
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            st.markdown(f":material/content_cut: The model reads the **{plain(found.reach)}** at once.")
            return st.toggle(
                "Read all of it, in chunks",
                key="chunks",
                persist_state="session",
                help=f"Each chunk gets its own profile. At most {MOST_CHUNKS} chunks.",
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
    """Examples or names; a run with names alone gets the command that adds examples."""
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
def through_every_head(state: RunState, chosen: Chosen) -> None:
    """The answer first; what it depends on is chosen below it."""
    assert state.manifest is not None
    found = reading(state, chosen.text)
    if found is None:
        return
    answer = st.container()
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
    with answer:
        consensus_section(shown)
    profile_section(shown)
    aspects_section(state, stage, head, shown.vectors(stage))
    along_section(shown)
    neighbours_section(shown)
    without = without_head_section(state, SearchingText(WhyText(chosen.name, shown.text)), NEIGHBOURS)
    words_section(shown)
    map_section(shown)
    activation_section(shown)
    compare_section(shown, chosen)
    similar = why_section(shown, chosen)
    keep_section(shown, PageExperiments(other_document(shown, own_documents().compared), without, similar))


ANSWER = "whose answer is shown"


def answers(state: RunState, documents: list[Chosen]) -> None:
    """One document, or a tab for each of several."""
    kept = own_documents()
    if len(documents) == 1:
        through_every_head(state, documents[0])
        return
    labels = {one.key: f"{number} · {plain(shortened(one.name, 60))}" for number, one in enumerate(documents, 1)}
    if kept.chosen not in labels:
        kept.chosen = documents[0].key
    moved = st.session_state.pop(MOVED, False)
    if moved or st.session_state.get(ANSWER) not in labels.values():
        st.session_state[ANSWER] = labels[kept.chosen]
    for one, tab in zip(documents, st.tabs(list(labels.values()), key=ANSWER, on_change="rerun"), strict=True):
        if tab.open:
            kept.chosen = one.key
            begin_reading(state, [one.text, *(other.text for other in documents)])
            with tab:
                through_every_head(state, one)


state = choose_run()
st.title("Your document")
if ready(state):
    assert state.manifest is not None
    st.markdown(
        f"See what each of the {state.manifest.shape.heads} heads of **{plain(state.manifest.model['name'])}** makes "
        f"of your text, against the {state.manifest.corpus['documents']:,} documents of the corpus."
    )
    if documents := document_input():
        answers(state, documents)
