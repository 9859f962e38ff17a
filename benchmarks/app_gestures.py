"""Where to point at: a lasso's corners and a heat map's cells on the screen, worked out from the files of the run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from playwright.sync_api import FloatRect, Locator, Page, Position

from benchmarks.app_run import HEADS
from core.runs.labels import labels_of
from core.runs.results import read_map, read_own_similarity, read_topics
from core.runs.run import Run

MARGIN, FRAME = 1.04, 1
"""The map's span over that of its points; the width of the frame around it in pixels."""
GAP, FULL_GAP = 3, 4
"""Pixels between the heat map's blocks, and under the full embedding's row."""


def draw_lasso(page: Page, run: Run, corners: list[tuple[float, float]]) -> None:
    """Draws around ``corners``, which are given in the coordinates of stage 1's map."""
    box = page.locator(".head-map .box")
    box.scroll_into_view_if_needed()
    page.wait_for_function("(box) => /[0-9]/.test(box.dataset.place ?? '')", arg=box.element_handle())
    left, top, right, bottom = (float(value) for value in (box.get_attribute("data-place") or "").split())
    table = read_map(run, 1)
    points = np.stack([table["x"].to_numpy(), table["y"].to_numpy()], axis=1)
    low, high = points.min(axis=0), points.max(axis=0)
    share = (np.array(corners) - (low + high) / 2) / ((high - low).max() * MARGIN) + 0.5
    corner = _place(box)
    on_screen = [
        (corner["x"] + FRAME + left + x * (right - left), corner["y"] + FRAME + bottom - y * (bottom - top))
        for x, y in share.tolist()
    ]
    page.mouse.move(*on_screen[0])
    page.mouse.down()
    for place in [*on_screen[1:], on_screen[0]]:
        page.mouse.move(*place, steps=40)
    page.mouse.up()


@dataclass(frozen=True)
class Columns:
    """``docs[column]``, in blocks by topic; ``starts[topic]`` is a block's first column."""

    docs: np.ndarray
    starts: np.ndarray


@cache
def sheet(run: Run) -> Columns:
    """The documents of all topics, in each the most similar one first."""
    names = read_topics(run).names
    labels = labels_of(run.documents(["topic"])["topic"].to_pylist(), names)
    full = read_own_similarity(run, 1, labels, len(names))[:, 0].astype(np.float32)
    return Columns(np.lexsort((-full, labels)), np.searchsorted(np.sort(labels), np.arange(len(names))))


def cell_spot(canvas: Locator, run: Run, row: int, column: int) -> Position:
    """The middle of a cell on the canvas, not zoomed."""
    size, columns = _place(canvas), sheet(run)
    wide = (size["width"] - GAP * (len(columns.starts) - 1)) / len(columns.docs)
    high = (size["height"] - FULL_GAP) / (1 + HEADS)
    block = int(np.searchsorted(columns.starts, column, side="right")) - 1
    return {"x": (column + 0.5) * wide + block * GAP, "y": (row + 0.5) * high + (FULL_GAP if row else 0)}


def _place(element: Locator) -> FloatRect:
    found = element.bounding_box()
    assert found is not None
    return found
