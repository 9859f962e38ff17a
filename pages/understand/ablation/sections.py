"""The upper part of the Ablation page: the measure, what the figures say, and the grid of layers and heads."""

from __future__ import annotations

import pyarrow as pa
import streamlit as st

from core.analysis.ablation_effects import ANGLE, HEAD, measure_name, measure_title
from core.analysis.ablation_findings import ablation_findings, quality_measures
from core.analysis.null import BELOW, WITHIN
from core.runs.labels import CIRCULAR_NOTE, label_facts
from pages.shared import show
from pages.shared.components.beside import asked
from pages.shared.components.layer_grid import GridCell, layer_grid
from pages.shared.data import RunState
from pages.shared.findings import sentences
from pages.shared.glossary import why
from pages.shared.notices import shows_mistakes
from pages.shared.text import plain
from pages.shared.url import decide, linked, linked_clicks
from pages.understand.ablation.figures import effect_grid
from pages.understand.ablation.state import AblationView, ablation_rows, measures_of

_HOW = {"zero": "Outputs are replaced by zeros.", "mean": "Outputs are replaced by their mean over the sample."}


def choose_view(state: RunState) -> AblationView:
    """The measure, and the head that was clicked or is in the address; at first the one that changes most."""
    assert state.manifest is not None
    measures = measures_of(state)
    measure = linked(
        st.selectbox,
        "Measure",
        "effect",
        measures,
        measures[0],
        format_func=measure_title,
        help=why("ablation"),
    )
    shape = state.manifest.shape
    rows = [row for row in ablation_rows(state, "ablation") if (row["kind"], row["measure"]) == (HEAD, measures[0])]
    cost = -1 if measures[0] == ANGLE else 1
    first = min(rows, key=lambda row: (row["verdict"] != BELOW, cost * row["change"]))
    cell = linked_clicks(
        {
            "layer": (range(1, shape.layers + 1), first["layer"]),
            "head": (range(shape.heads + 1), first["head"]),
            "details": ((0, 1), 1),
        }
    )
    return AblationView(state, measure, cell["layer"], cell["head"], bool(cell["details"]))


@shows_mistakes
def headline(shown: AblationView) -> None:
    """What is beyond the noise by the chosen measure, in sentences; by the others on request."""
    rows, noise = (ablation_rows(shown.state, table) for table in ("ablation", "ablation_noise"))
    known = quality_measures(rows)
    chosen = [shown.measure] if shown.measure in known else known[:1]
    with st.container(border=True):
        if found := ablation_findings(rows, noise, chosen):
            sentences(found)
        else:
            changed = measure_name(chosen[0]) if chosen else "the embedding"
            st.markdown(
                f"No single head changes {plain(changed)} more than random removals of the same size do.",
                help=why("random removals", "beyond the noise"),
            )
        if others := ablation_findings(rows, noise, [name for name in known if name not in chosen]):
            with st.expander(f"Other measures ({len(others)})"):
                sentences(others)
        if label_facts(shown.manifest, "ablate").circular:
            st.caption(plain(CIRCULAR_NOTE))


@shows_mistakes
def overview(shown: AblationView) -> None:
    """Every head of every layer by what its removal changes."""
    grid = effect_grid(shown.cells, shown.measure, shown.shape, show.theme())
    layer_grid(grid, f"ablation grid {shown.measure}", GridCell(shown.layer - 1, shown.head), _pick)
    step = shown.manifest.steps["ablate"]
    heads = shown.rows(HEAD)
    beyond = sum(row["verdict"] != WITHIN for row in heads.values())
    counted = next(iter(heads.values()))["documents"]
    unit = "queries" if shown.measure == "queries" else "documents"
    cut = f" Texts are truncated to {step.options['tokens']} tokens." if "tokens" in step.options else ""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        told = (
            f"{_scale(shown.measure)} ● {beyond} of {len(heads)} heads {'is' if beyond == 1 else 'are'} beyond the "
            "noise. "
            f"A sample of {counted:,} {unit}, stratified by topic. {_HOW[step.options.get('how', 'zero')]}{cut}"
        )
        st.caption(plain(f"{told} Click a head for its details."))
        table = ablation_rows(shown.state, "ablation")
        show.downloads("ablation", lambda: pa.Table.from_pylist(table), show.grid_paper(grid, told))


def title(shown: AblationView) -> str:
    """Of the grid's section."""
    return f"{measure_title(shown.measure)} without each head"


def _scale(measure: str) -> str:
    return "Mean angle in degrees." if measure == ANGLE else "Change in percentage points; red is a loss, blue a gain."


def close_details() -> None:
    """The panel beside the grid goes; a click on a cell brings it back."""
    decide("details", 0)


def _pick(place: GridCell) -> None:
    asked("ablation")
    decide("details", 1)
    decide("layer", place.row + 1)
    decide("head", place.column)
