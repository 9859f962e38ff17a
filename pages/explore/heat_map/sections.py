"""The heat map itself: cells in order, their colours, the canvas, and what a click does."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from core.analysis.heat_map import HeatMap, heat_map
from core.analysis.wording import plural
from core.model.shape import ModelShape
from core.model.stages import STAGES
from core.runs.run import Run
from pages.explore.heat_map.state import NO_TOPIC, HeatMapView, drawable, row_name
from pages.shared.components.beside import asked
from pages.shared.components.heatmap import Look, Panel, Pick, Sheet, canvas_heat_map, read_pick
from pages.shared.corpus import own_topic_similarity
from pages.shared.data import RunState, documents, labels, topics
from pages.shared.figures.similarity import colour_limit
from pages.shared.figures.table import number
from pages.shared.run_version import DOCUMENTS, one_version
from pages.shared.show import Paper, downloads, theme
from pages.shared.text import shortened
from pages.shared.theme import DIVERGING, FRAME, GROUND, INK
from pages.shared.url import choice_from_url, choices_to_url, decide

KEY = "heat map"
_LONGEST_TITLE = 120


def columns_by(cells: HeatMap, row: int) -> np.ndarray:
    """``[column]``: the documents, within each block in falling order of that row."""
    ends = [*cells.starts[1:], len(cells.docs)]
    blocks = [slice(start, end) for start, end in zip(cells.starts, ends, strict=True)]
    return np.concatenate([cells.docs[block][np.argsort(-cells.values[row, block], kind="stable")] for block in blocks])


def draw(state: RunState, view: HeatMapView) -> bool:
    """The canvas, and a sentence on what is drawn; False where there is nothing to draw."""
    assert state.manifest is not None
    own, names = drawable(state, view.reference), topics(state).names
    cells = heat_map(own_topic_similarity(state, view.stage, view.reference), own, view.topics, view.per_topic)
    if not len(cells.docs):
        st.info("None of these topics has enough labelled documents. Choose other topics.", icon=":material/category:")
        return False
    docs = columns_by(cells, view.sort)
    needed = state.manifest.stages if view.same_range else view.shown
    every = {stage: own_topic_similarity(state, stage, view.reference)[docs].T for stage in needed}
    limits = {stage: colour_limit(values) for stage, values in every.items()}
    if view.same_range:
        limits = dict.fromkeys(limits, max(limits.values()))
    look, rows = theme(), ["full", *(f"head {head}" for head in range(1, 1 + state.manifest.shape.heads))]
    ends = [limits[stage] for stage in view.shown]
    told = f"{state.run.name} {state.analysis_version} {view.reference} {view.shown} {ends} {look}"
    sheet = Sheet(
        hashlib.blake2b(told.encode() + docs.tobytes(), digest_size=8).hexdigest(),
        f"Topic heat map: {plural(len(docs), 'document')} in {plural(len(cells.starts), 'topic')}, {len(rows)} rows.",
        [Panel(f"Stage {stage} {STAGES[stage].name}", every[stage], limits[stage]) for stage in view.shown],
        rows,
        [shortened(names[topic], _LONGEST_TITLE) for topic in cells.topics[cells.starts]],
        cells.starts.tolist(),
        _titles(state.run, state.documents_version, docs, state),
        group_rows(state.manifest.shape),
    )
    _choices_from_url(state, view)

    def picked() -> None:
        pick = read_pick(KEY, sheet)
        if pick is not None:
            asked("heat")
            _choose(pick, view, docs, cells.topics[cells.starts])

    colours = Look(DIVERGING[look], INK[look], GROUND[look], FRAME[look])
    canvas_heat_map(sheet, colours, KEY, _first_mark(sheet.version, view, docs), picked)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        sentence = _sentence(view, cells, own, bool(sheet.groups))
        st.caption(sentence)
        _take_away(state, view, docs, [sheet.label, _ranges(view, every), sentence])
    return True


def group_rows(shape: ModelShape) -> list[tuple[int, int]]:
    """The first and the last row of each key/value group; none where every head has keys and values of its own."""
    size = shape.heads // shape.kv_heads
    return [(first, first + size - 1) for first in range(1, shape.heads + 1, size)] if size > 1 else []


@st.cache_resource(max_entries=32, show_spinner=False)
@one_version(*DOCUMENTS)
def _titles(run: Run, version: str, docs: np.ndarray, _state: RunState) -> pa.Array:
    """Short ones, as the browser shows them: every click draws the same sheet again."""
    # Cut before they become Python's: a title may be as long as a text.
    cut = pc.utf8_slice_codeunits(documents(_state).rows(docs, ["title"])["title"], 0, 4 * _LONGEST_TITLE)
    return pa.array([shortened(title, _LONGEST_TITLE) for title in cut.to_pylist()], pa.string())


def _choices_from_url(state: RunState, view: HeatMapView) -> None:
    """Which document, row, panel and topic the page below shows: set by clicks, not by widgets."""
    assert state.manifest is not None
    choices = {
        "doc": (range(len(labels(state)) + 1), 0),
        "head": (range(state.manifest.shape.heads + 1), 0),
        "panel": (view.shown, view.stage),
        "block": (range(NO_TOPIC, len(topics(state).names)), NO_TOPIC),
    }
    for name, (options, default) in choices.items():
        choice_from_url(name, options, default)
    if not st.session_state["doc"]:
        st.session_state["panel"] = view.stage  # no cell, so no panel of its own
    choices_to_url({name: (st.session_state[name], default) for name, (_, default) in choices.items()})


def _choose(pick: Pick, view: HeatMapView, docs: np.ndarray, blocks: np.ndarray) -> None:
    chosen = {"doc": 0, "block": NO_TOPIC, "head": 0, "panel": view.stage}
    if pick.kind == "cell":
        chosen |= {"doc": int(docs[pick.column]) + 1, "head": pick.row, "panel": view.shown[pick.panel]}
    elif pick.kind == "row":
        chosen |= {"head": pick.row, "panel": view.shown[pick.panel]}
    else:
        chosen |= {"block": int(blocks[pick.block])}
    for name, value in chosen.items():
        decide(name, value)


def _first_mark(version: str, view: HeatMapView, docs: np.ndarray) -> dict[str, int] | None:
    """The chosen cell as it was when this sheet was first drawn: a later one would send all of it again."""
    kept: tuple[str, dict[str, int] | None] | None = st.session_state.get("heat map mark")
    if kept is None or kept[0] != version:
        place = np.flatnonzero(docs == st.session_state["doc"] - 1)
        panel = view.shown.index(st.session_state["panel"])
        cell = {"panel": panel, "row": st.session_state["head"], "column": int(place[0])} if len(place) else None
        kept = st.session_state["heat map mark"] = (version, cell)
    return kept[1]


def _sentence(view: HeatMapView, cells: HeatMap, own: np.ndarray, groups: bool) -> str:
    there = [int((own == topic).sum()) for topic in view.topics]
    by = f"by {'the ' if view.sort == 0 else ''}{row_name(view.sort)} at stage {view.stage}"
    sampled = f", sampled from {sum(there):,}" if sum(there) > len(cells.docs) else ""
    sizes = sorted(min(count, view.per_topic) for count in there if count)
    each = f"{sizes[0]:,}" if sizes[0] == sizes[-1] else f"{sizes[0]:,}–{sizes[-1]:,}"
    count = len(cells.starts)
    return (
        f"{len(cells.docs):,} document{'' if len(cells.docs) == 1 else 's'}{sampled}: {count} topic"
        f"{' with' if count == 1 else 's, each with'} {each} document{'' if each == '1' else 's'}. Each topic is "
        f"sorted {by}, most similar on the "
        f"left. Colours are clipped at the 99th percentile.{' Brackets mark key/value groups.' if groups else ''}"
    )


def _ranges(view: HeatMapView, values: dict[int, np.ndarray]) -> str:
    ends = {stage: (values[stage].min(), values[stage].max()) for stage in view.shown}
    told = ", ".join(f"{number(low)} to {number(high)} at stage {stage}" for stage, (low, high) in ends.items())
    return f"Cosines with each document's own topic: {told}."


def _take_away(state: RunState, view: HeatMapView, docs: np.ndarray, sentences: Sequence[str]) -> None:
    """The cells as a table, a row per document; made when somebody asks for it."""

    def table() -> pa.Table:
        names, own, about = topics(state).names, labels(state)[docs], documents(state).rows(docs, ["id", "title"])
        found = {"doc": docs + 1, "id": about["id"], "title": about["title"], "topic": [names[topic] for topic in own]}
        for stage in view.shown:
            values = own_topic_similarity(state, stage, view.reference)[docs]
            found |= {f"stage {stage} {row_name(row)}": values[:, row] for row in range(values.shape[1])}
        return pa.table(found)

    downloads("topic-heat-map", table, Paper(None, sentences, own="topic-heat-map"))
