"""The Aspects page's way in: the matrix of heads by aspects, two aspects against each other, and how aspects mingle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import streamlit as st

from core.analysis.aspect_findings import ENTANGLED, AspectRows
from core.analysis.aspect_probe import ACCURACY, MEASURES, NEAREST, NEIGHBOUR_SAMPLE, SAMPLE
from core.analysis.null import ABOVE
from core.analysis.wording import percent
from core.runs.aspects import SOURCES
from core.runs.labels import CIRCULAR
from core.runs.tables import Row
from pages.shared import show
from pages.shared.aspects import aspect_rows, carried_here
from pages.shared.components.figure import picked
from pages.shared.components.layer_grid import GridCell, layer_grid
from pages.shared.components.turn_page import ask_to_turn, turn_page
from pages.shared.controls import choose_head
from pages.shared.data import RunState
from pages.shared.glossary import why
from pages.shared.notices import shows_mistakes
from pages.shared.text import plain, shortened
from pages.shared.url import decide, linked
from pages.understand.aspects.figures import Slices, matrix_grid, pair_alt, pair_figure

PROFILE = "pages/explore/head_profile/page.py"
PAIR = "two aspects"
"""The figure's name."""


@dataclass(frozen=True)
class AspectView:
    """What the page is about: the rows of one stage and measure."""

    state: RunState
    rows: AspectRows
    stage: int
    measure: str
    names: tuple[str, ...]
    summaries: Mapping[str, Row]
    """By aspect."""
    heads: Mapping[str, tuple[Row, ...]]
    """By aspect: index 0 is the full embedding."""
    layer: int | None = None
    """None: the run's own, of which alone values and documents are stored."""

    @classmethod
    def of(cls, state: RunState, stage: int, measure: str) -> AspectView:
        rows = aspect_rows(state)
        mine = [row for row in rows["aspect_summary"] if (row["stage"], row["measure"]) == (stage, measure)]
        heads: dict[str, list[Row]] = {row["aspect"]: [] for row in mine}
        for row in rows["aspects"]:
            if (row["stage"], row["measure"]) == (stage, measure):
                heads[row["aspect"]].append(row)
        ordered = {name: tuple(sorted(each, key=lambda row: int(row["head"]))) for name, each in heads.items()}
        return cls(state, rows, stage, measure, tuple(heads), {row["aspect"]: row for row in mine}, ordered)

    def pair(self, table: str, aspect: str, other: str) -> list[Row]:
        wanted = (self.stage, aspect, other)
        return [row for row in self.rows[table] if (row["stage"], row["aspect"], row["other"]) == wanted]


def choose_measure() -> str:
    return linked(
        st.selectbox,
        "Read by",
        "by",
        list(MEASURES),
        ACCURACY,
        format_func=lambda name: MEASURES[name].capitalize(),
        help="Accuracy weights every document equally, balanced accuracy every value. The nearest documents are a "
        "second check, without any fitting.",
    )


@shows_mistakes
def matrix(shown: AspectView) -> None:
    """Every head by every aspect at a glance."""
    st.subheader("What each head carries", help=why("aspect", "random slices"), anchor=False)
    where = "At this stage" if shown.layer is None else f"At layer {shown.layer}, stage {shown.stage},"
    st.markdown(_carried(shown) or f"{where} no head carries an aspect beyond random slices.")

    def pick(place: GridCell) -> None:
        decide("aspect", shown.names[place.row])
        if place.column:
            decide("head", place.column)

    grid = matrix_grid(shown.names, shown.heads, shown.summaries, show.theme())
    layer_grid(grid, "aspect matrix", _mark(shown), pick)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        told = (
            "Percentage of the way from chance to the best value at this stage; ▲ above, ▼ below random slices. "
            f"{_sampled(shown)} {_baseline(shown)}"
        )
        st.caption(plain(told))
        table = partial(pa.Table.from_pylist, [row for each in shown.heads.values() for row in each])
        show.downloads("aspects", table, show.grid_paper(grid, told))
    circular = [name for name in shown.names if shown.summaries[name]["source"] in CIRCULAR]
    if circular:
        st.warning(
            f"Circular: the embedding itself made the labels of {plain(', '.join(circular))}.", icon=":material/sync:"
        )


