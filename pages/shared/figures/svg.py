"""A figure of points and lines as a picture in a page: the same Plotly figure, drawn without a script.

Only what the app's own figures of this kind have: scatter traces on one or several pairs of linear axes, or one
waterfall whose bars lie below each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from pages.shared.text import safe
from pages.shared.theme import LABEL_SIZE, TICK_SIZE, colour_at

WIDTH = 900
_TICKS = 6
_BAR = 18
"""Pixels that a waterfall's bar is high."""
_LINE = 15
"""Pixels from a title's line to the next."""
_ROOM = 0.06
"""Of the data's width, on either side of it where an axis has no range of its own."""


def as_svg(figure: go.Figure, alt: str, width: int = WIDTH) -> str:
    """The figure as an ``<svg>`` element that a browser shows without running or loading anything."""
    layout = figure.layout
    height, margin = int(layout.height), _margin(layout)
    inner = (width - margin["l"] - margin["r"], height - margin["t"] - margin["b"])
    parts = []
    for name in sorted({trace.xaxis or "x" for trace in figure.data}, key=lambda name: int(name[1:] or 1)):
        traces = [trace for trace in figure.data if (trace.xaxis or "x") == name]
        axes = _Axes.of(layout, name[1:], traces, inner, margin)
        draw = _waterfall if traces[0].type == "waterfall" else _trace
        parts += [*axes.ticks(), *(part for trace in traces for part in draw(trace, axes))]
    parts += [*_titles(layout, inner, margin), *_legend(figure, margin)]
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{safe(alt)}" '
        f'font-size="{TICK_SIZE}" fill="currentColor" style="max-width:100%">{"".join(parts)}</svg>'
    )


def _margin(layout: Any) -> dict[str, float]:
    own, usual = layout.margin, layout.template.layout.margin
    return {side: float(own[side] if own[side] is not None else usual[side]) for side in "lrtb"}


@dataclass(frozen=True)
class _Axes:
    """Where data lie in the picture: ``[from, to]`` of the data and of the picture, in both directions."""

    x: Any
    y: Any
    data: tuple[tuple[float, float], tuple[float, float]]
    place: tuple[tuple[float, float], tuple[float, float]]
    rows: tuple[tuple[float, str], ...]
    """Places and names on the left."""

    @classmethod
    def of(cls, layout: Any, number: str, traces: list[Any], inner: tuple[float, float], margin: Any) -> _Axes:
        x, y = layout[f"xaxis{number}"], layout[f"yaxis{number}"]
        domain = x.domain or (0, 1)
        left, right = (margin["l"] + share * inner[0] for share in domain)
        top, bottom = margin["t"], margin["t"] + inner[1]
        named = [str(name) for name in traces[0].y] if traces[0].type == "waterfall" else y.ticktext or ()
        rows = range(len(named)) if y.tickvals is None else y.tickvals
        down = (len(named) - 0.5, -0.5)  # a waterfall's bars, from the top
        ranges = [_range(x, traces, "x"), down if traces[0].type == "waterfall" else _range(y, traces, "y")]
        if y.scaleanchor:  # as wide as high in the data's own unit
            unit = max((ranges[0][1] - ranges[0][0]) / (right - left), (ranges[1][1] - ranges[1][0]) / (bottom - top))
            sizes = ((right - left) * unit / 2, (bottom - top) * unit / 2)
            middles = [(low + high) / 2 for low, high in ranges]
            ranges = [(middle - half, middle + half) for middle, half in zip(middles, sizes, strict=True)]
        found = tuple(zip(rows, named, strict=True))
        return cls(x, y, (ranges[0], ranges[1]), ((left, right), (bottom, top)), found)

    def at(self, x: Any, y: Any) -> np.ndarray:
        """``[point, 2]`` in the picture."""
        found = []
        for values, data, place in zip((x, y), self.data, self.place, strict=True):
            share = (np.asarray(values, dtype=float) - data[0]) / ((data[1] - data[0]) or 1)
            found.append(place[0] + share * (place[1] - place[0]))
        return np.round(np.stack(found, axis=-1), 1)

    def ticks(self) -> Iterator[str]:
        (left, right), (bottom, _) = self.place
        if self.x.visible is not False:
            for value in _tick_values(self.data[0]):
                x, said = self.at(value, self.data[1][0])[0], f"{value:g}".replace("-", "−")
                yield f'<text x="{x}" y="{bottom + 14}" text-anchor="middle">{said}</text>'
            if self.x.title.text:
                yield (
                    f'<text x="{(left + right) / 2}" y="{bottom + 34}" text-anchor="middle" '
                    f'font-size="{LABEL_SIZE}">{safe(self.x.title.text)}</text>'
                )
        if self.y.visible is not False:
            for value, text in self.rows:
                at = self.at(self.data[0][0], value)
                yield f'<text x="{left - 8}" y="{at[1] + 4}" text-anchor="end">{safe(str(text))}</text>'


def _range(axis: Any, traces: list[Any], name: str) -> tuple[float, float]:
    if axis.range is not None:
        return float(axis.range[0]), float(axis.range[1])
    values = np.concatenate([np.asarray(trace[name], dtype=float) for trace in traces])
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    room = _ROOM * ((high - low) or 1)
    if axis.rangemode == "tozero":
        return min(0.0, low), high + room
    return low - room, high + room


