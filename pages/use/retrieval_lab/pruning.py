"""What the job measured: ways to rank side by side, which heads may go, and what weights gain."""

from __future__ import annotations

import pyarrow as pa
import streamlit as st

from core.retrieval.findings import pruned_sentence, weights_sentence
from core.retrieval.tasks import TASKS
from core.runs.tables import Row
from pages.shared.figures.table import cell, figure_table
from pages.shared.glossary import why
from pages.shared.sections import told
from pages.shared.show import figure, theme
from pages.shared.text import plain, safe
from pages.shared.url import choice_from_url, choice_to_url
from pages.use.retrieval_lab.data import rows
from pages.use.retrieval_lab.figures import curve_figure, importance_figure, ways_figure
from pages.use.retrieval_lab.state import Shown


@told
def pruning_section(shown: Shown) -> None:
    """The curve from all heads to one, on queries that had no part in the choice."""
    assert shown.task is not None
    found = rows(shown.state, "pruned", stage=shown.stage, task=shown.task)
    st.subheader("Which heads may go", anchor=False, help=why("interval", "activation"))
    if not found:
        st.info("There are too few queries to choose by one half of them and tell of the other.")
        return
    ways = [row["way"] for row in found]
    way = ways[0]
    if len(ways) > 1:
        choice_from_url("pruned", ways, ways[0])
        way = str(st.segmented_control("Let go by", ways, key="pruned", required=True) or ways[0])
        choice_to_url("pruned", way, ways[0])
    row = next(row for row in found if row["way"] == way)
    what = f"{row['metric']} among the first {row['k']}"
    assert shown.state.manifest is not None
    st.markdown(plain(pruned_sentence(row, shown.state.manifest.shape, shown.stage)))
    wanted = {"stage": shown.stage, "task": shown.task, "way": way}
    curve = rows(shown.state, "pruning", **wanted)
    figure(
        curve_figure(curve, row["heads"], theme(), what),
        "pruning-curve",
        pa.Table.from_pylist(curve),
        caption=f"Chosen by {row['chosen_by']} queries, shown for the {row['told_of']} others. Shaded: 95 % "
        "intervals over the queries; for random order, 95 % of 20 orders.",
        alt="The metric as heads go one by one, in three orders.",
    )
    importance = rows(shown.state, "importance", **wanted)
    figure(
        importance_figure(importance, theme(), row["metric"]),
        "head-importance",
        pa.Table.from_pylist(importance),
        caption="What is lost when one head alone goes, on all queries; filled: heads of the smallest set that is "
        "enough. A head whose work others do as well loses nothing by itself.",
        alt="What is lost without each head, with intervals.",
    )


@told
def ways_section(shown: Shown) -> None:
    """Every way to rank with all heads."""
    assert shown.task is not None
    metric, places = TASKS[shown.task].metric, TASKS[shown.task].places
    found = rows(shown.state, "retrieval", stage=shown.stage, task=shown.task, metric=metric, k=places)
    st.subheader("All ways, all heads", anchor=False, help=why("interval", "chance"))
    figure(
        ways_figure(found, theme(), f"{metric} among the first {places}"),
        "ways",
        pa.Table.from_pylist(found),
        caption=f"{found[0]['queries'] if found else 0} queries, 95 % intervals.",
        alt="One metric for every way to rank, with intervals and chance.",
    )


@told
def weights_section(shown: Shown) -> None:
    """Learned weights against uniform ones and MRAG's scores."""
    assert shown.task is not None
    found = rows(shown.state, "weights", stage=shown.stage, task=shown.task)
    if not found:
        return
    st.subheader("What weights gain", anchor=False, help=why("interval"))
    st.markdown(plain(weights_sentence(found)))
    lines = [(safe(_KINDS[row["kind"]]), [cell(row, "value"), _gained(row)]) for row in found]
    metric = TASKS[shown.task]
    columns = [f"{metric.metric} among the first {metric.places}", "gained over uniform weights"]
    st.html(figure_table([safe(name) for name in columns], -1, lines))
    st.caption(
        "Weights for the mean of head cosines, learned on one half of the queries (regularised towards 1, how strongly "
        "by cross-validation) and shown for the other. They are a preset above."
    )


_KINDS = {"uniform": "uniform", "mrag": "MRAG's head scores", "learned": "learned"}


def _gained(row: Row) -> str:
    return "–" if row["kind"] == "uniform" else cell(row, "gained")