def _sampled(shown: AspectView) -> str:
    """How many documents were looked at, of how many."""
    manifest = shown.state.manifest
    assert manifest is not None
    documents = {int(row["documents"]) for row in shown.summaries.values()}
    how, most = "each left out once", int(manifest.steps["aspects"].options.get("sample", SAMPLE))
    if shown.measure == NEAREST:
        documents = {min(each, NEIGHBOUR_SAMPLE) for each in documents}
        how, most = "compared with each other", min(most, NEIGHBOUR_SAMPLE)
    total = int(manifest.corpus["documents"])
    count = " to ".join(f"{each:,}" for each in sorted({min(documents), max(documents)}))
    if max(documents) < total:
        count += f" of {total:,}"
    sampled = " sampled by topic," if total > most or (shown.layer is not None and max(documents) < total) else ""
    return f"{count} documents,{sampled} {how}; no two are near-duplicates."


def _carried(shown: AspectView) -> str:
    """By head at the run's own layer; at another one by aspect, for what a head does not carry is not tested there."""
    if shown.layer is None:
        heads = carried_here(shown.state, shown.stage)
        said = "; ".join(f"**head {head}**: {plain(each.sentence)}" for head, each in heads.items() if each.sentence)
    else:
        above = {
            name: [str(row["head"]) for row in rows[1:] if row["verdict"] == ABOVE]
            for name, rows in shown.heads.items()
        }
        said = "; ".join(
            f"**{plain(name)}**: head{'s' if len(found) > 1 else ''} {', '.join(found)}"
            for name, found in above.items()
            if found
        )
    return f"{said}." if said else ""


def _baseline(shown: AspectView) -> str:
    if shown.layer is None:
        return "Click a cell for its details."
    slicings = next(iter(shown.summaries.values()))["slicings"]
    return f"{slicings} random slicings. Values and documents are stored for the run's own layer only."


def _mark(shown: AspectView) -> GridCell | None:
    """The cell that the rest of the page is about; its widgets come later, and on arrival the address alone has it."""
    aspect = st.session_state.get("aspect", st.query_params.get("aspect", shown.names[0]))
    head = str(st.session_state.get("head", st.query_params.get("head", 1)))
    known = aspect in shown.names and head.isdecimal() and 0 < int(head) < len(shown.heads[aspect])
    return GridCell(shown.names.index(aspect), int(head)) if known else None


@shows_mistakes
def against_each_other(shown: AspectView) -> None:
    """Two aspects as axes, every head a point."""
    if len(shown.names) < 2:
        return
    st.subheader("Two aspects against each other", help=why("random slices"), anchor=False)
    with st.container(horizontal=True, gap="small"):
        looks = {"format_func": lambda name: shortened(name, 60)}
        across = linked(st.selectbox, "Across", "across", shown.names, shown.names[0], **looks)
        up = linked(st.selectbox, "Up", "up", shown.names, shown.names[1], **looks)
    both = (across, up)
    rows = tuple(shown.heads[name] for name in both)
    between = shown.pair("aspect_pairs", across, up)
    slices = Slices(
        tuple(shown.summaries[name]["slices"] for name in both),
        tuple(shown.summaries[name]["slices_sd"] for name in both),
        float(between[0]["correlation"]) if between and shown.measure == ACCURACY else 0.0,
    )
    full = ", ".join(f"{plain(name)} {percent(each[0]['value'])}" for name, each in zip(both, rows, strict=True))

    def data() -> pa.Table:
        return pa.Table.from_pylist(
            [
                {"head": one["head"], "across": one["value"], "up": other["value"]}
                for one, other in zip(*rows, strict=True)
            ]
        )

    show.figure(
        pair_figure(both, rows, slices, shown.measure, show.theme()),
        PAIR,
        data,
        f"The ellipse holds 95 % of random slices. All heads together: {full}. Click a head to open its profile.",
        alt=pair_alt(both, rows),
        on_pick=ask_to_turn,
    )
    if head := _picked_head(len(rows[0]) - 1):
        turn_page(PROFILE, f"Open head {head}'s profile", _profile_of(head))


