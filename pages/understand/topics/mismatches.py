"""Documents whose label and embedding disagree, to be read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from core.errors import Mistake
from core.runs.results import read_mismatches, read_topics
from core.runs.run import Run
from core.runs.tables import Row
from pages.shared.cards import Card, open_card
from pages.shared.data import RunState, documents, similarities, tables, topics
from pages.shared.empty_states import no_labels
from pages.shared.notices import shows_mistakes
from pages.shared.run_version import FIGURES, one_version
from pages.shared.show import cells, figure, theme
from pages.shared.text import plain, shortened
from pages.shared.url import linked
from pages.understand.topics.figures import nearest_figure

ALL = ""
"""No topic has this name."""
NEAREST = 10
PICKED = "mismatch"
"""Not the document that pages share: that one need not be on the list, and must not be lost here."""
MOST_ROWS = 1_000
LONG = 2_500
"""Characters of a text that is scrolled within its column."""


@st.fragment
@shows_mistakes
def mismatch_list(state: RunState, stage: int) -> None:
    """Documents whose label is not their nearest topic, and one of them to read."""
    st.subheader("Where label and embedding disagree", anchor="disagreements")
    if not tables(state).labelled:
        no_labels("The list of disagreements")
        return
    table = _mismatches(state.run, state.analysis_version, stage)
    if not len(table):
        st.success(
            "At this stage the nearest topic of every labelled document is its label.", icon=":material/done_all:"
        )
        return
    counts = {row["values"]: row["counts"] for row in pc.value_counts(table["label"]).to_pylist()}
    labels = [ALL, *sorted(counts)]
    if "all" not in counts and st.query_params.get("label") == "all":
        del st.query_params["label"]  # what older links call all labels
    label = linked(
        st.selectbox,
        "Label",
        "label",
        labels,
        ALL,
        format_func=lambda name: (
            f"All labels ({len(table):,})" if name == ALL else f"{shortened(name, 120)} ({counts[name]:,})"
        ),
    )
    if label != ALL:
        table = table.filter(pc.equal(table["label"], label))
    doc = _choose(state, table)
    row = table.filter(pc.equal(table["doc"], doc)).to_pylist()[0]
    left, right = st.columns([3, 2], gap="medium")
    with left:
        document = documents(state).row(doc)
        cut = ", truncated" if document["truncated"] else ""
        with st.container(height=640 if len(document["text"]) > LONG else "content", border=False):
            open_card(Card(document["title"], [f"{document['tokens']:,} tokens{cut}"], document["text"]))
    with right:
        _verdict(state, stage, row)


def _choose(state: RunState, table: pa.Table) -> int:
    """The table, largest margin first, and a box to choose from it: a click on a row chooses as well."""
    shown = table.slice(0, MOST_ROWS)
    given = st.query_params.get(PICKED, "")
    if given.isdecimal() and len(given) < 10:  # a linked document is listed, however small its margin
        beyond = table.slice(MOST_ROWS)
        shown = pa.concat_tables([shown, beyond.filter(pc.equal(beyond["doc"], int(given) - 1))])
    titles = documents(state).rows(shown["doc"].to_numpy(), ["title"])["title"]
    numbers = [doc + 1 for doc in shown["doc"].to_pylist()]
    title_of = dict(zip(numbers, titles.to_pylist(), strict=True))
    # Another key makes another table: the row that was clicked is no longer marked once the box has chosen.
    turn = st.session_state.setdefault("mismatch turn", 0)
    table_key = f"mismatch table {turn} {len(numbers)} {numbers[0]}"

    def from_row() -> None:
        rows = st.session_state[table_key].selection.rows
        if rows and rows[0] < len(numbers):
            st.session_state[PICKED] = numbers[rows[0]]

    def from_box() -> None:
        st.session_state["mismatch turn"] = turn + 1

    more = f" The {len(shown):,} with the largest margin of {len(table):,}." if len(shown) < len(table) else ""
    st.caption(
        f"Margin: cosine with the nearest topic, minus cosine with the label. Largest first; click a row to read.{more}"
    )
    st.dataframe(
        {
            "title": cells(titles.to_pylist()),
            **{name: cells(shown[name].to_pylist()) for name in _COLUMNS[:2]},
            **{name: shown[name].to_pylist() for name in _COLUMNS[2:]},
        },
        hide_index=True,
        height="content" if len(shown) <= 8 else 318,
        key=table_key,
        on_select=from_row,
        selection_mode="single-row",
        column_config={
            "title": st.column_config.TextColumn("Document", width="medium"),
            "label": st.column_config.TextColumn("Label", width="medium"),
            "nearest": st.column_config.TextColumn("Nearest topic", width="medium"),
            "rank": st.column_config.NumberColumn("Rank of label", width="small"),
            "margin": st.column_config.NumberColumn("Margin", width="small", format="%.3f"),
        },
    )
    number = linked(
        st.selectbox,
        "Document to read",
        PICKED,
        numbers,
        numbers[0],
        format_func=lambda number: f"{number} · {shortened(title_of[number], 90)}",
        on_change=from_box,
    )
    return number - 1


_COLUMNS = ("label", "nearest", "rank", "margin")


def _verdict(state: RunState, stage: int, row: Row) -> None:
    """What the label says, what the embedding says, and how the best topics compare."""
    names = topics(state).names
    values = similarities(state, stage, row["doc"])[0].astype(np.float32)
    label, nearest = names.index(row["label"]), names.index(row["nearest"])
    order = [topic for topic in np.argsort(-values, kind="stable").tolist() if topic not in (nearest, label)]
    order.insert(0, nearest)  # both have the places that the table gives them: its cosines were not rounded yet
    order.insert(row["rank"] - 1, label)
    shown = order[:NEAREST] + ([label] if label not in order[:NEAREST] else [])
    colours = "blue", "red"
    for colour, what, topic in zip(colours, ("Nearest topic", "Label"), (nearest, label), strict=True):
        st.markdown(f":{colour}[■] {what}  \n**{plain(shortened(names[topic], 200))}**")
    with st.container(horizontal=True, gap="small"):
        st.metric(
            "Rank of label",
            f"{row['rank']} of {len(names)}",
            help="The label's rank among all topics by cosine; 1 is the nearest.",
            border=True,
            width="content",
        )
        st.metric(
            "Margin",
            f"{row['margin']:.3f}",
            help="Cosine with the nearest topic, minus cosine with the label.",
            border=True,
            width="content",
        )
    figure(
        nearest_figure(
            [names[topic] for topic in shown],
            values[shown],
            [order.index(topic) + 1 for topic in shown],
            shown.index(label),
            theme(),
        ),
        "nearest topics",
        pa.table({"topic": [names[topic] for topic in order], "cosine": values[order]}),
        f"Cosine with the nearest {min(NEAREST, len(names))} topics, full embedding.",
        alt=f"The document's nearest topics: {names[nearest]} first, its label {names[label]} at rank {row['rank']}.",
    )


@st.cache_resource(max_entries=6, show_spinner="Reading the disagreements …")
@one_version(*FIGURES)
def _mismatches(run: Run, version: str, stage: int) -> pa.Table:
    """Of one stage, the largest margin first; names of topics are held once each, however many documents there are."""
    found = read_mismatches(run, stage)
    known = set(read_topics(run).names)
    if any(not set(found[name].combine_chunks().dictionary.to_pylist()) <= known for name in ("label", "nearest")):
        raise Mistake(
            "mismatches.parquet names a topic that is not in topics.parquet. Rebuild both with "
            f"'python -m precompute analyse {run.name} --again'."
        )
    return found.sort_by([("margin", "descending"), ("doc", "ascending")])
