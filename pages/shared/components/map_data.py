"""What the head map is made of: points on a fine grid, documents, colours; read once a process, sent once a browser."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from core.analysis.stratify import stratified
from core.model.stages import STAGES
from core.runs.labels import label_codes
from core.runs.parquet import RowLookup
from core.runs.results import read_map, read_topics
from core.runs.run import Run
from pages.shared.components.map_density import BITS, counts_by_head, counts_by_value, points_inside, read_window
from pages.shared.data import RunState, documents
from pages.shared.run_version import FIGURES, one_version
from pages.shared.text import shortened
from pages.shared.theme import UNLABELLED, activation_colours, group_colours, head_colours, ramp_colours, topic_colours

MOST_POINTS = 1_024_000
"""That are sent and drawn, five bytes each: 32,000 documents of a model with 32 heads. Of more their density is."""
MOST_IN_VIEW = 100_000
"""Where density is drawn: single points, with their documents' titles, are sent if no more are in view."""
MOST_EXTRA = 500
"""Documents whose points are drawn over the density, because they were found or chosen."""
_MOST_HITS = 5_000
"""Documents that were found, as many as are highlighted where density is drawn and single points are in view."""
MOST_VALUES = 16
"""A corpus column with more values than this is no colouring."""
MOST_TOPICS = 40
_FULL, _GRID, _CORNERS = 65_535, 9_999, 80
_RESERVED = ("head", "group", "activation", "topic")


@dataclass(frozen=True)
class StageMap:
    """One stage's points on a grid: ``places[doc, head, axis]`` and, for the activation, ``shades[doc, head]``."""

    places: np.ndarray
    shades: np.ndarray
    fitted: np.ndarray
    """``[doc]``: whether the map was fitted on it, or it was placed afterwards."""
    low: float
    high: float
    """The activations that are drawn weakest and strongest."""

    @property
    def is_drawn_whole(self) -> bool:
        """Whether all points are drawn one by one; otherwise their density is."""
        return self.shades.size <= MOST_POINTS


@dataclass(frozen=True)
class Needs:
    """What the browser asks for where density is drawn: a column to colour by, and a window's single points."""

    column: str | None = None
    window: str | None = None


_NOTHING = Needs()


@dataclass(frozen=True)
class Column:
    """Something about documents to colour by: ``codes[doc]`` index ``values``, -1 for none of them."""

    name: str
    label: str
    values: tuple[str, ...]
    codes: np.ndarray


def stage_map(state: RunState, stage: int) -> StageMap:
    return _stage_map(state.run, state.analysis_version, stage)


def columns(state: RunState) -> tuple[Column, ...]:
    return _columns(state.run, state.analysis_version)


def message(
    state: RunState,
    stage: int,
    found: np.ndarray | None,
    known: set[str],
    chosen: int | None = None,
    needs: Needs = _NOTHING,
) -> dict[str, Any]:
    """What the browser is told; points, counts and titles only where they are not among the ``known`` keys."""
    drawn = stage_map(state, stage)
    if drawn.is_drawn_whole:
        told = _message(state, stage, drawn, np.arange(len(drawn.places)), known)
        return told | {"hits": None if found is None else found.tolist()}
    told = _about(state, stage, drawn, "density")
    told |= {
        "density": {"bits": BITS, "points": drawn.shades.size, "most": MOST_IN_VIEW},
        "hits": None if found is None else found[:_MOST_HITS].tolist(),
    }
    told |= _counted(state, stage, told["key"], known, needs.column)
    first = [] if found is None else found[:MOST_EXTRA].tolist()
    extra = np.unique(np.array([*first, *([] if chosen is None else [chosen])], dtype=np.int64))
    if len(extra):
        told["extra"] = _points(drawn, extra)
        told["extra_documents"] = _described(documents(state), extra, columns(state))
    return told | _close_up(state, drawn, needs.window)


def message_of_sample(state: RunState, stage: int) -> dict[str, Any]:
    """The same for who cannot ask for more: the points of all documents or, of too many, of a sample by topic."""
    drawn = stage_map(state, stage)
    docs = np.arange(len(drawn.places)) if drawn.is_drawn_whole else _sample(state.run, drawn)
    return _message(state, stage, drawn, docs, set()) | {"hits": None}


def _message(state: RunState, stage: int, drawn: StageMap, docs: np.ndarray, known: set[str]) -> dict[str, Any]:
    told = _about(state, stage, drawn, docs.tobytes())
    if told["key"] not in known:
        told["points"] = _points(drawn, docs)
    if told["base"] not in known:
        told["documents"] = _described(documents(state), docs, columns(state))
    return told


