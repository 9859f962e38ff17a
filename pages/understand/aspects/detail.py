"""One aspect in one head: its values, which of them are taken for each other, and documents to read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import streamlit as st

from core.analysis.wording import plural
from core.runs.tables import Row
from pages.shared import show
from pages.shared.aspects import aspect_documents, predicted
from pages.shared.cards import Card, cards
from pages.shared.data import documents
from pages.shared.notices import shows_mistakes
from pages.shared.text import shortened
from pages.shared.url import linked
from pages.understand.aspects.figures import confusion_figure
from pages.understand.aspects.sections import AspectView

TO_READ = 4
MOST_IN_MATRIX = 60


def _values(shown: AspectView, aspect: str) -> list[Row]:
    rows = [row for row in shown.rows["aspect_values"] if (row["stage"], row["aspect"]) == (shown.stage, aspect)]
    return sorted(rows, key=lambda row: int(row["code"]))


def _counts(shown: AspectView, aspect: str, head: int) -> np.ndarray:
    """``[value, read as]``: documents; head 0 is the full embedding."""
    table, size = aspect_documents(shown.state, shown.stage, aspect), len(_values(shown, aspect))
    counts = np.zeros((size, size), dtype=int)
    np.add.at(counts, (table["code"].to_numpy(), predicted(table)[:, head]), 1)
    return counts


@shows_mistakes
def values(shown: AspectView, aspect: str, head: int) -> None:
    """Each value: how many documents, and how many of them the head and all heads together read correctly."""
    rows, mine, full = _values(shown, aspect), _counts(shown, aspect, head), _counts(shown, aspect, 0)
    names = [row["value"] for row in rows]
    found = []
    for at, row in enumerate(rows):
        others = mine[at].copy()
        others[at] = 0
        found.append(
            {
                "Value": show.cells([row["value"]])[0],
                "Documents": row["documents"],
                "Probed": row["sampled"],
                f"Head {head}": _share(mine, at),
                "All heads": _share(full, at),
                "Most often read as": show.cells([names[others.argmax()]])[0] if others.any() else "",
            }
        )
    columns = {name: st.column_config.NumberColumn(format="%.0f %%") for name in (f"Head {head}", "All heads")}
    st.dataframe(found, hide_index=True, column_config=columns, height="auto" if len(found) <= 12 else 460)


def _share(counts: np.ndarray, at: int) -> float | None:
    total = counts[at].sum()
    return float(100 * counts[at, at] / total) if total else None


@shows_mistakes
def confused(shown: AspectView, aspect: str, head: int) -> None:
    """Which values the head takes for each other."""
    used = [row for row in _values(shown, aspect) if row["sampled"]]
    if len(used) > MOST_IN_MATRIX:
        st.caption(f"With {len(used):,} values, a confusion matrix would not be readable.")
        return
    codes = [row["code"] for row in used]
    counts = _counts(shown, aspect, head)[np.ix_(codes, codes)]
    names = [row["value"] for row in used]
    apart = counts - np.diag(np.diag(counts))
    one, other = np.unravel_index(int(apart.argmax()), apart.shape)
    most = (
        f" Most often: {names[one]} read as {names[other]}, {plural(int(apart.max()), 'document')}."
        if apart.any()
        else ""
    )

    def data() -> pa.Table:
        return pa.Table.from_pylist(
            [
                {"value": names[row], "read as": names[column], "documents": int(counts[row, column])}
                for row, column in zip(*np.nonzero(counts), strict=True)
            ]
        )

    with st.expander(f"Which values does head {head} confuse?", icon=":material/grid_on:"):
        show.figure(
            confusion_figure(counts, names, show.theme()),
            "confusion of values",
            data,
            f"Rows are the documents' own values, columns what the probe reads from head {head} alone.",
            alt=f"Confusion of the values of {shortened(aspect, 60)} in head {head}.{shortened(most, 300)}",
        )


@shows_mistakes
def reading(shown: AspectView, aspect: str, head: int) -> None:
    """Documents of one value that the head reads correctly, and others that it does not."""
    used = [row for row in _values(shown, aspect) if row["sampled"]]
    names = {int(row["code"]): row["value"] for row in used}
    st.subheader("Documents to read", anchor=False)
    code = linked(
        st.selectbox,
        "Value",
        "value",
        list(names),
        next(iter(names)),
        format_func=lambda code: shortened(names[code], 80),
    )
    table = aspect_documents(shown.state, shown.stage, aspect)
    docs, read = table["doc"].to_numpy(), predicted(table)[:, head]
    own = table["code"].to_numpy() == code
    left, right = st.columns(2, gap="large")
    for place, title, mine in (
        (left, "Read correctly", own & (read == code)),
        (right, "Read as something else", own & (read != code)),
    ):
        with place:
            st.markdown(f"**{title}** · {int(mine.sum()):,} of {int(own.sum()):,}")
            chosen = np.flatnonzero(mine)[:TO_READ]
            found = documents(shown.state).rows(docs[chosen], ["title", "text"]).to_pylist() if len(chosen) else []
            cards(
                [
                    Card(
                        row["title"],
                        ["" if read[at] == code else f"read as {names.get(int(read[at]), '?')}"],
                        shortened(row["text"], 1_200),
                    )
                    for at, row in zip(chosen.tolist(), found, strict=True)
                ]
            )
            if not len(chosen):
                st.caption("No document.")
