"""The head map beyond a million points: how many points lie in each cell of a fine grid, and the points of a window.

Cells are numbered along a Z-order curve. The four quarters of a square follow each other on it, so the browser draws
coarser cells, where a pixel has room for no more, without sorting anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pages.shared.heads_in_address import parse_heads

BITS = 10
"""A cell is 1/1,024 of the map's width: about a pixel of a large screen."""
_SHIFT = 16 - BITS
_HEAD, _LOW = 12, 8
"""Bits of a head and of what is counted or averaged: an activation, or a value's code."""


@dataclass(frozen=True)
class MapWindow:
    """Cells from ``left`` and ``low`` up to, not including, ``right`` and ``high``; ``heads`` from 0, ascending."""

    left: int
    low: int
    right: int
    high: int
    heads: np.ndarray


def read_window(text: str, heads: int) -> MapWindow | None:
    """The window that "12.40.88.97/1-4,7" names, or None for any other text; without the slash, of all heads."""
    edges, _, chosen = text[:2_000].partition("/")
    own = parse_heads(chosen or None, heads)
    if own is None or not re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,4}){3}", edges):
        return None
    left, low, right, high = (int(edge) for edge in edges.split("."))
    return MapWindow(left, low, right, high, np.array(sorted(own), dtype=np.int64) - 1)


def points_inside(places: np.ndarray, window: MapWindow) -> tuple[np.ndarray, np.ndarray]:
    """The documents and heads, both from 0, of the points of ``places[doc, head, axis]`` in a window."""
    x, y = (places[:, window.heads, axis] >> _SHIFT for axis in (0, 1))
    hit = (x >= window.left) & (x < window.right) & (y >= window.low) & (y < window.high)
    docs, own = np.nonzero(hit)
    return docs, window.heads[own]


def counts_by_head(places: np.ndarray, shades: np.ndarray) -> pa.Table:
    """A row for each cell and head with points: how many, and their mean activation.

    ``places[doc, head, axis]`` and ``shades[doc, head]`` are as the map draws them.
    """
    keys = _sorted_keys(places, shades)
    starts = _starts(keys >> _LOW)
    counts = np.diff(starts, append=len(keys))
    mean = np.add.reduceat(keys & 255, starts) // counts
    return _table(keys[starts], counts, "activation", mean.astype(np.uint8))


def counts_by_value(places: np.ndarray, codes: np.ndarray) -> pa.Table:
    """A row for each cell, head and value with points; ``codes[doc]`` are -1 for none of the values, 0 in the table."""
    keys = _sorted_keys(places, codes[:, None] + 1)
    starts = _starts(keys)
    return _table(keys[starts], np.diff(starts, append=len(keys)), "code", (keys[starts] & 255).astype(np.uint8))


def _sorted_keys(places: np.ndarray, low: np.ndarray) -> np.ndarray:
    x, y = (_spread(places[..., axis].astype(np.int64) >> _SHIFT) for axis in (0, 1))
    heads = np.arange(places.shape[1])
    return np.sort(((x | y << 1) << _HEAD | heads) << _LOW | low.astype(np.int64), axis=None)


def _spread(values: np.ndarray) -> np.ndarray:
    """Every bit at twice its place."""
    for shift, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
        values = (values | values << shift) & mask
    return values


def _starts(keys: np.ndarray) -> np.ndarray:
    return np.flatnonzero(np.diff(keys, prepend=-1))


def _table(keys: np.ndarray, counts: np.ndarray, name: str, values: np.ndarray) -> pa.Table:
    """Cells as steps from the one before, for they need two bytes at most where the map is dense."""
    steps = np.diff(keys >> _HEAD + _LOW, prepend=0)
    heads = keys >> _LOW & (1 << _HEAD) - 1
    return pa.table({"step": _narrow(steps), "head": _narrow(heads), "count": _narrow(counts), name: values})


def _narrow(values: np.ndarray) -> np.ndarray:
    return values.astype(np.min_scalar_type(int(values.max())))
