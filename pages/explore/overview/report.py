"""The Overview below the findings: the study's tables beside this run's, all findings, and what the stages are."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.analysis import study
from core.analysis.probe import BY_DOCUMENT, BY_SAMPLE
from core.analysis.topic_match import WITHIN, by_construction
from core.analysis.wording import percent, percents, plural
from core.model.stages import HEADS, RANDOM, SHARE, STAGES
from core.runs.tables import Row, Tables
from pages.explore.overview.figures import stages_drawing
from pages.shared.data import RunState, preview, tables
from pages.shared.empty_states import not_analysed, not_made, slim, some_vectors, without_shares
from pages.shared.figures.maps import small_maps_table, stage_maps_figure
from pages.shared.findings import all_findings
from pages.shared.glossary import why
from pages.shared.notices import circular_mark, circular_notice, shows_mistakes
from pages.shared.show import Remake, drawn_once, figure, theme
from pages.shared.text import safe

_STYLE = """
<style>
.hs-table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
.hs-table th, .hs-table td { text-align: left; padding: .4rem .7rem .4rem 0; vertical-align: top;
  border-bottom: 1px solid color-mix(in srgb, currentColor 14%, transparent); }
.hs-table th { font-weight: 600; font-size: .85em; opacity: .85; }
.hs-table td span { display: block; opacity: .75; font-size: .82em; white-space: nowrap; }
.hs-scroll { overflow-x: auto; }
</style>
"""


@shows_mistakes
def what_heads_are(state: RunState) -> None:
    """The stages as a drawing."""
    assert state.manifest is not None
    shape = state.manifest.shape
    st.subheader(f"{'Four' if SHARE in state.manifest.stages else 'Three'} stages", help=why("stage"), anchor="stages")
    st.html(stages_drawing(shape, state.manifest.stages))
    slim(state.manifest, state.run.name)
    some_vectors(state.manifest, state.run.name)
    without_shares(state.manifest, state.run.name)
    if state.projected:
        small_maps(state)
        st.page_link("pages/explore/head_map/page.py", label="Open the head map", icon=":material/arrow_forward:")
    else:
        not_made(state, "project")


def small_maps(state: RunState) -> None:
    """Each stage's map, small."""
    assert state.manifest is not None
    shape, shown = state.manifest.shape, preview(state)
    drawn = drawn_once(
        state.run,
        state.analysis_version,
        "small maps",
        0,
        theme(),
        lambda: stage_maps_figure(shown.places, shape, theme(), height=250),
    )
    figure(
        drawn,
        "small-maps",
        lambda: small_maps_table(shown.places, shown.docs),
        "Each dot is one head's vector for one document (a sample), coloured by head. Nearby dots are similar.",
        alt="A small map of all head vectors at each stage, coloured by head.",
        remake=Remake("maps"),
    )


@shows_mistakes
def beside_the_study(state: RunState) -> None:
    """Table 1 and §3.5, theirs and ours."""
    if not state.analysed:
        not_analysed(state)
        return
    st.subheader(
        "Compared with the study",
        help=why("probe", "topic match", "random slices", "chance", "interval"),
        anchor="study",
    )
    found = tables(state)
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("**Can a probe tell the head from its vector?** (Table 1)")
        _probe(found)
    with right:
        st.markdown(f"**Is the labelled topic the nearest?**{circular_mark(found)} (§3.5, full embedding)")
        _topic_match(found)
    st.caption(
        f"The study: {study.CITATION}; {study.MODEL}. It used another corpus, so its figures are for orientation only."
    )


@shows_mistakes
def every_finding(state: RunState) -> None:
    """All sentences, with their figures."""
    if state.analysed:
        st.subheader("All findings, with their figures", anchor="all-findings")
        all_findings(state)


def _probe(found: Tables) -> None:
    rows = []
    for stage in found.manifest.stages:
        cells = [
            found.one("probe", stage=stage, slicing=slicing, split=split, head=0)
            for slicing, split in ((HEADS, BY_SAMPLE), (HEADS, BY_DOCUMENT), (RANDOM, BY_DOCUMENT))
        ]
        if all(cells):
            name = f"{stage} {STAGES[stage].name}"
            rows.append([name, _study(stage), *(_figure(cell, "value", "{:.3f}") for cell in cells)])
    if not rows:
        st.info("The probe needs at least ten documents and two heads.", icon=":material/info:")
        return
    _table(["stage", "study", "by sample", "by document", "random slices"], rows)
    st.caption(f"Chance: {1 / found.manifest.shape.heads:.3f}. Below each value: 95 % CI.")


def _study(stage: int) -> str:
    """Table 1; the study has no stage 4."""
    return f"{study.PROBE_ACCURACY[stage]:.3f}" if stage in study.PROBE_ACCURACY else "–"


def _topic_match(found: Tables) -> None:
    if not found.labelled:
        st.info("No document in this run has a topic from its list.", icon=":material/label_off:")
        return
    topics = int(found.manifest.steps["analyse"].counts["topics"])
    rows: list[list[Any]] = [["the study, stage 3", *(percent(study.TOPIC_MATCH[k], 1) for k in WITHIN)]]
    for stage in found.manifest.stages:
        cells = [found.one("topic_match", stage=stage, slicing=HEADS, method="full", within=k) for k in WITHIN]
        rows.append([f"{stage} {STAGES[stage].name}", *(_match(cell, topics) for cell in cells)])
    first = [
        found.one("topic_match", stage=found.manifest.stages[0], slicing=HEADS, method="full", within=k) for k in WITHIN
    ]
    rows.append(["chance", *("–" if by_construction(cell) else percent(cell["chance"], 1) for cell in first if cell)])
    _table(["", "nearest", "among nearest 5", "among nearest 10"], rows)
    circular_notice(found)
    if found.manifest.steps["analyse"].options.get("centre"):
        st.caption("Vectors are centred by the corpus mean before cosines are taken.")


def _match(row: Row | None, topics: int) -> tuple[str, str]:
    """A share of topic match; none where all topics are looked at."""
    if row is not None and by_construction(row):
        return "–", f"only {plural(topics, 'topic')}"
    assert row is not None
    return percent(row["rate"], 1), percents(row["low"], row["high"], 1)


def _figure(row: dict[str, Any] | None, name: str, form: str) -> tuple[str, str]:
    assert row is not None
    return form.format(row[name]), f"{form.format(row['low'])}–{form.format(row['high'])}"


def _table(head: list[str], rows: list[list[Any]]) -> None:
    """A cell is a text, or a text and a smaller one below it."""
    cells = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in rows)
    header = "".join(f"<th>{safe(name)}</th>" for name in head)
    st.html(f'{_STYLE}<div class="hs-scroll"><table class="hs-table"><tr>{header}</tr>{cells}</table></div>')


def _cell(cell: str | tuple[str, str]) -> str:
    if isinstance(cell, str):
        return f"<td>{safe(cell)}</td>"
    return f"<td>{safe(cell[0])}<span>{safe(cell[1])}</span></td>"