def _about(state: RunState, stage: int, drawn: StageMap, which: str | bytes) -> dict[str, Any]:
    """What is told in any case; ``which`` documents are shown makes it another map."""
    assert state.manifest is not None
    shape, named = state.manifest.shape, columns(state)
    base = _digest(state.run.name, state.analysis_version, which)
    return {
        "run": state.run.name,
        "base": base,
        "key": f"{base}/{stage}",
        "stage": stage,
        "stage_name": STAGES[stage].name,
        "heads": shape.heads,
        "groups": shape.kv_heads,
        "low": drawn.low,
        "high": drawn.high,
        "columns": [
            {
                "key": f"c{number}",
                "name": column.name,
                "label": column.label,
                "values": [shortened(value, 60) for value in column.values],
                "counts": np.bincount(column.codes[column.codes >= 0], minlength=len(column.values)).tolist(),
                "missing": bool((column.codes < 0).any()),
            }
            for number, column in enumerate(named)
        ],
        "schemes": _schemes(shape.heads, shape.kv_heads, max([8, *(len(column.values) for column in named)])),
    }


def _counted(state: RunState, stage: int, key: str, known: set[str], colour: str | None) -> dict[str, Any]:
    """Counts by head and, where a column colours the map, by its values."""
    told: dict[str, Any] = {}
    if key not in known:
        told["counts"] = _counts(state.run, state.analysis_version, stage, None)
    own = next((number for number, column in enumerate(columns(state)) if column.name == colour), None)
    if own is not None:
        told["column"] = f"c{own}"
        if f"{key}/c{own}" not in known:
            told["values"] = _counts(state.run, state.analysis_version, stage, own)
    return told


def _close_up(state: RunState, drawn: StageMap, text: str | None) -> dict[str, Any]:
    """The points of a window with their documents, unless there are too many."""
    window = None if text is None else read_window(text, drawn.places.shape[1])
    if window is None:
        return {}
    docs, heads = points_inside(drawn.places, window)
    if len(docs) > MOST_IN_VIEW:
        return {}
    every, rows = np.unique(docs, return_inverse=True)
    return {
        "window": text,
        "points": _points(drawn, docs, heads).append_column("row", pa.array(rows.astype(np.uint32))),
        "documents": _described(documents(state), every, columns(state)),
    }


def _points(drawn: StageMap, docs: np.ndarray, heads: np.ndarray | None = None) -> pa.Table:
    """All points of documents or, with ``heads`` for each of the documents, those alone."""
    at = (docs,) if heads is None else (docs, heads)
    places = drawn.places[at].reshape(-1, 2)
    found = pa.table({"x": places[:, 0], "y": places[:, 1], "activation": drawn.shades[at].reshape(-1)})
    return found if heads is None else found.append_column("head", pa.array(heads.astype(np.uint16)))


def read_area(text: str | None, stage: int) -> np.ndarray | None:
    """The polygon ``[corner, axis]`` of an address like "1_17.4_90.8_33.70", or None for any other text."""
    if not text or len(text) > 1_200:
        return None
    own, *corners = text.split("_")
    if own != str(stage) or not 3 <= len(corners) <= _CORNERS:
        return None
    if not all(re.fullmatch(r"[0-9]{1,4}\.[0-9]{1,4}", corner) for corner in corners):
        return None
    return np.array([[int(value) * _FULL / _GRID for value in corner.split(".")] for corner in corners])


