"""Your document: a text that the model has never seen, through every head of a run."""

import streamlit as st

from core.errors import Mistake
from pages.shared.controls import choose_stage
from pages.shared.data import RunState
from pages.shared.embedding import reading
from pages.shared.empty_states import ready
from pages.shared.problem import show_problem
from pages.shared.sidebar import choose_run
from pages.shared.text import plain
from pages.use.your_document.compare import compare_section
from pages.use.your_document.controls import head_pills, length_notes, part_control
from pages.use.your_document.export import keep_section
from pages.use.your_document.input import Chosen, document_input
from pages.use.your_document.map import map_section
from pages.use.your_document.neighbours import neighbours_section
from pages.use.your_document.sections import (
    activation_section,
    along_section,
    consensus_section,
    measure_control,
    profile_section,
)
from pages.use.your_document.state import Shown
from pages.use.your_document.words import words_section


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
        head = head_pills(state.manifest.shape.heads)
        measure = measure_control() if state.analysed else "percentile"
    shown = Shown(state, chosen.name, found, part, stage, head, measure)
    consensus_section(shown)
    profile_section(shown)
    along_section(shown)
    neighbours_section(shown)
    words_section(shown)
    map_section(shown)
    activation_section(shown)
    compare_section(shown, chosen)
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
        try:
            through_every_head(state, chosen)
        except Mistake as mistake:  # a file of the run is missing or damaged
            show_problem(mistake)
