"""The document's own words, shaded by where the chosen head looks."""

from __future__ import annotations

import streamlit as st

from pages.shared.embedding import attended
from pages.shared.figures.words import resting, strongest_words, words_html
from pages.shared.notices import told
from pages.shared.text import plain
from pages.use.your_document.state import Shown

_FROM = {
    "mean": "averaged over all tokens, for all of them are pooled",
    "last": "from the last token, which is pooled",
    "first": "from the first token, which is pooled",
}


@told
def words_section(shown: Shown) -> None:
    """The words, and what they say in a sentence."""
    assert shown.state.manifest is not None
    model = shown.state.manifest.model
    st.subheader(f"Where head {shown.head} looks", anchor=False)
    found = attended(shown.state, shown.text)
    if found is None:
        return
    words = strongest_words(shown.text, found, shown.head)
    said = f"Most of all at {', '.join(f'“{word}”' for word in words)}. " if words else ""
    rest = resting(found, shown.head)
    if rest >= 0.005:
        said += f"{rest:.0%} of its attention rests on special tokens, where heads go that have nothing to do."
    elif (first := float(found.weights[shown.head - 1, 0])) >= 0.05:
        said += f"{first:.0%} of its attention is on the very first token, where heads go that have nothing to do."
    st.markdown(plain(said))
    st.html(words_html(shown.text, found, shown.head))
    st.caption(
        f"Attention at layer {model['layer']}, {_FROM.get(model['pooling'], 'as the model pools')}. "
        "Small framed marks are special tokens; pale text was cut off and not read. It is the same at every stage."
    )
