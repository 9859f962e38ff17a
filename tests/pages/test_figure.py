"""Plotly's figures: what the browser tells of them is checked, and the part of Plotly that is served can draw them."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
import streamlit as st
from starlette.applications import Starlette
from starlette.testclient import TestClient

from pages.shared.components.figure import area, picked
from pages.shared.plotly import ADDRESS, FILES
from pages.shared.server.lifespan import ROUTES

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [path.read_text(encoding="utf-8") for room in ("pages", "headscope") for path in (ROOT / room).rglob("*.py")]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    state: dict[str, object] = {}
    monkeypatch.setattr(st, "session_state", state)
    return state


@pytest.mark.parametrize(
    ("given", "corners"),
    [
        ({"area": {"x": [1, 2.5], "y": [3, 4]}}, ([1.0, 2.5], [3.0, 4.0])),
        ({"area": {"x": [], "y": []}}, ([], [])),
        ({"area": {"x": [1, 2], "y": [3]}}, ([], [])),
        ({"area": {"x": ["1", 2], "y": [3, 4]}}, ([], [])),
        ({"area": {"x": [True, 2], "y": [3, 4]}}, ([], [])),
        ({"area": {"x": [10**400, 2], "y": [3, 4]}}, ([], [])),
        ({"area": {"x": [float("nan"), 2], "y": [3, 4]}}, ([], [])),
        ({"area": {"x": 1, "y": None}}, ([], [])),
        ({"area": "all"}, ([], [])),
        ({"area": None}, ([], [])),
        (None, ([], [])),
    ],
)
def test_an_area_is_numbers_or_none(told: dict[str, object], given: object, corners: object) -> None:
    told["map"] = given
    assert area("map") == corners


@pytest.mark.parametrize(
    ("given", "data"),
    [
        ({"picked": {"data": [3, "within"], "at": 1}}, [3, "within"]),
        ({"picked": {"data": None, "at": 1}}, []),
        ({"picked": {"data": "33", "at": 1}}, []),
        ({"picked": [3]}, []),
        ({}, []),
        (None, []),
    ],
)
def test_a_picked_point_is_its_custom_data(told: dict[str, object], given: object, data: object) -> None:
    told["two aspects"] = given
    assert picked("two aspects") == data


def test_no_page_brings_the_whole_of_plotly() -> None:
    assert len(SOURCES) > 100
    assert not [text for text in SOURCES if "st.plotly_chart(" in text]


def test_every_kind_of_trace_that_a_page_draws_is_in_what_is_served() -> None:
    scripts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "frontend/plotly/src").glob("*.js"))]
    served = {kind for script in scripts for kind in re.findall(r"plotly\.js/lib/(\w+)", script)} | {"scatter"}
    drawn = {kind.lower() for text in SOURCES for kind in re.findall(r"\bgo\.([A-Z]\w+)\(", text)} - {"figure"}
    assert {"bar", "heatmap", "scattergl"} <= drawn <= served


def test_the_scripts_are_kept_for_good_and_there_are_no_others() -> None:
    with TestClient(Starlette(routes=[route for route in ROUTES if "plotly" in route.path])) as client:
        found = client.get(f"/{ADDRESS}plotly.js")
        assert found.headers["content-type"].startswith("text/javascript")
        assert "immutable" in found.headers["cache-control"]
        common = FILES["common.js"].read_bytes()
        for accepted, length in (("gzip", len(gzip.compress(common))), ("identity", len(common))):
            found = client.get(f"/{ADDRESS}common.js", headers={"accept-encoding": accepted})
            assert found.content == common  # the client has unpacked it
            assert (found.headers.get("content-encoding", "identity"), found.headers["content-length"]) == (
                accepted,
                str(length),
            )
        for other in ("__init__.py", "LICENSES.txt", "..%2f__init__.py", "nothing.js"):
            assert client.get(f"/{ADDRESS}{other}").status_code == 404
