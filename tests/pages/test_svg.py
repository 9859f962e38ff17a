"""Plotly figures as pictures without a script."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import plotly.graph_objects as go

from core.model.shape import ModelShape
from pages.shared.figures.maps import stage_maps_figure
from pages.shared.figures.svg import as_svg
from pages.shared.figures.template import template


def picture(figure: go.Figure, width: int = 200) -> ET.Element:
    return ET.fromstring(as_svg(figure, "a picture", width))


def plain_figure(*traces: go.Scatter) -> go.Figure:
    """100 × 100 pixels for data from 0 to 10, from 50 to the right and from 20 down."""
    figure = go.Figure(list(traces))
    return figure.update_layout(
        template=template("light"),
        height=160,
        margin={"l": 50, "r": 50, "t": 20, "b": 40},
        xaxis={"range": [0, 10], "title": {"text": "an <axis>"}},
        yaxis={"range": [10, 0], "tickvals": [0, 10], "ticktext": ["first & last", "other"]},
    )


def test_points_are_where_the_data_say() -> None:
    dots = go.Scatter(x=[0, 10, 5], y=[0, 10, 2.5], mode="markers", marker={"size": [4, 6, 0], "color": "#123456"})
    found = [one.attrib for one in picture(plain_figure(dots)).iter("circle")]
    assert [(one["cx"], one["cy"], one["r"]) for one in found] == [("50.0", "20.0", "2"), ("150.0", "120.0", "3")]
    assert {one["fill"] for one in found} == {"#123456"}


def test_lines_are_broken_where_the_data_are() -> None:
    line = go.Scatter(x=[0, 10, np.nan, 0, 10], y=[0, 0, np.nan, 10, 10], mode="lines", line={"color": "#000000"})
    (path,) = picture(plain_figure(line)).iter("path")
    assert path.attrib["d"] == "M50.0 20.0L150.0 20.0M50.0 120.0L150.0 120.0"


def test_axes_have_their_texts_escaped_and_round_ticks() -> None:
    drawn = as_svg(
        plain_figure(go.Scatter(x=[1], y=[1], mode="markers", marker={"size": 1, "color": "#000000"})), "<b>", 200
    )
    texts = [one.text for one in ET.fromstring(drawn).iter("text")]
    assert {"0", "2", "4", "6", "8", "10", "an <axis>", "first & last", "other"} <= set(texts)
    assert "an &lt;axis&gt;" in drawn
    assert not re.search(r"<script|href|url\(", drawn)


def test_a_waterfalls_bars_begin_where_the_one_above_ends() -> None:
    bars = go.Waterfall(
        orientation="h",
        y=["start", "<up>", "down", "cosine"],
        x=[2, 5, -4, 3],
        measure=["absolute", "relative", "relative", "total"],
        text=["2", "+5", "−4", "3"],
        increasing={"marker": {"color": "#00aa00"}},
        decreasing={"marker": {"color": "#aa0000"}},
        totals={"marker": {"color": "#777777"}},
    )
    figure = plain_figure().add_trace(bars).update_layout(yaxis=None).update_layout(showlegend=False)
    found = picture(figure)  # ten pixels a unit from 50; four rows of 25 pixels from 20, bars of 18 in their middle
    rows = [
        (float(one.attrib["x"]), float(one.attrib["width"]), float(one.attrib["y"]), one.attrib["fill"])
        for one in found.iter("rect")
    ]
    assert rows == [
        (50, 20, 23.5, "#777777"),
        (70, 50, 48.5, "#00aa00"),
        (80, 40, 73.5, "#aa0000"),
        (50, 30, 98.5, "#777777"),
    ]
    texts = [one.text for one in found.iter("text")]
    assert texts[-4:] == ["2", "+5", "−4", "3"]
    assert {"start", "<up>", "down", "cosine"} < set(texts)


def test_every_small_map_has_its_points_and_heads_and_is_not_stretched() -> None:
    places = np.random.default_rng(0).uniform(0, 1, (50, 4, 2)) * [1, 3]
    own = places[0]
    shape = ModelShape(layers=1, heads=4, kv_heads=4, hidden=16, head_dim=4)
    found = picture(stage_maps_figure({1: places, 3: places}, shape, "light", {1: own, 3: own}, height=340), 900)
    circles = [(float(one.attrib["cx"]), float(one.attrib["cy"])) for one in found.iter("circle")]
    assert len(circles) == 2 * 4
    (x0, y0), (x1, y1) = circles[:2]
    unit = (x1 - x0) / (own[1, 0] - own[0, 0])
    assert abs((y0 - y1) / (own[1, 1] - own[0, 1]) - unit) < 0.02 * abs(unit)
    assert all(one.attrib["d"].count("h0") == 200 for one in found.iter("path"))
    titles = [one for one in found.iter("text") if one.text in ("Stage 1", "attention", "Stage 3", "output")]
    assert [one.text for one in titles] == ["Stage 1", "attention", "Stage 3", "output"]
    top, below = (float(one.attrib["y"]) for one in titles[:2])
    assert 0 < top < below < 44  # above the map
    assert titles[0].attrib["x"] == titles[1].attrib["x"] != titles[2].attrib["x"]
