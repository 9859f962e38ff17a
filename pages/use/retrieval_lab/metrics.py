"""How good the two ways are on all queries, with the heads that are on."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import streamlit as st

from core.analysis.bootstrap import Interval, ratios
from core.retrieval.metrics import METRICS
from core.retrieval.tasks import TASKS, TOPIC_MATCH
from core.retrieval.ways import DEPTH
from core.runs.tables import Row
from pages.shared.figures.table import figure_table, number
from pages.shared.glossary import why
from pages.shared.kept import among
from pages.shared.sections import told
from pages.shared.show import downloads, figure, theme
from pages.shared.text import safe
from pages.shared.url import choice_from_url, choice_to_url
from pages.use.retrieval_lab.data import bench, judge
from pages.use.retrieval_lab.figures import aspects_figure
from pages.use.retrieval_lab.state import Shown

_PLACES = (1, 3, 5, 10, 20, DEPTH)


@told
def metrics_section(shown: Shown) -> None:
    """The table for the current heads, against all heads and against each other, paired by query."""
    assert shown.task is not None
    st.subheader("How good that is on all queries", anchor=False, help=why("interval"))
    found = bench(shown.state, shown.stage, shown.task)
    choice_from_url("k", _PLACES, TASKS[shown.task].places)
    places = st.segmented_control(
        "Among the first", _PLACES, key="k", required=True, help="Documents of a ranking that are looked at."
    )
    places = int(places or 10)
    choice_to_url("k", places, TASKS[shown.task].places)
    measured = {}
    for way in dict.fromkeys(shown.ways):
        judged = judge(shown.state, shown.stage, shown.task, way)
        depth = min(places, judged.answers.relevant.shape[1] - 1) or 1
        everyone = judged.measured(judged.total(np.ones(judged.heads)), depth)[:, :, -1]
        measured[way] = (judged.measured(judged.total(shown.weights), depth)[:, :, -1], everyone)
    first, second = (measured[way] for way in shown.ways)
    columns = {
        f"{shown.ways[0]}, these heads": _means(first[0]),
        f"{shown.ways[1]}, these heads": _means(second[0]),
        "difference": _means(second[0] - first[0]),
        f"{shown.ways[0]}: these less all heads": _means(first[0] - first[1]),
    }
    lines = [
        (f'<span title="{safe(sentence)}">{safe(metric)}</span>', [_cell(values, at) for values in columns.values()])
        for at, (metric, sentence) in enumerate(METRICS.items())
    ]
    st.html(figure_table([safe(name) for name in columns], -1, lines))
    judged_by = f"{len(found.aspects)} of {found.of:,}" if len(found.aspects) < found.of else f"all {found.of:,}"
    st.caption(
        f"{TASKS[shown.task].sentence} By {judged_by} queries, among the first {places}; 95 % intervals, differences "
        "paired by query. Heads that were chosen by these same queries look better here than they are: the curve "
        f"below is told of queries that had no part in the choice.{_among(shown)}"
    )
    downloads("retrieval-metrics", lambda: _table(columns))
    counts = sorted(set(found.aspects.tolist()))
    if len(counts) > 1:
        _by_aspects(shown, found.aspects, counts, {way: values[0] for way, values in measured.items()}, places)


def _among(shown: Shown) -> str:
    """Fewer documents are easier to search: figures of a sample are not those of the corpus."""
    assert shown.state.manifest is not None
    if not shown.state.manifest.is_sampled or shown.task == TOPIC_MATCH:
        return among(shown.state)
    return f"{among(shown.state)} That is easier than among all, of which the figures below are."


def _by_aspects(
    shown: Shown, aspects: np.ndarray, counts: list[int], measured: dict[str, np.ndarray], places: int
) -> None:
    metric = list(METRICS).index("success")
    lines: dict[str, list[Row]] = {}
    for way, values in measured.items():
        lines[way] = []
        for count in counts:
            of = _means(values[:, aspects == count])
            row = {"value": of.value[metric], "low": of.low[metric], "high": of.high[metric]}
            lines[way].append({**row, "queries": int((aspects == count).sum())})
    figure(
        aspects_figure(counts, lines, theme(), f"success among the first {places}"),
        "retrieval-by-aspects",
        lambda: pa.Table.from_pylist(
            [
                {"way": way, "aspects": count, **row}
                for way, rows in lines.items()
                for count, row in zip(counts, rows, strict=True)
            ]
        ),
        caption="The more documents a query asks for, the harder it is to find them all with one vector.",
        alt="Success by the number of documents that a query asks for, a line for each way.",
    )


def _means(values: np.ndarray) -> Interval:
    """Of ``values[metric, query]``; a query that has no such metric does not count."""
    known = ~np.isnan(values.T)
    return ratios(np.where(known, values.T, 0), known.astype(np.float32))


def _cell(values: Interval, at: int) -> str:
    if np.isnan(values.value[at]):
        return "–"
    low, high = number(float(values.low[at])), number(float(values.high[at]))
    return f"{number(float(values.value[at]))}<small>{low} to {high}</small>"


def _table(columns: dict[str, Interval]) -> pa.Table:
    found: list[dict[str, object]] = []
    for name, values in columns.items():
        for at, metric in enumerate(METRICS):
            figures = {key: float(getattr(values, key)[at]) for key in ("value", "low", "high")}
            found.append({"what": name, "metric": metric, **figures})
    return pa.Table.from_pylist(found)