def area_text(stage: int, corners: np.ndarray) -> str:
    """The other way round: ``corners[corner, axis]`` on the map's grid as a text, with every n-th of too many."""
    few = corners[:: -(-len(corners) // _CORNERS)] * _GRID / _FULL
    return "_".join([str(stage), *(f"{x}.{y}" for x, y in np.clip(np.rint(few), 0, _GRID).astype(int))])


def inside(places: np.ndarray, polygon: np.ndarray) -> np.ndarray:
    """Which of ``places[…, axis]`` lie in a polygon, by the even-odd rule; the browser's rule, number for number."""
    hit = np.ones(places.shape[:-1], dtype=bool)
    for axis, (low, high) in enumerate(zip(polygon.min(axis=0), polygon.max(axis=0), strict=True)):
        hit &= (places[..., axis] >= low) & (places[..., axis] <= high)
    near = np.flatnonzero(hit)
    flat = places.reshape(-1, 2)
    # By height: an edge then has to do only with the points between its ends.
    near = near[np.argsort(flat[near, 1], kind="stable")]
    x, y = (flat[near, axis].astype(np.float64) for axis in (0, 1))
    odd = np.zeros(len(near), dtype=bool)
    for (xi, yi), (xj, yj) in zip(polygon, np.roll(polygon, 1, axis=0), strict=True):
        between = slice(*np.searchsorted(y, sorted((yi, yj))))
        if yi != yj:
            odd[between] ^= x[between] < (xj - xi) * (y[between] - yi) / (yj - yi) + xi
    hit.reshape(-1)[near] = odd
    return hit


@st.cache_resource(max_entries=9, show_spinner="Reading the map …")
@one_version(*FIGURES)
def _stage_map(run: Run, version: str, stage: int) -> StageMap:
    table, heads = read_map(run, stage), run.manifest().shape.heads
    x, y, activation, fitted = (
        table[name].to_numpy().reshape(-1, heads) for name in ("x", "y", "activation", "fitted")
    )
    weak, strong = (float(value) for value in np.quantile(activation, (0.02, 0.98)))
    shades = np.clip((activation - weak) / ((strong - weak) or 1.0), 0, 1) * 255
    found = StageMap(_on_grid(np.stack([x, y], axis=-1)), shades.astype(np.uint8), fitted.all(axis=1), weak, strong)
    found.places.setflags(write=False)
    return found


def _on_grid(places: np.ndarray) -> np.ndarray:
    """``places[doc, head, axis]`` on the fine grid: one scale for both axes, and a margin."""
    low, high = places.min(axis=(0, 1)), places.max(axis=(0, 1))
    span = float((high - low).max()) * 1.04 or 1.0
    return np.asarray(np.rint(((places - (low + high) / 2) / span + 0.5) * _FULL).astype(np.uint16))


@st.cache_resource(max_entries=9, show_spinner="Counting points …")
@one_version(*FIGURES)
def _counts(run: Run, version: str, stage: int, column: int | None) -> pa.Table:
    drawn = _stage_map(run, version, stage)
    if column is None:
        return counts_by_head(drawn.places, drawn.shades)
    return counts_by_value(drawn.places, _columns(run, version)[column].codes)


def _sample(run: Run, drawn: StageMap) -> np.ndarray:
    """Documents that the map was fitted on first, then those that were placed among them; both stratified by topic."""
    names = run.documents(["topic"])["topic"].combine_chunks().dictionary_encode()
    topics, room = pc.fill_null(names.indices, -1).to_numpy(), max(1, MOST_POINTS // drawn.places.shape[1])
    chosen = np.flatnonzero(drawn.fitted)
    chosen = chosen[stratified(topics[chosen], room)]
    rest = np.flatnonzero(~drawn.fitted)
    return np.sort(np.concatenate([chosen, rest[stratified(topics[rest], room - len(chosen))]]))


@st.cache_resource(max_entries=4, show_spinner=False)
@one_version(*FIGURES)
def _columns(run: Run, version: str) -> tuple[Column, ...]:
    found = []
    names = run.documents(["topic"])["topic"]
    counts = {row["values"]: row["counts"] for row in pc.value_counts(names).to_pylist() if row["values"]}
    if counts:
        order: Sequence[str] = sorted(counts, key=lambda name: -counts[name])  # equal ones as they come in the corpus
        if run.manifest().is_done("analyse"):
            known = {name: number for number, name in enumerate(read_topics(run).names)}
            order = sorted(order, key=lambda name: known.get(name, len(known)))
        found.append(Column("topic", "Topic", tuple(order[:MOST_TOPICS]), _codes(names, order[:MOST_TOPICS])))
    for name, kind in run.manifest().corpus["extra"].items():
        if kind != "string" or len(found) > 6:
            continue
        cells = run.documents([name])[name]  # one at a time: a column of ids may be as long as all texts
        values = sorted(value for value in cells.unique().to_pylist() if value)
        if 2 <= len(values) <= MOST_VALUES:
            own = f"{name} (corpus)" if name in _RESERVED else name
            found.append(Column(own, shortened(own, 40), tuple(values), _codes(cells, values)))
    return tuple(found)


def _codes(cells: pa.ChunkedArray, values: Sequence[str]) -> np.ndarray:
    return label_codes(cells, values).astype(np.int16)


def _described(table: RowLookup, docs: np.ndarray, named: Sequence[Column]) -> pa.Table:
    titles = table.rows(docs, ["title"])["title"].to_pylist()
    codes = {f"c{number}": column.codes[docs] for number, column in enumerate(named)}
    return pa.table({"doc": docs.astype(np.int32), "title": [shortened(title, 90) for title in titles], **codes})


@cache
def _schemes(heads: int, groups: int, values: int) -> dict[str, dict[str, Any]]:
    return {
        theme: {
            "heads": head_colours(heads, groups, theme),
            "groups": group_colours(groups, theme),
            "activation": activation_colours(groups, theme),
            "ramp": ramp_colours(theme),
            "topics": topic_colours(values, theme),
            "none": UNLABELLED[theme],
        }
        for theme in ("light", "dark")
    }


def _digest(*parts: str | bytes) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part if isinstance(part, bytes) else part.encode())
        found.update(b"\0")
    return found.hexdigest()[:16]
