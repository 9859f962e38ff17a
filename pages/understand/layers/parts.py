"""How much of the embedding is each head's: the grid of layers × heads, and one head by topic."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import streamlit as st

from core.analysis.by_topic import ByTopic
from core.analysis.explained import TermGrid, rounded_to_sum, signed
from core.analysis.wording import percent
from core.runs.tables import Row
from pages.shared import show
from pages.shared.components.beside import GRID_BESIDE, asked, beside
from pages.shared.components.layer_grid import GridCell, layer_grid
from pages.shared.data import RunState
from pages.shared.figures.term_grid import hundredths, term_grid
from pages.shared.figures.topic_gaps import gaps_figure
from pages.shared.glossary import why
from pages.shared.notices import shows_mistakes
from pages.shared.text import plain
from pages.shared.url import decide
from pages.shared.whose import term_rows, terms_of, whose_section
from pages.understand.layers.sections import close_details
from pages.understand.layers.state import LayerView


@shows_mistakes
def parts(state: RunState, view: LayerView) -> None:
    """The bar, the grid, and the chosen head's part by topic."""
    assert state.manifest is not None
    whose_section(state)
    rows = term_rows(state, "parts")
    if not rows:
        return
    places = beside("parts", below=state.manifest.shape.heads > GRID_BESIDE)
    with places.picture:
        _grid(rows, view)
    mine = _topic_rows(state, view)
    if mine and view.details:
        with places.result(f"Layer {view.layer}, head {view.head}: its share by topic", close_details):
            _by_topic(mine, rows, view)


def _grid(rows: list[Row], view: LayerView) -> None:
    terms, means = terms_of(rows)
    shown = rounded_to_sum(means, 1.0, 3)
    by_term = {(row["kind"], row["layer"], row["head"]): row for row in rows}
    heads = max(term.head or 0 for term in terms)

    def note(at: int) -> str:
        row = by_term[terms[at].kind, terms[at].layer, terms[at].head]
        said = f"{_percent(row['mean'])}, 95 % CI {_percent(row['low'])} to {_percent(row['high'])}"
        return f"{said}\nstandard deviation over documents {_percent(row['spread'])}{_topics(row)}"

    def picked(place: GridCell) -> None:
        if place.column < heads:
            asked("parts")
            decide("details", 1)
            decide("layer", place.row + 1)
            decide("head", place.column + 1)

    drawn = term_grid(
        terms,
        shown,
        hundredths,
        note,
        show.theme(),
        "Each term's share of the embedding's length in percent.",
        "parts",
    )
    layer_grid(drawn, "parts grid", GridCell(view.layer - 1, view.head - 1) if view.head else None, picked)
    grid = TermGrid.of(terms, shown)
    final = [f"final bias {_percent(grid.final_bias)}"] if ("bias", None, None) in by_term else []
    added = [f"layers {_percent(grid.layers.sum())}", f"embeddings {_percent(grid.embedding)}", *final]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(
            plain(f"In percent: {' + '.join(added)} = {_percent(shown.sum())}. ").replace("+ −", "− ")
            + "ff: feed-forward block; bias: the layer's biases. Click a head to see its share by topic."
        )
        sums = f"In percent: {' + '.join(added)} = {_percent(shown.sum())}.".replace("+ −", "− ")
        show.downloads("parts", lambda: pa.Table.from_pylist(rows), show.grid_paper(drawn, sums))


def _topics(row: Row) -> str:
    """What topics explain of the variation over documents, against shuffled labels."""
    if row["explained"] is None:
        return ""
    beyond = row["explained"] > row["explained_by_chance"]
    return (
        f"\ntopics explain {percent(row['explained'])} of it, {'more than' if beyond else 'no more than'} with "
        f"shuffled labels (95 %: {percent(row['explained_by_chance'])})"
    )


def _of_head(rows: list[Row], view: LayerView) -> list[Row]:
    place = {"kind": "head", "layer": view.layer, "head": view.head}
    return [row for row in rows if all(row[key] == value for key, value in place.items())]


def _topic_rows(state: RunState, view: LayerView) -> list[Row]:
    return _of_head(term_rows(state, "part_topics"), view) if view.head else []


def _by_topic(mine: list[Row], rows: list[Row], view: LayerView) -> None:
    (whole,) = _of_head(rows, view)
    title = f"Layer {view.layer} head {view.head}: its share by topic"
    st.subheader(title, help=why("share", "interval"), anchor="share-by-topic")
    figures = {name: np.array([np.nan if row[name] is None else row[name] for row in mine]) for name in _GAPS}
    order = np.argsort(-figures["gap"], kind="stable")
    gap, low, high = (100 * figures[name][order] for name in _GAPS)
    counts = np.array([row["documents"] for row in mine])[order]
    drawn = gaps_figure(ByTopic(order, gap, low, high, counts, 0), [row["topic"] for row in mine], show.theme())
    drawn.update_xaxes(title_text="difference from other topics, percentage points")
    said = f"{_percent(whole['mean'])} of the embedding's length on average.{_topics(whole).replace(chr(10), ' ')}."
    show.figure(
        drawn,
        f"part by topic of head {view.head} at layer {view.layer}",
        pa.Table.from_pylist(mine),
        f"{said.replace('% of it', '% of its variation')} By chance, 1 in 20 intervals excludes 0.",
        alt=f"Dot plot: share of layer {view.layer} head {view.head} in each topic against all other topics.",
    )


_GAPS = ("gap", "low", "high")


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{signed(100 * float(value), 1)} %"
