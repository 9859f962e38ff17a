"""How much of the embedding is whose: the parts of its length as a bar that adds up to 100 %, from the layer sweep."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import streamlit as st

from core.analysis.explained import signed
from core.model.ledger import KINDS, Term
from core.runs.results import read_analysis
from core.runs.run import Run
from core.runs.steps import command
from core.runs.tables import Row
from pages.shared.data import RunState
from pages.shared.figures.whose import whose_figure
from pages.shared.glossary import why
from pages.shared.notices import shows_mistakes
from pages.shared.run_version import LAYERS, one_version, version_of
from pages.shared.show import Remake, drawn_once, figure, theme
from pages.shared.text import plain

TITLE = "What the embedding is made of"


def term_rows(state: RunState, table: str) -> list[Row]:
    """``parts``, ``part_topics`` or ``pair_parts`` of a run that has been swept; none of an older version's."""
    manifest = state.manifest
    if manifest is None or not manifest.is_done("layers") or not state.run.has(state.run.analysis_path(table)):
        return []
    return _rows(state.run, version_of(manifest, LAYERS), table)


@st.cache_resource(max_entries=16, show_spinner=False)
@one_version(*LAYERS)
def _rows(run: Run, version: str, table: str) -> list[Row]:
    found: list[Row] = read_analysis(run, table).to_pylist()
    return found


def terms_of(rows: Sequence[Row]) -> tuple[tuple[Term, ...], np.ndarray]:
    """The terms of ``parts`` and their means, without the sums of terms."""
    own = [row for row in rows if row["kind"] in KINDS]
    return tuple(Term(row["kind"], row["layer"], row["head"]) for row in own), np.array([row["mean"] for row in own])


@shows_mistakes
def whose_section(state: RunState) -> None:
    """The sentence and the bar; a run that does not have them says what to do."""
    assert state.manifest is not None
    st.subheader(TITLE, help=why("share", "interval"), anchor="shares")
    if not state.manifest.is_done("layers") or not state.run.has(state.run.analysis_path("parts")):
        st.caption(f"Not measured yet. Run `{command('layers', state.run.name)}`.")
        return
    rows = term_rows(state, "parts")
    if not rows:
        st.caption("This model's embedding cannot be written as a sum over its heads, so shares are not available.")
        return
    st.markdown(plain(whose_sentence(rows)))
    documents, version = rows[0]["documents"], version_of(state.manifest, LAYERS)
    figure(
        drawn_once(state.run, version, "whose", 0, theme(), lambda: whose_figure(rows, theme())),
        "whose",
        lambda: pa.Table.from_pylist(rows),
        f"Mean over {documents:,} documents. Shares are signed: what points away from the embedding is negative. "
        "A head's share is direct: what later layers compute from its output counts as theirs.",
        alt=f"Stacked bar of the shares of the embedding's length, 100 % in total. {whose_sentence(rows)}",
        remake=Remake("whose"),
    )


def whose_sentence(rows: Sequence[Row]) -> str:
    """``Heads add 84 % …, of which 61 % by layer 6; its head 11 alone 12 % (11 to 13 %). Feed-forward blocks …``."""
    sums = {row["kind"]: row for row in rows if row["layer"] is None}
    layers = [row for row in rows if row["kind"] == "heads" and row["layer"] is not None]
    most = max(layers, key=lambda row: float(row["mean"]))
    head = max((row for row in rows if row["kind"] == "head"), key=lambda row: float(row["mean"]))
    others = [("mlps", "feed-forward blocks"), ("embedding", "embeddings"), ("biases", "biases")]
    said = [f"{name} {_percent(sums[kind]['mean'])}" for kind, name in others if kind in sums]
    return (
        f"Heads make up {_percent(sums['heads']['mean'])} of the embedding's length, those of layer {most['layer']} "
        f"alone {_percent(most['mean'])}; {', '.join(said)}. The largest single share is layer {head['layer']} head "
        f"{head['head']}'s: {_percent(head['mean'])} (95 % CI {_percent(head['low'])} to {_percent(head['high'])}; "
        f"standard deviation over documents {_percent(head['spread'])})."
    )


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{signed(100 * value, 1)} %"
