"""What several instruments say of the same head: switching it off, its slice, its share, its attention."""

from __future__ import annotations

from math import isfinite

import pyarrow as pa
import streamlit as st

from core.analysis.ablation_effects import ANGLE, HEAD, measure_name, measure_title
from core.analysis.ablation_findings import amount, head_name, points
from core.analysis.null import ABOVE
from core.analysis.wording import percent
from core.runs.steps import command
from core.runs.tables import Row
from pages.shared import show
from pages.shared.attention import attention_rows, evidence_of
from pages.shared.figures.table import figure_table
from pages.shared.glossary import why
from pages.shared.notices import shows_mistakes
from pages.shared.section import section
from pages.shared.text import plain, safe
from pages.shared.url import linked
from pages.understand.ablation.figures import (
    QUADRANTS,
    SHARE,
    SLICE,
    ComparedHead,
    Instrument,
    compared,
    scatter_figure,
)
from pages.understand.ablation.state import AblationView, measures_of, readings, shares, slices


@shows_mistakes
def instruments(shown: AblationView) -> None:
    """One head: every measure without it, and what reading it says."""
    terms = ("ablation", "interval", "random removals", "beyond the noise")
    st.subheader(shown.name, help=why(*terms), anchor="head")
    found = shown.of_head()
    if not found:
        st.info("This layer was not measured: the step ran with --layers.", icon=":material/info:")
        return
    columns = ["with it", "without it", "random removals"]
    lines = [(safe(measure_title(name)), _cells(row)) for name, row in found.items()]
    if (group := shown.of_group()) is not None:
        lines.append((safe(f"Its key/value group {shown.group}: {measure_name(shown.measure)}"), _cells(group)))
    st.html(figure_table(columns, 1, lines))
    st.caption("Below each value: the change with its 95 % CI, paired by document, then the verdict.")
    if shown.head:
        _read(shown)


def _cells(row: Row) -> list[str]:
    name = row["measure"]
    change, low, high = (amount(name, row[key], signed=True) for key in ("change", "low", "high"))
    noise = "not compared"
    if row["noise_low"] is not None:
        noise = f"{amount(name, row['noise_low'], signed=True)} to {amount(name, row['noise_high'], signed=True)}"
    verdict = "" if row["verdict"] is None else f"<small>{safe(row['verdict'])} the noise</small>"
    return [
        "–" if name == ANGLE else safe(amount(name, row["plain"])),
        f"{safe(amount(name, row['value']))}<small>{safe(change)} ({safe(low)} to {safe(high)})</small>{verdict}",
        safe(noise),
    ]


def _read(shown: AblationView) -> None:
    """The head's slice, share and attention type, as far as the run has them."""
    place, said = (shown.layer, shown.head), []
    if (row := slices(shown.state, shown.measure).get(place)) is not None:
        said.append(
            f"**Slice**: at stage 1 it finds the topic for {percent(row['value'])} of the documents, "
            f"{plain(row['verdict'])} random slices."
        )
    if (share := shares(shown.state).get(place)) is not None:
        said.append(f"**Direct share** of the embedding: {percent(share['mean'], 1)}.")
    if shown.manifest.is_done("attention"):
        attention = attention_rows(shown.state)[place]
        because = evidence_of(attention, attention["type"]).removeprefix("no rule holds: ")
        said.append(f"**Attention**: {plain(attention['type'])}. {plain(because)}")
    if said:
        st.markdown("  \n".join(said), help=why("random slices", "attention type"))


@shows_mistakes
def negative_heads(shown: AblationView) -> None:
    """Heads whose removal helps beyond the noise, in any measure of quality, with what they attend to."""
    section("Heads whose removal helps", "helps", "beyond the noise", "attention type")
    rows = [
        row
        for name in measures_of(shown.state)
        if name != ANGLE
        for row in shown.rows(HEAD, name).values()
        if row["verdict"] == ABOVE
    ]
    if not rows:
        st.markdown("No head's removal helps beyond the noise.")
        return
    types = attention_rows(shown.state) if shown.manifest.is_done("attention") else {}
    said = []
    for row in sorted(rows, key=lambda row: -float(row["change"])):
        place = (row["layer"], row["head"])
        attends = f" Attention type: {types[place]['type']}." if place in types else ""
        said.append(
            f"{head_name(row).capitalize()}: {points(row['change'])} more in {measure_name(row['measure'])} "
            f"without it (95 % CI {100 * row['low']:.1f} to {100 * row['high']:.1f}).{attends}"
        )
    st.markdown("\n".join(f"- {plain(one)}" for one in said))
    if not types:
        st.caption(f"Their attention types are not measured yet. Run `{command('attention', shown.state.run.name)}`.")


@shows_mistakes
def scatter(shown: AblationView) -> None:
    """Where reading and switching off disagree."""
    section("Does reading a head show that it matters?", "slices", "share", "random slices", "ablation")
    known = readings(shown.state, shown.measure)
    if not known:
        st.info("This run has neither shares nor slices compared with random ones yet. Run:", icon=":material/info:")
        st.code(command("layers", shown.state.run.name), language=None, wrap_lines=True)
        return
    name = linked(
        st.segmented_control, "Read by", "reading", list(known), next(iter(known)), format_func=str.capitalize
    )
    read_by = {SHARE.name: SHARE, SLICE.name: SLICE}[name]
    heads = compared(shown.rows(HEAD), known[name])
    said = _disagreement(heads, read_by)
    st.markdown(plain(" ".join(said)))
    notes = [_rank_correlation(heads, read_by), "One dot per head, labelled layer.head where either singles it out."]
    if read_by == SHARE:
        notes.append("A share is large if its 95 % CI lies above the mean of all heads.")
    layers = {one.layer for one in heads}
    if len(layers) == 1 < shown.shape.layers:
        notes.append(f"Only layer {min(layers)}; run '{command('layers', shown.state.run.name)}' for all layers.")
    show.figure(
        scatter_figure(heads, read_by, shown.measure, (shown.layer, shown.head), show.theme()),
        f"ablation against {name} {shown.measure}",
        pa.Table.from_pylist([vars(one) for one in heads]),
        " ".join(notes),
        alt=f"Scatter plot of {len(heads)} heads: {read_by.axis} against the change of "
        f"{measure_name(shown.measure)} without the head. {' '.join(said)}",
    )


def _rank_correlation(heads: list[ComparedHead], read_by: Instrument) -> str:
    """Of what is read with the size of the effect, whichever its sign."""
    from scipy.stats import spearmanr  # late: it takes half a second

    found = spearmanr([one.read for one in heads], [abs(one.change) for one in heads])
    if not isfinite(found.statistic):
        return ""
    chance = "p < 0.001" if found.pvalue < 0.001 else f"p = {found.pvalue:.3f}"
    amount = f"{found.statistic:.2f}".replace("-", "−")
    return f"Rank correlation of {read_by.name} and size of the effect: {amount} ({chance}, {len(heads)} heads)."


def _disagreement(heads: list[ComparedHead], read_by: Instrument) -> list[str]:
    said = []
    for reads, matters in QUADRANTS[:-1]:
        some = [one for one in heads if (one.reads, one.matters) == (reads, matters)]
        if not some:
            continue
        some.sort(key=lambda one: -abs(one.change))
        names = ", ".join(f"layer {one.layer} head {one.head}" for one in some[:6])
        more = f" and {len(some) - 6} more" if len(some) > 6 else ""
        said.append(f"{read_by.verdict(reads, matters).capitalize()}: {names}{more}.")
    return said or ["Neither instrument singles out a head."]
