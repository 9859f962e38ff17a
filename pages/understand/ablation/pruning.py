"""How many heads can go, measured on documents that had no part in the choice; and the smaller model to take away."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go
import pyarrow as pa
import streamlit as st

from core.analysis.ablation_pruning import BY_ANGLE, BY_CHANCE, BY_SHARE, GREEDY, ORDERS
from core.model.heads_off import HeadsOff
from core.runs.steps import command
from core.runs.tables import Row
from pages.shared import show
from pages.shared.figures.template import LEGEND_ABOVE, band, template
from pages.shared.notices import shows_mistakes
from pages.shared.section import section
from pages.shared.text import plain
from pages.shared.theme import MUTED, SERIES
from pages.understand.ablation.state import AblationView, ablation_rows

_NAMES = {
    GREEDY: "chosen one by one",
    BY_ANGLE: "least movement first",
    BY_SHARE: "smallest share first",
    BY_CHANCE: "random order",
}


@shows_mistakes
def pruning(shown: AblationView) -> None:
    """The curve, the verdict, and the file that names the heads."""
    section("How many heads can be removed?", "pruning", "ablation", "interval")
    run = shown.state.run
    rows = ablation_rows(shown.state, "ablation_pruning") if run.has(run.analysis_path("ablation_pruning")) else []
    if not rows:
        st.info("Heads were not removed one after another in this run yet. Run:", icon=":material/content_cut:")
        half = shown.shape.layers * shown.shape.heads // 2
        st.code(command("ablate", run.name, "--prune", str(half)), language=None, wrap_lines=True)
        return
    sentence = verdict(rows, shown.shape.layers * shown.shape.heads)
    st.markdown(sentence)
    known = [name for name in ORDERS if any(row["order"] == name for row in rows)]
    show.figure(
        pruning_figure(rows, show.theme()),
        "ablation pruning",
        pa.Table.from_pylist(rows),
        "Same-topic nDCG@10 on the held-out half of the sample. Heads are removed "
        f"{'; '.join(ORDERS[name] for name in known)} "
        "(mean, worst and best of several).",
        alt=f"Line chart: same-topic nDCG@10 as heads are switched off in {len(known)} orders. "
        f"{sentence.replace('**', '')}",
    )
    if BY_SHARE not in known:
        st.caption(
            "Removal by share is missing: an older version pruned these heads, or `layers` had not measured shares."
        )
    _take_away(shown, rows, sentence)


def verdict(rows: Sequence[Row], heads: int) -> str:
    """What the chosen size reaches on the held-out half, beside random heads."""
    chosen = next(row for row in rows if row["enough"])
    full = next(row for row in rows if row["order"] == GREEDY and not row["removed"])
    if not chosen["removed"]:
        return "No head can be removed: removing the first one already costs more than one standard error."
    said = (
        f"**{chosen['removed']} of {heads} heads** can be removed within one standard error, as chosen on one half of "
        "the "
        f"documents. On the held-out half: nDCG@10 {chosen['value']:.3f} against {full['value']:.3f} with all heads "
        f"({_points(chosen['lost'])} points, 95 % CI {_points(chosen['lost_low'])} to {_points(chosen['lost_high'])})."
    )
    random = [row for row in rows if row["order"] == BY_CHANCE and row["removed"] == chosen["removed"]]
    if random:
        low, high = (_points(random[0][key]) for key in ("lost_low", "lost_high"))
        said += f" Random heads: {_points(random[0]['lost'])} points ({low} to {high})."
        if chosen["lost"] <= random[0]["lost_high"]:
            said += " That is not clearly better than removing the same number of random heads."
    return said


def pruning_figure(rows: Sequence[Row], theme: str) -> go.Figure:
    figure = go.Figure()
    colours = {
        GREEDY: SERIES[theme][0],
        BY_ANGLE: SERIES[theme][4],
        BY_SHARE: SERIES[theme][2],
        BY_CHANCE: MUTED[theme],
    }
    for order, name in _NAMES.items():
        if not any(row["order"] == order for row in rows):
            continue
        mine = sorted((row for row in rows if row["order"] == order), key=lambda row: int(row["removed"]))
        x = [row["removed"] for row in mine]
        if order in (GREEDY, BY_CHANCE):
            figure.add_trace(band(x, [row["low"] for row in mine], [row["high"] for row in mine], colours[order]))
        figure.add_trace(
            go.Scatter(
                x=x,
                y=[row["value"] for row in mine],
                name=name,
                mode="lines+markers",
                line={"color": colours[order], "width": 2, "dash": "dot" if order == BY_CHANCE else "solid"},
                marker={"size": [11 if row["enough"] else 5 for row in mine]},
                hovertemplate="%{x} heads off<br>nDCG@10 %{y:.3f}<extra>" + name + "</extra>",
            )
        )
    figure.layout = {
        "template": template(theme),
        "height": 360,
        "xaxis": {"title": {"text": "heads switched off"}},
        "yaxis": {"title": {"text": "same-topic nDCG@10, held out"}},
        "legend": LEGEND_ABOVE,
        "margin": {"t": 40, "b": 50},
        "dragmode": False,
    }
    return figure


def _take_away(shown: AblationView, rows: Sequence[Row], sentence: str) -> None:
    chosen = next(row for row in rows if row["enough"])
    if not chosen["removed"]:
        return
    model, run = str(shown.manifest.model["name"]), shown.state.run.name
    off = tuple(sorted(zip(chosen["off_layers"], chosen["off_heads"], strict=True)))
    made = HeadsOff(model, off, verdict=sentence.replace("**", ""))
    with st.container(border=True):
        st.markdown(
            f"**Export the smaller model**: {plain(model)} without "
            f"{'this head' if len(off) == 1 else f'these {len(off)} heads'}."
        )
        st.download_button("heads.json", made.to_json(), "heads.json", "application/json", on_click="ignore")
        st.caption("With this file, the command writes a folder that sentence-transformers can load.")
        st.code(command("export", run, "--heads heads.json", f"--to {run}-pruned"), language=None, wrap_lines=True)


def _points(change: float) -> str:
    return f"{100 * change:+.1f}".replace("-", "−")
