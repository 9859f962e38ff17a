"""The tab Pruning: which heads can go, on queries that had no part in the choice."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import streamlit as st

from core.analysis.cautions import Caution
from core.model.stages import SHARE
from core.retrieval.cautions import all_cautions, retrieval_cautions
from core.retrieval.findings import pruned_sentence
from core.retrieval.metrics import metric_name
from pages.shared.data import tables
from pages.shared.glossary import why
from pages.shared.notices import shows_mistakes
from pages.shared.show import Remake, figure, theme
from pages.shared.text import plain
from pages.shared.url import linked
from pages.use.retrieval_lab.data import rows
from pages.use.retrieval_lab.figures import curve_figure, importance_figure
from pages.use.retrieval_lab.state import LabView

_SHARES = " At stage 4 the shares of the kept heads are ranked side by side, because their sum would save no space."


@shows_mistakes
def pruning_section(shown: LabView) -> None:
    """The curve from all heads to one, on queries that had no part in the choice."""
    assert shown.task is not None
    found = rows(shown.state, "pruned", stage=shown.stage, task=shown.task)
    st.subheader("Which heads can be pruned", anchor="pruning", help=why("pruned set", "interval", "activation"))
    if not found:
        st.info("Too few queries: heads are chosen on one half of them and measured on the other.")
        return
    ways = [row["way"] for row in found]
    way = ways[0]
    if len(ways) > 1:
        way = linked(
            st.segmented_control,
            "Ranked by",
            "pruned",
            ways,
            ways[0],
            required=True,
        )
    row = next(row for row in found if row["way"] == way)
    what = metric_name(row["metric"], row["k"])
    assert shown.state.manifest is not None
    rivals = rows(shown.state, "pruning_rivals") if shown.state.run.has(_rivals_path(shown)) else []
    st.markdown(plain(pruned_sentence(row, shown.state.manifest.shape, shown.stage, rivals, given=_cautions(shown))))
    wanted = {"stage": shown.stage, "task": shown.task, "way": way}
    curve = rows(shown.state, "pruning", **wanted)
    figure(
        curve_figure(curve, row["heads"], theme(), what),
        "pruning-curve",
        pa.Table.from_pylist(curve),
        caption=f"Heads chosen by {row['chosen_by']:,} queries, measured on {row['told_of']:,} held-out queries. "
        f"Shaded: 95 % CI over queries; for random order, 95 % of 20 orders.{_SHARES if shown.stage == SHARE else ''}",
        alt=f"{what} as heads are removed one by one, in three orders.",
        remake=Remake("pruning", {"stage": shown.stage, "task": shown.task}) if way == ways[0] else None,
    )
    st.subheader("How much each head is needed", anchor="importance")
    importance = rows(shown.state, "importance", **wanted)
    figure(
        importance_figure(importance, theme(), what),
        "head-importance",
        pa.Table.from_pylist(importance),
        caption="Loss when one head alone is removed, on all queries, with 95 % CI. Filled: kept heads. Removing a "
        "head costs nothing if other heads do the same work.",
        alt=f"{what} lost without each head, with 95 % CI.",
    )


def _rivals_path(shown: LabView) -> Path:
    """Runs of older versions have no such table."""
    return shown.state.run.analysis_path("pruning_rivals")


def _cautions(shown: LabView) -> list[Caution]:
    """What neither the labels nor the queries of this task can show."""
    ranked_by = rows(shown.state, "retrieval", task=shown.task)
    return all_cautions(tables(shown.state), ranked_by) if shown.state.analysed else retrieval_cautions(ranked_by)