def _picked_head(heads: int) -> int:
    """The head whose point was clicked, 0 where none was; the ellipse is no head."""
    found = next(iter(picked(PAIR)), 0)
    return int(found) if isinstance(found, (int, float)) and 1 <= found <= heads else 0


def _profile_of(head: int) -> dict[str, str]:
    kept = {name: value for name, value in st.query_params.items() if name in ("run", "stage")}
    return {**kept, "head": str(head)}


def chosen(shown: AspectView) -> tuple[str, int]:
    """The aspect and the head that the rest of the page is about, and the way to the head's profile."""
    assert shown.state.manifest is not None
    st.subheader("One aspect in one head", anchor=False)
    with st.container(horizontal=True, gap="small"):
        aspect = linked(
            st.selectbox, "Aspect", "aspect", shown.names, shown.names[0], format_func=lambda name: shortened(name, 60)
        )
        head = choose_head(shown.state.manifest.shape.heads)
    st.page_link(
        PROFILE, label=f"Profile of head {head}", icon=":material/person_search:", query_params=_profile_of(head)
    )
    row, full, summary = shown.heads[aspect][head], shown.heads[aspect][0], shown.summaries[aspect]
    with st.container(horizontal=True, gap="medium"):
        _metric(f"Head {head}", row, f"{row['verdict']} random slices, p = {row['p_adjusted']:.3f}")
        _metric("All heads together", full, f"{summary['classes']} values, chance {percent(summary['chance'], 1)}")
        with st.container(border=True):
            st.metric("Random slices", percent(summary["slices"], 1))
            st.caption(plain(f"95 %: {percent(summary['slices_low'], 1)} to {percent(summary['slices_high'], 1)}"))
    st.caption(
        plain(
            f"Labels: {SOURCES.get(summary['source'], summary['source'])}. Always guessing the most frequent value is "
            f"correct for {percent(summary['majority'], 1)}."
        )
    )
    return aspect, head


def _metric(label: str, row: Row, said: str) -> None:
    with st.container(border=True):
        st.metric(label, percent(row["value"], 1))
        st.caption(plain(f"95 % CI {percent(row['low'], 1)} to {percent(row['high'], 1)}; {said}"))


@shows_mistakes
def mingled(shown: AspectView, aspect: str, head: int) -> None:
    """How the aspect goes together with others, and what is left of it within their values."""
    others = [name for name in shown.names if name != aspect and shown.pair("aspect_pairs", aspect, name)]
    if not others:
        return
    st.subheader("Is it related to other aspects?", help=why("Cramér's V"), anchor=False)
    raw = next(
        row
        for row in shown.rows["aspects"]
        if (row["stage"], row["aspect"], row["measure"], row["head"]) == (shown.stage, aspect, ACCURACY, head)
    )
    rows = []
    for other in others:
        found = next((row for row in shown.pair("aspect_within", aspect, other) if row["head"] == head), None)
        together = shown.pair("aspect_pairs", aspect, other)[0]["cramers_v"]
        rows.append(
            {
                "Other aspect": show.cells([other])[0],
                "Cramér's V": round(together, 2),
                f"Head {head}": percent(raw["value"], 1),
                "Within its values": "not computed" if found is None else percent(found["value"], 1),
                "95 % CI": "" if found is None else f"{percent(found['low'], 1)} to {percent(found['high'], 1)}",
                "Random slices": ""
                if found is None
                else f"{percent(found['slices_low'], 1)} to {percent(found['slices_high'], 1)}",
                "Most frequent value": "" if found is None else percent(found["chance"], 1),
            }
        )
    st.dataframe(rows, hide_index=True)
    strong = [name for name in others if shown.pair("aspect_pairs", aspect, name)[0]["cramers_v"] >= ENTANGLED]
    st.caption(
        "Within: documents are compared only with others of the same value of the other aspect."
        + (f" {plain(aspect)} is related to {plain(', '.join(strong))}: use that column for it." if strong else "")
    )
