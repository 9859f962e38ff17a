"""Single heads on a document: what they attend to, and how large their activation is."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import streamlit as st

from core.analysis.document_profile import Ranks
from core.analysis.wording import percent
from pages.shared import show
from pages.shared.embedding import attended
from pages.shared.figures.words import resting, strongest_words, words_html
from pages.shared.glossary import why
from pages.shared.heads_in_address import heads_named
from pages.shared.notices import among, shows_mistakes
from pages.shared.text import plain
from pages.use.your_document.figures import activation_figure
from pages.use.your_document.state import (
    DocumentView,
)

_FROM = {
    "mean": "averaged over all tokens, because all of them are pooled",
    "last": "from the last token, which is pooled",
    "first": "from the first token, which is pooled",
}


@shows_mistakes
def words_section(shown: DocumentView) -> None:
    """The shaded words, and a sentence that sums them up."""
    assert shown.state.manifest is not None
    model = shown.state.manifest.model
    st.subheader(f"Where head {shown.head} looks", anchor="words")
    found = attended(shown.state, shown.text)
    if found is None:
        return
    words = strongest_words(shown.text, found, shown.head)
    said = f"Mostly at {', '.join(f'“{word}”' for word in words)}. " if words else ""
    rest = resting(found, shown.head)
    if rest >= 0.005:
        said += f"{percent(rest)} of its attention rests on special tokens, a common resting place for idle heads."
    elif (first := float(found.weights[shown.head - 1, 0])) >= 0.05:
        said += f"{percent(first)} of its attention is on the very first token, a common resting place for idle heads."
    st.markdown(plain(said))
    st.html(words_html(shown.text, found, shown.head))
    st.caption(
        f"Attention at layer {model['layer']}, {_FROM.get(model['pooling'], 'as the model pools')}. "
        "Framed: special tokens. Pale: cut off, not read. The same at every stage."
    )


@shows_mistakes
def activation_section(shown: DocumentView) -> None:
    """Each head's activation for this document, compared with the corpus."""
    if not shown.state.analysed:
        return
    st.subheader("Activation of each head", help=why("activation", "percentile"), anchor="activation")
    found = shown.profile
    corpus = Ranks(shown.yardstick.activations.values[1:])
    percentiles = found.activation_percentiles[1:]
    loud = [int(head) + 1 for head in np.flatnonzero(percentiles >= 95)]
    quiet = [int(head) + 1 for head in np.flatnonzero(percentiles <= 5)]
    said = [f"Stronger than in 95 % of the corpus: {heads_named(loud)}."] if loud else []
    said += [f"Weaker than in 95 % of the corpus: {heads_named(quiet)}."] if quiet else []
    st.markdown(plain(" ".join(said) or "No head is unusually strong or weak for this document."))
    table = pa.table(
        {
            "head": np.arange(1, len(percentiles) + 1),
            "activation": found.activation[1:],
            "percentile": percentiles,
        }
    )
    drawn = activation_figure(found.activation[1:], corpus, shown.head, show.theme())
    show.figure(
        drawn,
        "activation",
        table,
        among(shown.state, "Percentiles are").strip(),
        alt="Activation of each head for this document, compared with the corpus.",
    )
