"""What a figure's marks stand for, in words: every value where there are few, their range where there are many."""

from __future__ import annotations

import html
import re
from typing import Any

import numpy as np
import plotly.graph_objects as go

MOST_VALUES = 48
"""Of a caption; a figure with more has ranges."""
_FEW = 12
"""Values of one series that are listed."""


def numbers(figure: go.Figure) -> str:
    """``accuracy: heads stage 1 0.69 (0.65 to 0.73), …``, or an empty text where a figure's places are no values."""
    found: dict[tuple[str, str], list[str]] = {}  # by axis and series: what is said of each
    left = MOST_VALUES
    for trace in figure.data:
        if trace.visible in (False, "legendonly"):
            continue
        key = ("", plain_label(trace.name or ""))
        if trace.type == "heatmap":
            found.setdefault(key, []).append(_cells(trace))
        elif trace.type == "box":
            found.setdefault(key, []).append(_span(trace.y if trace.y is not None else trace.x))
        elif trace.type in ("scatter", "scattergl", "bar", "waterfall") and not _is_ground(trace):
            series = _Series(figure, trace)
            if not series.is_places:
                found.setdefault((series.what, series.name), []).append(series.told(min(_FEW, left)))
                left -= len(series.values)
    told, axis = [], ""
    for (what, name), parts in found.items():
        listed = ", ".join(dict.fromkeys(part for part in parts if part))
        if listed:
            title = f"{what}: " if what and what != axis else ""
            told.append(f"{title}{f'{name} – ' if name else ''}{listed}")
            axis = what
    return "; ".join(told)


class _Series:
    """The values of one trace, and what they are values of."""

    def __init__(self, figure: go.Figure, trace: Any) -> None:
        self.name = plain_label(trace.name or "")
        axes = {side: figure.layout[f"{side}axis{(trace[f'{side}axis'] or side)[1:]}"] for side in "xy"}
        self.is_places = all(axis.visible is False for axis in axes.values())
        self.side = self._value_side(trace, axes)
        other = "y" if self.side == "x" else "x"
        self.values = np.asarray(trace[self.side] if trace[self.side] is not None else (), dtype=float)
        self.labels = _labels(trace[other], axes[other], len(self.values))
        self.unit = plain_label(axes[self.side].ticksuffix or "")
        self.what = plain_label(axes[self.side].title.text or "")
        self.ends = self._ends(trace[f"error_{self.side}"]) if f"error_{self.side}" in trace else None

    def _value_side(self, trace: Any, axes: dict[str, Any]) -> str:
        if trace.type in ("bar", "waterfall"):
            return "x" if trace.orientation == "h" else "y"
        for side in "xy":
            if f"error_{side}" in trace and trace[f"error_{side}"].array is not None:
                return side
        named = axes["y"].ticktext is not None or axes["y"].type == "category" or _is_text(trace.y)
        return "x" if named else "y"

    def _ends(self, bars: Any) -> tuple[np.ndarray, np.ndarray] | None:
        if bars.array is None:
            return None
        below = bars.arrayminus if bars.arrayminus is not None else bars.array
        return self.values - np.asarray(below, dtype=float), self.values + np.asarray(bars.array, dtype=float)

    def told(self, most: int) -> str:
        """Every value where there are few and each has a label of its own; else the range under each label."""
        known = np.flatnonzero(np.isfinite(self.values)).tolist()
        if len(known) and np.ptp(self.values[known]) == 0 and self.ends is None:
            shared = {self.labels[at] for at in known}
            label = shared.pop() if len(shared) == 1 else ""
            return f"{label} {self._number(self.values[known[0]])}".strip()
        labels = dict.fromkeys(self.labels[at] for at in known)
        if len(known) <= most and len(labels) == len(known):
            return ", ".join(self._value(at) for at in known)
        if len(labels) <= _FEW and len(labels) < len(known):
            spans = {
                label: _span(self.values[[at for at in known if self.labels[at] == label]], self.unit)
                for label in labels
            }
            return ", ".join(f"{label} {span}".strip() for label, span in spans.items())
        return _span(self.values, self.unit)

    def _value(self, at: int) -> str:
        interval = ""
        if self.ends is not None and self.ends[1][at] > self.ends[0][at]:
            interval = f" ({_number(self.ends[0][at])} to {self._number(self.ends[1][at])})"
        return f"{self.labels[at]} {self._number(self.values[at])}{interval}".strip()

    def _number(self, value: float) -> str:
        return _number(value, self.unit)


def plain_label(text: str) -> str:
    """A label of Plotly's as it is read: without markup, entities as their letters, on one line."""
    bare = re.sub(r"<br\s*/?>|</?(?:b|i|sub|sup|span|a)\b[^>]*>", " ", str(text))
    return " ".join(html.unescape(bare).replace("\u200b", "").split())


def _is_ground(trace: Any) -> bool:
    """Bands, grids and lines that lie behind the values: nothing is said when one points at them."""
    return bool(trace.hoverinfo == "skip" and (trace.fill or "text" not in (trace.mode or "")))


def _labels(given: Any, axis: Any, count: int) -> list[str]:
    """What each mark is the value of: a category, or the axis's own words for its place."""
    if given is None:
        return [""] * count
    if _is_text(given):
        return [plain_label(value) for value in given]
    places = np.asarray(given, dtype=float)
    if axis.tickvals is not None and axis.ticktext is not None and not _is_text(axis.tickvals):
        ticks = np.asarray(axis.tickvals, dtype=float)
        words = [plain_label(text) for text in axis.ticktext]  # once: Plotly looks its properties up slowly
        nearest = np.abs(ticks[None, :] - places[:, None])
        named = np.isfinite(nearest).all(axis=1) & (nearest.min(axis=1, initial=1.0) < 0.5)
        return [words[at] if known else "" for at, known in zip(nearest.argmin(axis=1), named, strict=True)]
    return [f"{_number(place)}:" for place in places]


def _is_text(values: Any) -> bool:
    return values is not None and len(values) > 0 and any(isinstance(value, str) for value in values)


def _cells(trace: Any) -> str:
    cells = np.asarray(trace.z, dtype=float)
    span = _span(cells, plain_label(trace.colorbar.ticksuffix or ""), counted=False)
    return f"{cells.shape[0]:,} × {cells.shape[1]:,} cells {span}" if cells.size else ""


def _span(values: Any, unit: str = "", counted: bool = True) -> str:
    known = np.asarray(values if values is not None else (), dtype=float)
    known = known[np.isfinite(known)]
    if not known.size:
        return ""
    if known.size == 1:
        return _number(known[0], unit)
    of = f"{known.size:,} values " if counted else ""
    return f"{of}from {_number(known.min())} to {_number(known.max(), unit)}"


def _number(value: float, unit: str = "") -> str:
    """Three digits, with a real minus sign."""
    digits = f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    shown = (f"{float(digits):g}" if "e" not in digits else digits).replace("-", "−")
    return f"{shown} {unit}".rstrip()
