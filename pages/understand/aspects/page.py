"""Aspects: which head carries topic, which genre, which length; and what it is not shown to carry."""

import streamlit as st

from pages.shared.controls import choose_run, choose_stage
from pages.shared.data import RunState
from pages.shared.empty_states import ready
from pages.shared.notices import shows_mistakes
from pages.understand.aspects.detail import confused, reading, values
from pages.understand.aspects.layer import at_layer, choose_layer
from pages.understand.aspects.sections import AspectView, against_each_other, choose_measure, chosen, matrix, mingled

state = choose_run()

st.title("Aspects")
st.markdown(
    "A text has a topic, a genre, a language, a length. **Which of these can be read from which head alone?** A small "
    "linear probe tries it on documents that it has not seen; random slices of the same size are the baseline."
)


@shows_mistakes
def aspects(state: RunState) -> None:
    assert state.manifest is not None
    left, right, last = st.columns((5, 3, 3), gap="medium", vertical_alignment="top")
    with left:
        stage = choose_stage(state.manifest)
    with right:
        measure = choose_measure()
    with last:
        layer = choose_layer(state, stage, measure)
    shown = AspectView.of(state, stage, measure)
    if not shown.names:
        st.info(
            "No aspect of this run has two values with enough documents. Give the documents topics with "
            f"`python -m precompute label {state.run.name}`, or add a column with few values to the corpus.",
            icon=":material/label_off:",
        )
        return
    if layer != int(state.manifest.model["layer"]):
        shown = at_layer(shown, layer)
        if not shown.names:
            st.info(f"No aspect has enough documents in the sample of layer {layer}.", icon=":material/label_off:")
            return
    matrix(shown)
    against_each_other(shown)
    if shown.layer is not None:
        return
    aspect, head = chosen(shown)
    values(shown, aspect, head)
    confused(shown, aspect, head)
    reading(shown, aspect, head)
    mingled(shown, aspect, head)


if ready(state, "aspects"):
    aspects(state)
