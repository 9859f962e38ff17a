"""What the head map is made of: points on a fine grid, documents, colours; read once a process, sent once a browser."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import streamlit as st

from core.palette import activation_colours, group_colours, head_colours, ramp_colours, topic_colours
from core.results import read_map, read_topics
from core.stages import STAGES
from core.store import Run
from pages.shared.data import RunState, documents
from pages.shared.steady import FIGURES, steady
from pages.shared.text import shortened

MOST_POINTS = 320_000
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
    low: float
    high: float
    left_out: int
    """Documents that are not drawn."""


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
    return _columns(state.run, state.analysis_version, documents(state))


def message(state: RunState, stage: int, found: np.ndarray | None, known: set[str]) -> dict[str, Any]:
    """What the browser is told; points and titles only where they are not among the ``known`` keys."""
    assert state.manifest is not None
    shape, drawn, named = state.manifest.shape, stage_map(state, stage), columns(state)
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
        "hits": None if found is None else found.tolist(),
    }
    if key not in known:
        told["points"] = drawn.points
    if base not in known:
        told["documents"] = _described(documents(state), drawn.docs, named)
    return told


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
@steady(*FIGURES)
def _stage_map(run: Run, version: str, stage: int) -> StageMap:
    table, heads = read_map(run, stage), run.manifest().shape.heads
    fitted = table["fitted"].to_numpy().reshape(-1, heads).all(axis=1)
    shown = np.flatnonzero(fitted)
    if len(shown) * heads > MOST_POINTS:
        shown = shown[np.linspace(0, len(shown) - 1, MOST_POINTS // heads).astype(int)]
    places = np.stack([table[axis].to_numpy().reshape(-1, heads)[shown] for axis in ("x", "y")], axis=-1)
    low, high = places.min(axis=(0, 1)), places.max(axis=(0, 1))
    span = float((high - low).max()) * 1.04 or 1.0  # one scale for both axes, and a margin
    grid = np.rint(((places - (low + high) / 2) / span + 0.5) * _FULL).astype(np.uint16)
    activation = table["activation"].to_numpy().reshape(-1, heads)[shown]
    weak, strong = (float(value) for value in np.quantile(activation, (0.02, 0.98)))
    scaled = np.clip((activation - weak) / ((strong - weak) or 1.0), 0, 1) * 255
    points = pa.table(
        {
            "x": grid[..., 0].reshape(-1),
            "y": grid[..., 1].reshape(-1),
            "activation": scaled.astype(np.uint8).reshape(-1),
        }
    )
    grid.setflags(write=False)
    return StageMap(table["doc"].to_numpy()[::heads][shown], grid, points, weak, strong, len(fitted) - len(shown))


@st.cache_resource(max_entries=4, show_spinner=False)
@steady(*FIGURES)
def _columns(run: Run, version: str, _table: pa.Table) -> tuple[Column, ...]:
    found = []
    names = _table["topic"].to_pylist()
    if any(names):
        order: Sequence[str] = [name for name, _ in Counter(name for name in names if name).most_common()]
        if run.manifest().is_done("analyse"):
            known = {name: number for number, name in enumerate(read_topics(run).names)}
            order = sorted(order, key=lambda name: known.get(name, len(known)))
        found.append(Column("topic", "Topic", tuple(order[:MOST_TOPICS]), _codes(names, order[:MOST_TOPICS])))
    for name, kind in run.manifest().corpus["extra"].items():
        if kind != "string" or len(found) > 6:
            continue
        cells = _table[name].to_pylist()
        values = sorted({cell for cell in cells if cell})
        if 2 <= len(values) <= MOST_VALUES:
            own = f"{name} (corpus)" if name in _RESERVED else name
            found.append(Column(own, shortened(own, 40), tuple(values), _codes(cells, values)))
    return tuple(found)


def _codes(cells: Sequence[str | None], values: Sequence[str]) -> np.ndarray:
    index = {value: number for number, value in enumerate(values)}
    return np.array([index.get(cell, -1) if cell else -1 for cell in cells], dtype=np.int16)


def _described(table: pa.Table, docs: np.ndarray, named: Sequence[Column]) -> pa.Table:
    titles = table["title"].take(pa.array(docs)).to_pylist()
    codes = {f"c{number}": column.codes[docs] for number, column in enumerate(named)}
    return pa.table({"doc": docs, "title": [shortened(title, 90) for title in titles], **codes})


@cache
def _schemes(heads: int, groups: int, values: int) -> dict[str, dict[str, Any]]:
    none = {"light": "#8d8a84", "dark": "#8b919c"}
    return {
        theme: {
            "heads": head_colours(heads, groups, theme),
            "groups": group_colours(groups, theme),
            "activation": activation_colours(groups, theme),
            "ramp": ramp_colours(theme),
            "topics": topic_colours(values, theme),
            "none": none[theme],
        }
        for theme in ("light", "dark")
    }


def _digest(*parts: str | bytes) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part if isinstance(part, bytes) else part.encode())
        found.update(b"\0")
    return found.hexdigest()[:16]
