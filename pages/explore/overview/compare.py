"""Two runs side by side on the Overview: what they are, their figures, their maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from core.analysis.probe import BY_DOCUMENT
from core.model.stages import HEADS, STAGES
from core.runs.describe import stored
from core.runs.tables import Row, Tables
from pages.explore.overview.report import small_maps
from pages.shared.controls import choose_other_run
from pages.shared.data import RunState, tables
from pages.shared.figures.table import cell, figure_table
from pages.shared.notices import shows_mistakes
from pages.shared.text import plain, safe

Line = tuple[str, list[str]]


@shows_mistakes
def beside_another(state: RunState) -> None:
    """The chosen run and another one, a column each."""
    if not state.analysed:
        return
    with st.container(width=420):
        other = choose_other_run(state)
    if other is None:
        return
    both = (state, other)
    found = [tables(one) for one in both]
    st.html(figure_table([safe(one.run.name) for one in both], -1, [*_what_they_are(found), *_figures(found)]))
    st.caption(
        "Models can be compared only on the same corpus and labels. Below each value: 95 % CI. The best single head "
        "was chosen by this very figure, so its value is somewhat optimistic."
    )
    for one, column in zip(both, st.columns(2, gap="medium"), strict=True):
        with column:
            st.markdown(f"**{plain(one.run.name)}**")
            if one.projected:
                small_maps(one, f"maps-of-{one.run.name}")
            else:
                st.caption("This run has no maps yet.")


def _what_they_are(found: Sequence[Tables]) -> list[Line]:
    facts: dict[str, Callable[[Tables], object]] = {
        "Model": lambda one: one.manifest.model["name"],
        "Layer": lambda one: f"{one.manifest.model['layer']} of {one.manifest.model['layers']}",
        "Heads": lambda one: one.manifest.shape.heads,
        "Key/value groups": lambda one: one.manifest.shape.kv_heads,
        "Pooling": lambda one: one.manifest.model["pooling"],
        "Corpus": lambda one: f"{one.manifest.corpus['source']}, {one.manifest.corpus['documents']:,} documents",
        "Vectors": lambda one: stored(one.manifest),
        "Labelled": lambda one: f"{one.labelled:,}",
        "Probe by chance": lambda one: f"{1 / one.manifest.shape.heads:.2f}",
        "Topic match by chance": lambda one: f"{1 / int(one.manifest.steps['analyse'].counts['topics']):.2f}",
    }
    return [(name, [safe(fact(one)) for one in found]) for name, fact in facts.items()]


def _figures(found: Sequence[Tables]) -> list[Line]:
    figures: dict[str, Callable[[Tables, int], Row | None]] = {
        "Probe by document": lambda one, stage: one.one("probe", stage=stage, slicing=HEADS, split=BY_DOCUMENT, head=0),
        "Topic match, full embedding": lambda one, stage: one.one(
            "topic_match", stage=stage, slicing=HEADS, method="full", within=1
        ),
        "Topic match, best single head": _best_head,
    }
    stages = sorted({stage for one in found for stage in one.manifest.stages})
    return [
        (f"{name} · {stage} {STAGES[stage].name}", [_shown(pick(one, stage)) for one in found])
        for name, pick in figures.items()
        for stage in stages
    ]


def _best_head(found: Tables, stage: int) -> Row | None:
    rows = found.pick("topic_match", stage=stage, slicing=HEADS, method="head", within=1)
    return max(rows, key=lambda row: row["rate"], default=None)


def _shown(row: Row | None) -> str:
    """The figure and its interval; a dash where a run does not have it."""
    if row is None:
        return "–"
    head = f" (head {row['head']})" if row.get("method") == "head" else ""
    return cell(row, "value" if "value" in row else "rate").replace("<small>", f"{head}<small>", 1)
