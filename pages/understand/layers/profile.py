"""What one head does at one layer, from the sample: the panel beside the grid of the Layers page."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import streamlit as st

from core.analysis.by_topic import ByTopic
from core.analysis.layer_findings import REFERENCES
from core.analysis.layer_measures import LEAST, MEASURES, MOST
from core.analysis.wording import plural
from core.runs.tables import Row
from pages.shared import show
from pages.shared.cards import Card, cards, figure_card
from pages.shared.data import RunState, documents
from pages.shared.figures.table import Form, number, share
from pages.shared.figures.topic_gaps import GRID, gaps_figure
from pages.shared.figures.topic_gaps import MOST as MOST_TOPICS
from pages.shared.glossary import why
from pages.shared.text import plain
from pages.understand.layers.state import LayerSweep, LayerView


def profile(state: RunState, sweep: LayerSweep, view: LayerView) -> None:
    """Role, figures, topics followed and avoided, documents to read."""
    title = f"Layer {view.layer}, {view.who}, at stage {view.stage}"
    st.subheader(title, help=why("layer", "role"), anchor="head-at-layer")
    place = {"layer": view.layer, "stage": view.stage, "head": view.head}
    found = sweep.rows("layer_profiles", **place)
    row = found[0] if found else {}
    if row and view.head:
        role = row["role"]
        said = (
            f"**{plain(role).capitalize()}** – {plain(row['because'])}"
            if role
            else (f"No clear role: {plain(str(row['because']).removeprefix('no rule holds: '))}")
        )
        st.markdown(said)
    _figures(sweep, view, row)
    if not sweep.labelled:
        return
    _topics(sweep, view)
    _reading(state, sweep, view)


def _figures(sweep: LayerSweep, view: LayerView, row: Row) -> None:
    """Every measure of this cell with its interval, and what to hold it against."""
    rows = sweep.rows("layers", layer=view.layer, stage=view.stage, head=view.head)
    found = {one["measure"]: one for one in rows if one["value"] is not None}
    curves = sweep.rows("layer_curves", layer=view.layer, stage=view.stage)
    slices = _slices(sweep, view)
    st.html(GRID)
    with st.container(horizontal=True, gap="small", key="grid-layer-figures"):
        for name, measure in MEASURES.items():
            if name in found:
                against = slices.get({"topic_match": "names"}.get(name, name)) or _against(curves, name)
                figure_card(measure.name, found[name], "value", against, form=_form(name))
        if "examples" in slices:
            value = sweep.compared_cells(view.stage, "examples")["value"][view.layer - 1, view.head]
            figure_card("Topic match by examples", {"value": value}, "value", slices["examples"], form=share)
        if row.get("mean") is not None:
            figure_card("Mean similarity", row, "mean", "to the documents' own topics")
        if row.get("alignment") is not None and view.head:
            most = f"random slices ≤ {number(row.get('alignment_of_random'))}"
            figure_card("Alignment", row, "alignment", slices.get("alignment", most))
    st.caption("Below each value: 95 % CI, then the baseline at this layer.")


def _slices(sweep: LayerSweep, view: LayerView) -> dict[str, str]:
    """By measure of ``layer_null``: what 95 % of random slices have at this layer, and whether the head is beyond."""
    if not (sweep.compared and view.head):
        return {}
    place = {"layer": view.layer, "stage": view.stage}
    verdicts = {row["measure"]: row["verdict"] for row in sweep.rows("layer_null", **place, head=view.head)}
    return {
        row["measure"]: f"random slices {_form(row['measure'])(row['slices_low'])} to "
        f"{_form(row['measure'])(row['slices_high'])}: {verdicts[row['measure']]}"
        for row in sweep.rows("layer_null_summary", **place)
    }


def _form(measure: str) -> Form:
    """``measure`` is of the sweep, or of its comparison with random slices."""
    return share if measure in REFERENCES or (measure in MEASURES and MEASURES[measure].in_percent) else number


def _against(curves: list[Row], measure: str) -> str:
    rows = [row for row in curves if row["measure"] == measure]
    said = [
        f"{'random slices' if row['series'] == 'random' else MEASURES[measure].series[row['series']]} "
        f"{_form(measure)(row['value'])}"
        for row in rows
        if row["value"] is not None and (row["series"] in ("random", "within", "between") or measure == "activation")
    ]
    chance = next((row["chance"] for row in rows if row["chance"] is not None), None)
    if chance is not None and measure != "groups":
        said.append(f"chance {_form(measure)(chance)}")
    return ", ".join(said)


def _topics(sweep: LayerSweep, view: LayerView) -> None:
    st.markdown("##### Topics it follows and avoids", help=why("similarity", "interval"))
    table = sweep.table("layer_topics", layer=view.layer, stage=view.stage, head=view.head)
    if not len(table):
        st.info("No topic has at least five documents in the sample.", icon=":material/info:")
        return
    figures = {name: table[name].cast(pa.float64()).to_numpy() for name in ("gap", "low", "high")}
    order = np.argsort(-figures["gap"], kind="stable")
    gap, low, high = (values[order] for values in figures.values())
    found = ByTopic(order, gap, low, high, table["documents"].to_numpy()[order], left_out=0)
    follows, avoids = int((found.side > 0).sum()), int((found.side < 0).sum())
    st.markdown(f"Follows **{follows}** and avoids **{avoids}** of {plural(len(table), 'topic')}.")
    said = "The topic's mean similarity minus that of all other topics. By chance, 1 in 20 intervals excludes 0."
    if len(table) > MOST_TOPICS:
        said += f" Shown: the {MOST_TOPICS // 2} highest and {MOST_TOPICS // 2} lowest. The download has all topics."
    name = f"topics of head {view.head} at layer {view.layer} stage {view.stage}"
    alt = f"Similarity gaps by topic: {follows} followed and {avoids} avoided, of {plural(len(table), 'topic')}."
    show.figure(gaps_figure(found, table["topic"].to_pylist(), show.theme()), name, table, said, alt=alt)


def _reading(state: RunState, sweep: LayerSweep, view: LayerView) -> None:
    rows = sweep.rows("layer_documents", layer=view.layer, stage=view.stage, head=view.head)
    table = documents(state)
    for side, title in ((MOST, "Most similar documents"), (LEAST, "Least similar documents")):
        st.markdown(f"##### {title}", help=why("similarity"))
        mine = sorted((row for row in rows if row["side"] == side), key=lambda row: int(row["place"]))
        found = table.rows([row["doc"] for row in mine], ["title", "topic", "text"]).to_pylist()
        cards(
            [
                Card(document["title"], [document["topic"]], document["text"], row["similarity"])
                for document, row in zip(found, mine, strict=True)
            ]
        )
    st.caption("From the sample, by similarity to their own topic within this head. Click a document to read it.")
