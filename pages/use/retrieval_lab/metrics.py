"""The tab Metrics: how good the kept heads are on all queries, all ways to rank, and what weights gain."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import streamlit as st

from core.analysis.bootstrap import Interval
from core.model.stages import SHARE
from core.retrieval.findings import weights_sentence
from core.retrieval.metrics import METRICS, metric_name
from core.retrieval.tasks import TASKS, TOPIC_MATCH
from core.retrieval.ways import DEPTH
from core.runs.steps import command
from core.runs.tables import Row
from pages.shared.figures.table import cell, figure_table, number
from pages.shared.glossary import why
from pages.shared.notices import among, shows_mistakes
from pages.shared.show import Remake, downloads, figure, theme
from pages.shared.text import plain, safe
from pages.shared.url import linked
from pages.use.retrieval_lab.data import bench, has_rest, rows
from pages.use.retrieval_lab.figures import aspects_figure, ways_figure
from pages.use.retrieval_lab.state import LabView, means, reached

_FULL_SHARES = {
    True: " “full” is the model's own embedding: the rest and the sum of the heads' shares, as at stage 3.",
    False: " “full” is the sum of the heads' shares: without stage 3 the run does not have the rest.",
}
"""By whether the run stores stage 3."""
_PLACES = (1, 3, 5, 10, 20, DEPTH)


@shows_mistakes
def metrics_section(shown: LabView) -> None:
    """The table for the kept heads, against all heads and against each other, paired by query."""
    assert shown.task is not None
    st.subheader("How good they are on all queries", anchor="metrics", help=why("interval"))
    found = bench(shown.state, shown.stage, shown.task)
    places = linked(
        st.segmented_control,
        "Among the first k",
        "k",
        _PLACES,
        TASKS[shown.task].places,
        required=True,
        help="How many top documents of each ranking count.",
    )
    everyone = np.ones(len(shown.weights))
    these = {way: reached(shown, way, shown.weights, places) for way in dict.fromkeys(shown.ways)}
    first, second = (these[way] for way in shown.ways)
    columns = {
        f"{shown.ways[0]}, kept heads": means(first),
        f"{shown.ways[1]}, kept heads": means(second),
        f"difference, {shown.ways[1]} − {shown.ways[0]}": means(second - first),
        f"{shown.ways[0]}, kept − all heads": means(first - reached(shown, shown.ways[0], everyone, places)),
    }
    lines = [
        (_explained(metric, places), [_metric_cell(values, at) for values in columns.values()])
        for at, metric in enumerate(METRICS)
    ]
    st.html(figure_table([safe(name) for name in columns], -1, lines))
    judged_by = f"{len(found.aspects)} of {found.of:,}" if len(found.aspects) < found.of else f"all {found.of:,}"
    st.caption(
        f"{TASKS[shown.task].sentence} Measured on {judged_by} queries. Below each value: 95 % CI; differences are "
        "paired by query. Heads chosen by these same queries look better here than they are: the tab Pruning uses "
        f"held-out queries.{_among_fewer(shown)}"
    )
    downloads("retrieval-metrics", lambda: _metrics_table(columns))
    counts = sorted(set(found.aspects.tolist()))
    if len(counts) > 1:
        _by_aspects(found.aspects, counts, these, places)


def _explained(metric: str, places: int) -> str:
    """The metric's name with what it means below it, as HTML."""
    sentence = METRICS[metric].replace("first k", f"first {places}")
    return (
        f"<strong>{safe(metric_name(metric, places))}</strong>"
        f'<small style="white-space: normal; max-width: 17rem">{safe(sentence)}</small>'
    )


def _among_fewer(shown: LabView) -> str:
    """Fewer documents are easier to search: figures of a sample are not those of the corpus."""
    assert shown.state.manifest is not None
    if not shown.state.manifest.is_sampled or shown.task == TOPIC_MATCH:
        return among(shown.state)
    return f"{among(shown.state)} That is easier than searching all documents, as the figures below do."


