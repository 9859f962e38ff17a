"""Two documents side by side: the heads in which they are least alike, and both profiles."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import streamlit as st

from core.analysis.document_profile import consensus, profile
from core.retrieval.pairs import pair_cosines
from pages.shared import show
from pages.shared.corpus import pairs, yardstick
from pages.shared.embedding import reading
from pages.shared.glossary import why
from pages.shared.kept import among
from pages.shared.notices import told
from pages.shared.text import plain, shortened
from pages.use.your_document.drafts import drafts
from pages.use.your_document.figures import pair_figure, profile_figure, shown_topics
from pages.use.your_document.input import Chosen
from pages.use.your_document.state import Shown

NONE = ""
_KEY = "compared document"
_MOST_ROWS = 13


@told
def compare_section(shown: Shown, chosen: Chosen) -> None:
    """A second document of this session, if there is one."""
    kept = drafts()
    names = {key: name for key, name in kept.names().items() if key != chosen.key and kept.found[key].text.strip()}
    st.subheader("Compare with another document", anchor=False)
    if not names:
        st.caption("Upload a second document, or paste one beside an uploaded one, to compare the two.")
        return
    if st.session_state.get(_KEY) not in (NONE, *names):
        st.session_state[_KEY] = kept.compared if kept.compared in names else NONE
    key = kept.compared = st.selectbox(
        "The other document", [NONE, *names], key=_KEY, format_func=lambda key: names.get(key, "none")
    )
    if not key:
        return
    other = reading(shown.state, kept.found[key].asked or kept.found[key].text)
    if other is not None:
        _side_by_side(shown, other.vectors[shown.stage][0], names[key])


def _side_by_side(shown: Shown, other: np.ndarray, name: str) -> None:
    usual = pairs(shown.state, shown.stage)
    cosines = pair_cosines(shown.vectors(shown.stage), other)
    if usual is None:
        st.caption("There are no two documents in this run to hold the pair against.")
        return
    percentiles = usual.percentile(cosines)
    heads = np.argsort(percentiles[1:], kind="stable") + 1
    apart, alike = int(heads[0]), int(heads[-1])
    st.markdown(
        plain(
            f"They are least alike in head {apart} (cosine {cosines[apart]:+.2f}, "
            f"{_among(float(percentiles[apart]))}) and most alike in head {alike} (cosine {cosines[alike]:+.2f}, "
            f"{_among(float(percentiles[alike]))}). In the full embedding: {cosines[0]:+.2f}, "
            f"{_among(float(percentiles[0]))}."
        ).replace("\\-", "−")
    )
    rows = heads if len(heads) < _MOST_ROWS else np.concatenate([heads[: _MOST_ROWS - 4], heads[-3:]])
    order = np.concatenate([[0], rows])
    table = pa.table({"head": np.arange(len(cosines)), "cosine": cosines, "percentile": percentiles})
    said = "Heads in which the two are least alike come first." + among(shown.state, "Percentiles are of pairs")
    if len(rows) < len(heads):
        said += f" The {_MOST_ROWS - 4} least and the 3 most alike of {len(heads)} heads; the data has all."
    show.figure(pair_figure(cosines, usual, order, show.theme()), "two-documents", table, said)
    if shown.state.analysed:
        _profiles(shown, other, name)


def _profiles(shown: Shown, other: np.ndarray, name: str) -> None:
    """Both profiles with the same topics in the same order, the first document's."""
    theirs = profile(other, yardstick(shown.state, shown.stage))
    order = shown_topics(shown.consensus.order, shown.consensus.choices)[:25]
    names = [shown.topics[topic] for topic in order]
    place = {int(topic): at for at, topic in enumerate(order)}
    both = ((shown.name, shown.profile, "one"), (name, theirs, "other"))
    for column, (title, found, which) in zip(st.columns(2, gap="medium"), both, strict=True):
        votes = np.array([place.get(int(topic), -1) for topic in consensus(found, shown.measure).choices])
        values = found.percentiles if shown.measure == "percentile" else found.cosines
        with column:
            st.markdown(f"##### {plain(shortened(title, 60))}", help=why("percentile", "vote"))
            drawn = profile_figure(values[:, order], names, votes, shown.head, shown.measure, show.theme())
            drawn.update_traces(showscale=False, selector={"type": "heatmap"})
            table = pa.table({"topic": list(shown.topics)} | {f"row {row}": cells for row, cells in enumerate(values)})
            show.figure(drawn, f"profile-{which}", table)


def _among(percentile: float) -> str:
    whole = round(percentile)
    if whole <= 0:
        return "less than any pair of the corpus"
    return f"more than {min(whole, 100)} % of the corpus's pairs"
