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
from pages.shared.data import RunState, documents, points
from pages.shared.run_version import FIGURES, one_version
from pages.shared.text import shortened
from pages.shared.theme import UNLABELLED, activation_colours, group_colours, head_colours, ramp_colours, topic_colours

MOST_POINTS = 1_024_000
"""That are sent and drawn, five bytes each: 32,000 documents of a model with 32 heads."""
MOST_EXTRA = 500
"""Documents that are drawn besides the sample, because they were found or chosen."""
_MOST_LOOKED_AT = 5_000
"""Of those that were found, as many are looked for beyond the sample."""
MOST_VALUES = 16
"""A corpus column with more values than this is no colouring."""
MOST_TOPICS = 40
_FULL, _GRID, _CORNERS = 65_535, 9_999, 80
_RESERVED = ("head", "group", "activation", "topic")


@dataclass(frozen=True)
class StageMap:
    """One stage's points: ``places[doc, head, axis]`` and ``activation[doc, head]`` on a grid, for drawn documents."""

    docs: np.ndarray
    places: np.ndarray
    points: pa.Table
    grid: MapGrid
    low: float
    high: float
    left_out: int
    """Documents that are not drawn."""


@dataclass(frozen=True)
class MapGrid:
    """From a map's own coordinates to the fine grid: one scale for both axes, and a margin."""

    middle: np.ndarray
    span: float

    def of(self, places: np.ndarray) -> np.ndarray:
        """``places[…, axis]`` on the grid; what lies beyond its edge comes to lie on it."""
        scaled = np.rint(((places - self.middle) / self.span + 0.5) * _FULL)
        return np.clip(np.nan_to_num(scaled), 0, _FULL).astype(np.uint16)


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


def beyond(drawn: StageMap, docs: Sequence[int] | np.ndarray) -> np.ndarray:
    """Those of ``docs`` that the sample has not, at most MOST_EXTRA: they are drawn besides it."""
    return np.setdiff1d(np.asarray(docs, dtype=np.int64)[:_MOST_LOOKED_AT], drawn.docs)[:MOST_EXTRA]


def message(
    state: RunState, stage: int, found: np.ndarray | None, known: set[str], chosen: int | None = None
) -> dict[str, Any]:
    """What the browser is told; points and titles only where they are not among the ``known`` keys.

    Documents that were found, and the ``chosen`` one, are drawn though the sample has them not.
    """
    assert state.manifest is not None
    shape, drawn, named = state.manifest.shape, stage_map(state, stage), columns(state)
    wanted = [*([] if chosen is None else [chosen]), *([] if found is None else found[:_MOST_LOOKED_AT].tolist())]
    extra = beyond(drawn, wanted) if drawn.left_out else np.empty(0, dtype=np.int64)
    if chosen is not None and drawn.left_out and chosen not in extra and chosen not in drawn.docs:
        extra = np.sort(np.append(extra[: MOST_EXTRA - 1], chosen))
    base = _digest(state.run.name, state.analysis_version, drawn.docs.tobytes())
    key = f"{base}/{stage}"
    told: dict[str, Any] = {
        "run": state.run.name,
        "base": base,
        "key": key,
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
        "hits": None if found is None else _lit(drawn, extra, found),
    }
    if len(extra):
        told["extra"] = _extra(state, stage, drawn, extra)
        told["extra_documents"] = _described(documents(state), extra, named)
    if key not in known:
        told["points"] = drawn.points
    if base not in known:
        told["documents"] = _described(documents(state), drawn.docs, named)
    return told


def _lit(drawn: StageMap, extra: np.ndarray, found: np.ndarray) -> list[int]:
    """Of the documents that were found those that are on the map."""
    if not drawn.left_out:
        return found.tolist()
    return np.intersect1d(found, np.concatenate([drawn.docs, extra])).tolist()


def _extra(state: RunState, stage: int, drawn: StageMap, docs: np.ndarray) -> pa.Table:
    rows = points(state, stage, docs)
    grid = drawn.grid.of(np.stack([rows["x"].to_numpy(), rows["y"].to_numpy()], axis=1))
    activation = _shades(np.nan_to_num(rows["activation"].to_numpy()), drawn.low, drawn.high)
    return pa.table({"x": grid[:, 0], "y": grid[:, 1], "activation": activation})


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
    fitted = table["fitted"].to_numpy().reshape(-1, heads).all(axis=1)
    shown = np.arange(len(fitted)) if len(fitted) * heads <= MOST_POINTS else _sampled(run, fitted, heads)
    places = np.stack([table[axis].to_numpy().reshape(-1, heads)[shown] for axis in ("x", "y")], axis=-1)
    low, high = places.min(axis=(0, 1)), places.max(axis=(0, 1))
    grid = MapGrid((low + high) / 2, float((high - low).max()) * 1.04 or 1.0)
    at = grid.of(places)
    activation = table["activation"].to_numpy().reshape(-1, heads)[shown]
    weak, strong = (float(value) for value in np.quantile(activation, (0.02, 0.98)))
    shades = _shades(activation, weak, strong)
    drawn = pa.table({"x": at[..., 0].reshape(-1), "y": at[..., 1].reshape(-1), "activation": shades.reshape(-1)})
    at.setflags(write=False)
    docs = table["doc"].to_numpy()[::heads][shown]
    return StageMap(docs, at, drawn, grid, weak, strong, len(fitted) - len(shown))


def _sampled(run: Run, fitted: np.ndarray, heads: int) -> np.ndarray:
    """Documents that the map was fitted on first, then those that were placed among them; both stratified by topic."""
    names = run.documents(["topic"])["topic"].combine_chunks().dictionary_encode()
    topics, room = pc.fill_null(names.indices, -1).to_numpy(), max(1, MOST_POINTS // heads)
    chosen = np.flatnonzero(fitted)
    chosen = chosen[stratified(topics[chosen], room)]
    rest = np.flatnonzero(~fitted)
    return np.sort(np.concatenate([chosen, rest[stratified(topics[rest], room - len(chosen))]]))


def _shades(activation: np.ndarray, weak: float, strong: float) -> np.ndarray:
    scaled = np.clip((activation - weak) / ((strong - weak) or 1.0), 0, 1) * 255
    return np.asarray(scaled.astype(np.uint8))


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
