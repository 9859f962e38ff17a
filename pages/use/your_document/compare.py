"""Comparing a document with another one, of this session or of the corpus."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import streamlit as st

from core.analysis.document_profile import profile
from core.retrieval.pairs import pair_cosines
from pages.shared import show
from pages.shared.corpus import pairs
from pages.shared.data import head_index
from pages.shared.embedding import EmbeddedText, WhyText, reading
from pages.shared.glossary import why
from pages.shared.notices import among, shows_mistakes
from pages.shared.text import plain, shortened
from pages.shared.why_similar import WhySimilar, choose_why, corpus_text, why_similar
from pages.use.your_document.documents import own_documents
from pages.use.your_document.figures import pair_figure, profile_figure, shown_topics
from pages.use.your_document.input import Chosen
from pages.use.your_document.state import NEIGHBOURS, DocumentView

NONE = ""
_KEY = "compared document"
_MOST_ROWS = 13


@dataclass(frozen=True)
class OtherDocument:
    """What a document is compared with."""

    name: str
    reading: EmbeddedText

    def vectors(self, stage: int) -> np.ndarray:
        """Of its beginning: ``[head, dim]``."""
        return self.reading.vectors[stage][0]

    def cosines(self, shown: DocumentView) -> np.ndarray:
        """With the document that is shown, ``[1 + head]``."""
        space = head_index(shown.state, shown.stage).space
        return pair_cosines(shown.vectors(shown.stage), self.vectors(shown.stage), space)


def other_document(shown: DocumentView, key: str) -> OtherDocument | None:
    """The session's document to compare with; None before one is embedded."""
    kept = own_documents()
    if not key or key not in kept.found:
        return None
    other = reading(shown.state, kept.found[key].asked or kept.found[key].text)
    return None if other is None else OtherDocument(kept.names()[key], other)


@shows_mistakes
def compare_section(shown: DocumentView, chosen: Chosen) -> None:
    """A second document of this session, if there is one."""
    kept = own_documents()
    names = {key: name for key, name in kept.names().items() if key != chosen.key and kept.found[key].text.strip()}
    st.subheader("Compare with another document", anchor="compare")
    if not names:
        st.caption("Add a second document to compare the two.")
        return
    if st.session_state.get(_KEY) not in (NONE, *names):
        st.session_state[_KEY] = kept.compared if kept.compared in names else NONE
    key = kept.compared = st.selectbox(
        "The other document", [NONE, *names], key=_KEY, format_func=lambda key: names.get(key, "none")
    )
    if (other := other_document(shown, key)) is not None:
        _side_by_side(shown, other)


def least_alike_first(percentiles: np.ndarray) -> np.ndarray:
    """Rows of the figure: the full embedding, then heads; of many, the least alike and the three most alike."""
    heads = np.argsort(percentiles[1:], kind="stable") + 1
    rows = heads if len(heads) < _MOST_ROWS else np.concatenate([heads[: _MOST_ROWS - 4], heads[-3:]])
    return np.concatenate([[0], rows])


def _side_by_side(shown: DocumentView, other: OtherDocument) -> None:
    usual, cosines = pairs(shown.state, shown.stage), other.cosines(shown)
    if usual is None:
        st.caption("Too few documents for a baseline.")
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
    order = least_alike_first(percentiles)
    table = pa.table({"head": np.arange(len(cosines)), "cosine": cosines, "percentile": percentiles})
    said = "Least alike heads first." + among(shown.state, "Percentiles are of pairs")
    if len(order) <= len(heads):
        said += f" The {_MOST_ROWS - 4} least and the 3 most alike of {len(heads)} heads; the download has all."
    alt = "Cosine of the two documents in the full embedding and in each head, compared with pairs of corpus documents."
    show.figure(pair_figure(cosines, usual, order, show.theme()), "two-documents", table, said, alt=alt)
    if shown.state.analysed:
        _profiles(shown, other.vectors(shown.stage), other.name)


def _profiles(shown: DocumentView, other: np.ndarray, name: str) -> None:
    """Both profiles with the same topics in the same order, the first document's."""
    theirs = profile(other, shown.yardstick)
    order = shown_topics(shown.consensus.order, shown.consensus.choices)[:25]
    names = [shown.topics[topic] for topic in order]
    place = {int(topic): at for at, topic in enumerate(order)}
    both = ((shown.name, shown.profile, "one"), (name, theirs, "other"))
    for column, (title, found, which) in zip(st.columns(2, gap="medium"), both, strict=True):
        votes = np.array([place.get(int(topic), -1) for topic in shown.votes(found).choices])
        values = shown.cells(found)
        with column:
            st.markdown(f"##### {plain(shortened(title, 60))}", help=why("percentile", "vote"))
            drawn = profile_figure(
                values[:, order], names, votes, shown.head, shown.measure, show.theme(), shown.reliability
            )
            drawn.update_traces(showscale=False, selector={"type": "heatmap"})
            table = pa.table({"topic": list(shown.topics)} | {f"row {row}": cells for row, cells in enumerate(values)})
            alt = f"Heat map of {len(names)} topics and {len(values)} columns, the full embedding and the heads."
            show.figure(drawn, f"profile-{which}", table, alt=alt)


def _among(percentile: float) -> str:
    whole = round(percentile)
    if whole <= 0:
        return "less than any pair of corpus documents"
    return f"more than {min(whole, 100)} % of pairs of corpus documents"


@shows_mistakes
def why_section(shown: DocumentView, chosen: Chosen) -> WhySimilar | None:
    """Why this document is near one of the corpus, or near the other one of this session that it is compared with."""
    near = [*shown.nearest.docs[0][:NEIGHBOURS].tolist(), *shown.nearest.docs[shown.head][:NEIGHBOURS].tolist()]
    doc = choose_why(shown.state, list(dict.fromkeys(near)), "Why is it similar to a document of the corpus?")
    own, kept = WhyText(chosen.name, shown.text), own_documents()
    if doc is not None:
        return why_similar(shown.state, own, corpus_text(shown.state, doc))
    if kept.compared in kept.found and kept.compared != chosen.key:
        other = kept.found[kept.compared]
        return why_similar(shown.state, own, WhyText(kept.names()[kept.compared], other.asked or other.text))
    return None