def _by_aspects(aspects: np.ndarray, counts: list[int], measured: dict[str, np.ndarray], places: int) -> None:
    metric = list(METRICS).index("success")
    lines: dict[str, list[Row]] = {}
    for way, values in measured.items():
        lines[way] = []
        for count in counts:
            of = means(values[:, aspects == count])
            row = {"value": of.value[metric], "low": of.low[metric], "high": of.high[metric]}
            lines[way].append({**row, "queries": int((aspects == count).sum())})
    st.subheader("Queries that ask for several documents", anchor="aspects-of-queries")
    figure(
        aspects_figure(counts, lines, theme(), metric_name("success", places)),
        "retrieval-by-aspects",
        lambda: pa.Table.from_pylist(
            [
                {"way": way, "aspects": count, **row}
                for way, rows in lines.items()
                for count, row in zip(counts, rows, strict=True)
            ]
        ),
        caption="The more documents a query asks for, the harder it is to find them all with one vector.",
        alt="Recall by the number of documents that a query asks for, one line per way to rank.",
    )


def _metric_cell(values: Interval, at: int) -> str:
    if np.isnan(values.value[at]):
        return "–"
    low, high = number(float(values.low[at])), number(float(values.high[at]))
    return f"{number(float(values.value[at]))}<small>{low} to {high}</small>"


def _metrics_table(columns: dict[str, Interval]) -> pa.Table:
    found: list[dict[str, object]] = []
    for name, values in columns.items():
        for at, metric in enumerate(METRICS):
            figures = {key: float(getattr(values, key)[at]) for key in ("value", "low", "high")}
            found.append({"what": name, "metric": metric, **figures})
    return pa.Table.from_pylist(found)


def _older(run: str) -> str:
    return f" An older version measured these ways; for the full embedding, run `{command('retrieve', run)}`."


@shows_mistakes
def ways_section(shown: LabView) -> None:
    """Every way to rank with all heads."""
    assert shown.task is not None
    metric, places = TASKS[shown.task].metric, TASKS[shown.task].places
    found = rows(shown.state, "retrieval", stage=shown.stage, task=shown.task, metric=metric, k=places)
    st.subheader("All ways to rank, with all heads", anchor="ways", help=why("interval", "chance"))
    note = ""
    if shown.stage == SHARE:
        known = any(row["way"] == "full" for row in found)
        note = _FULL_SHARES[has_rest(shown.state)] if known else _older(shown.state.run.name)
    figure(
        ways_figure(found, theme(), shown.metric),
        "ways",
        pa.Table.from_pylist(found),
        caption=f"{found[0]['queries'] if found else 0:,} queries, 95 % CI.{note}",
        alt=f"{shown.metric} of every way to rank with its 95 % CI, and chance.",
        remake=Remake("retrieval", {"stage": shown.stage, "task": shown.task}),
    )


@shows_mistakes
def weights_section(shown: LabView) -> None:
    """Learned weights against uniform ones and MRAG's scores."""
    assert shown.task is not None
    found = rows(shown.state, "weights", stage=shown.stage, task=shown.task)
    if not found:
        return
    st.subheader("What weights gain", anchor="weights", help=why("interval"))
    st.markdown(plain(weights_sentence(found)))
    lines = [(safe(_KINDS[row["kind"]]), [cell(row, "value"), _gained(row)]) for row in found]
    st.html(figure_table([safe(shown.metric), "gain over uniform weights"], -1, lines))
    st.caption(
        "Weights for the mean of head cosines, learned on one half of the queries (regularised towards 1, strength by "
        "cross-validation) and measured on the other. The preset “Learned weights” applies them."
    )


_KINDS = {"uniform": "uniform weights", "mrag": "MRAG's head scores", "learned": "learned weights"}


def _gained(row: Row) -> str:
    return "–" if row["kind"] == "uniform" else cell(row, "gained")
