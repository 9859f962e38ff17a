"""Where the labels come from, who has none and why, and how far two sources of labels agree."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import streamlit as st

from core.analysis.agreement import Compared
from core.analysis.wording import percent
from core.runs.labels import LABEL_SOURCES, Labels
from pages.shared.data import RunState, compared, label_sources, tables
from pages.shared.glossary import why
from pages.shared.notices import shows_mistakes
from pages.shared.show import cells, drawn_once, figure, theme
from pages.shared.text import plain
from pages.understand.topics.figures import confusion_figure

MOST_TOPICS = 40
"""On the axes of the confusion; the download has all."""
MOST_REASONS = 50


@st.fragment
@shows_mistakes
def label_section(state: RunState) -> None:
    """The sources that the run keeps, the active one first, and the agreement of any two."""
    st.subheader(
        "Where do the labels come from?", help=why("topic match", "zero-shot", "circular"), anchor="label-sources"
    )
    facts = tables(state).labels
    kept = label_sources(state)
    st.markdown(
        "This page treats a document's label as its topic. Labels come from the corpus itself, from a language model "
        "that read the document, from a file, or from the embedding (zero-shot)."
    )
    if facts.source is None:
        st.info("No document of this run has a label.", icon=":material/label_off:")
        st.code(
            f"python -m precompute label {state.run.name} --labels openai --dry-run", language=None, wrap_lines=True
        )
    else:
        mark = " :orange-badge[circular]" if facts.circular else ""
        st.markdown(f"Active: **{plain(facts.sentence)}**.{mark}")
    _table(kept, facts.source)
    _reasons(kept, facts.source)
    _agreement(state, kept)


def _table(kept: dict[str, Labels], active: str | None) -> None:
    rows = [
        {
            "source": name,
            "active": name == active,
            "from": LABEL_SOURCES[name],
            "labelled": found.labelled,
            "unlabelled": len(found.topics) - found.labelled,
        }
        for name, found in kept.items()
    ]
    if rows:
        st.dataframe(rows, hide_index=True)


def _reasons(kept: dict[str, Labels], active: str | None) -> None:
    """Why documents of the active source have no label, by reason."""
    found = kept.get(active or "")
    reasons = found.why_not if found else {}
    if not reasons or active is None:
        return
    with st.expander(f"Why {_documents(sum(reasons.values()))} no label"):
        shown = list(reasons.items())[:MOST_REASONS]
        said = cells([reason for reason, _ in shown])
        st.dataframe({"documents": [count for _, count in shown], "reason": said}, hide_index=True)
        st.caption(f"The run's labels/{plain(active)}.parquet has the reason for each document.")


def _documents(count: int) -> str:
    return f"{count:,} document{' has' if count == 1 else 's have'}"


def _agreement(state: RunState, kept: dict[str, Labels]) -> None:
    usable = [name for name, found in kept.items() if found.labelled]
    pairs = list(itertools.combinations(usable, 2))
    if not pairs:
        st.caption(
            "A second source shows how reliable the labels are: "
            f"python -m precompute label {plain(state.run.name)} with \\-\\-labels openai, file or zero\\-shot."
        )
        return
    st.markdown("##### Do the sources agree?", help=why("kappa", "interval"))
    names = {f"{first} and {second}": (first, second) for first, second in pairs}
    chosen = next(iter(names))
    if len(names) > 1:
        chosen = str(st.selectbox("Sources", list(names), key="label sources"))
    found = compared(state, *names[chosen])
    _figures(found)
    if not found.agreement.documents:
        return
    shown = found.topics[:MOST_TOPICS]
    counts = found.agreement.confusion[: len(shown), : len(shown)]
    axes = f"{found.first} (rows)", f"{found.second} (columns)"
    left_out = f" The {MOST_TOPICS} most frequent of {len(found.topics)} topics." if shown != found.topics else ""
    figure(
        drawn_once(
            state.run,
            state.analysis_version,
            f"labels {chosen}",
            0,
            theme(),
            lambda: confusion_figure(shown, counts, axes, theme()),
        ),
        "label confusion",
        _cells(found),
        f"Documents by {found.first} (rows) and {found.second} (columns); the diagonal is agreement."
        f"{left_out} Colour: share of the row.",
        alt=f"Documents by topic according to {found.first} and {found.second}; {percent(found.agreement.share)} "
        "agree.",
    )


def _figures(found: Compared) -> None:
    agreed = found.agreement
    if not agreed.documents:
        st.info(plain(found.sentence), icon=":material/info:")
        return
    says_nothing = bool(found.constant)
    kappa = "–" if says_nothing else f"{agreed.kappa:.2f}"
    with st.container(horizontal=True, gap="small"):
        st.metric("Same topic", percent(agreed.share, 1), border=True, width="content")
        st.metric("Cohen's kappa", kappa, help=why("kappa"), border=True, width="content")
        if not says_nothing:
            interval = f"{agreed.low:.2f} to {agreed.high:.2f}"
            st.metric("95 % CI", interval, help=why("interval"), border=True, width="content")
        st.metric("Labelled by both", f"{agreed.documents:,}", border=True, width="content")
    if says_nothing:
        st.markdown(plain(found.sentence))
    if agreed.only_first or agreed.only_second or agreed.neither:
        st.caption(
            f"Not compared: {agreed.only_first:,} labelled only by {plain(found.first)}, {agreed.only_second:,} only "
            f"by {plain(found.second)}, {agreed.neither:,} by neither."
        )


def _cells(found: Compared) -> pa.Table:
    """The confusion as rows, without its empty cells."""
    confusion = found.agreement.confusion
    rows, columns = np.nonzero(confusion)
    return pa.table(
        {
            found.first: [found.topics[row] for row in rows],
            found.second: [found.topics[column] for column in columns],
            "documents": confusion[rows, columns],
        }
    )