def _tick_values(ends: tuple[float, float]) -> np.ndarray:
    low, high = min(ends), max(ends)
    rough = (high - low) / _TICKS or 1.0
    size = 10 ** np.floor(np.log10(rough))
    step = size * next(times for times in (1, 2, 5, 10) if times * size >= rough)
    return np.round(np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step, 10)


def _trace(trace: Any, axes: _Axes) -> Iterator[str]:
    points = axes.at(trace.x, trace.y)
    fade = 1 if trace.opacity is None else trace.opacity
    if "lines" in (trace.mode or ""):
        known = np.isfinite(points).all(axis=1)
        steps = [f"{'L' if at and known[at - 1] else 'M'}{x} {y}" for at, (x, y) in enumerate(points) if known[at]]
        yield (
            f'<path d="{"".join(steps)}" fill="none" stroke="{safe(trace.line.color)}" '
            f'stroke-width="{trace.line.width or 2}" opacity="{fade}"/>'
        )
    if "markers" not in (trace.mode or ""):
        return
    marker = trace.marker
    fade = fade * (1 if marker.opacity is None else marker.opacity)
    colours = _colours(marker, len(points))
    if np.ndim(marker.size) == 0 and trace.text is None and len(points) > 100:
        dots: dict[str, list[str]] = {}
        for (x, y), colour in zip(points, colours, strict=True):
            dots.setdefault(colour, []).append(f"M{x} {y}h0")
        for colour, own in dots.items():
            yield (
                f'<path d="{"".join(own)}" stroke="{safe(colour)}" stroke-width="{marker.size}" '
                f'stroke-linecap="round" opacity="{fade}"/>'
            )
        return
    sizes = np.broadcast_to(np.asarray(marker.size, dtype=float), len(points))
    widths = np.broadcast_to(np.nan_to_num(np.asarray(marker.line.width, dtype=float)), len(points))
    texts = trace.text if "text" in trace.mode else [None] * len(points)
    for (x, y), size, width, colour, text in zip(points, sizes, widths, colours, texts, strict=True):
        if size > 0:
            yield (
                f'<circle cx="{x}" cy="{y}" r="{size / 2:g}" fill="{safe(colour)}" opacity="{fade}" '
                f'stroke="{safe(marker.line.color or colour)}" stroke-width="{width:g}"/>'
            )
        if text is not None:
            yield f'<text x="{x}" y="{y - 8}" text-anchor="middle">{safe(str(text))}</text>'


def _waterfall(trace: Any, axes: _Axes) -> Iterator[str]:
    """A bar from each sum to the next one, each with its text; absolute values and totals begin at 0."""
    total = 0.0
    for row, (kind, value, text) in enumerate(zip(trace.measure, trace.x, trace.text, strict=True)):
        start, total = (total, total + value) if kind == "relative" else (0.0, float(value))
        looks = trace.totals if kind != "relative" else trace.increasing if value >= 0 else trace.decreasing
        (left, y), (right, _) = axes.at([min(start, total), max(start, total)], [row, row])
        yield (
            f'<rect x="{left}" y="{y - _BAR / 2}" width="{right - left:.1f}" height="{_BAR}" '
            f'fill="{safe(looks.marker.color)}"/>'
        )
        below = total < start
        x, anchor = (left - 5, "end") if below else (right + 5, "start")
        yield f'<text x="{x:.1f}" y="{y + 4}" text-anchor="{anchor}">{safe(str(text))}</text>'


def _colours(marker: Any, count: int) -> list[str]:
    """One colour per point: the same for all, a list of them, or numbers on a scale."""
    if isinstance(marker.color, str):
        return [marker.color] * count
    if marker.colorscale is None:
        return list(marker.color)
    shares = (np.asarray(marker.color, dtype=float) - marker.cmin) / (marker.cmax - marker.cmin)
    known = {share: colour_at(share, marker.colorscale) for share in set(shares.tolist())}
    return [known[share] for share in shares.tolist()]


def _titles(layout: Any, inner: tuple[float, float], margin: dict[str, float]) -> Iterator[str]:
    for note in layout.annotations:
        if note.xref == "paper" and note.yref == "paper":
            lines = note.text.split("<br>")
            for above, line in zip(range(len(lines) - 1, -1, -1), lines, strict=True):
                yield (
                    f'<text x="{margin["l"] + note.x * inner[0]:.1f}" y="{margin["t"] - 8 - above * _LINE}" '
                    f'text-anchor="middle" font-size="{LABEL_SIZE}">{safe(line)}</text>'
                )


def _legend(figure: go.Figure, margin: dict[str, float]) -> Iterator[str]:
    left = margin["l"]
    if figure.layout.showlegend is False:
        return
    for trace in figure.data:
        if not trace.name:
            continue
        colour = trace.line.color if "lines" in trace.mode else trace.marker.color
        looks = f'fill="{safe(str(colour))}" opacity="{trace.opacity or 1}"'
        yield f'<rect x="{left}" y="6" width="14" height="8" {looks}/>'
        yield f'<text x="{left + 19}" y="14">{safe(trace.name)}</text>'
        left += 40 + 6.5 * len(trace.name)
