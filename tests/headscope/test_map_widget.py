"""The map as a widget, seen from Python: what it checks, what it sends, and what is shown without it."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import Mistake
from headscope import open_run
from headscope.opened import OpenedRun
from pages.shared.theme import head_colours
from tests.pages.test_page_head_map import LEFT_HALF, write_mapped


@pytest.fixture
def mapped(tmp_path: Path) -> OpenedRun:
    write_mapped(tmp_path)
    return open_run("mapped", cache=tmp_path)


@pytest.fixture
def shown(mapped: OpenedRun) -> Any:
    return mapped.map(stage=1)


def test_an_area_is_documents_of_the_heads_that_are_shown(shown: Any) -> None:
    seen: list[list[int]] = []
    shown.observe(lambda change: seen.append(change["new"]), "selected")
    shown._picked = {"area": LEFT_HALF, "heads": None}
    assert shown.selected == list(range(20))  # heads 1 and 3 of every document lie there
    shown._picked = {"area": LEFT_HALF, "heads": "2,4"}
    assert (shown.heads, shown.selected) == ([2, 4], [])
    shown._picked = {"area": None, "doc": 3, "heads": "2,4"}
    assert shown.selected == [2]
    assert shown.selected_documents["doc"].tolist() == [2]
    assert seen == [list(range(20)), [], [2]]
    shown.stage = 2  # another map: what was selected on the first one is not on this
    assert shown.selected == []


def test_what_comes_from_the_browser_is_not_sent_back(shown: Any) -> None:
    before = shown._message
    shown._view = {"heads": "1-3", "colour": "topic"}
    assert (shown.heads, shown.colour) == ([1, 2, 3], "topic")
    assert shown._message is before
    shown.heads = [4]
    assert shown._message["given"] == {"heads": "4", "colour": "topic"}
    assert shown._message["turn"] == before["turn"] + 1
    x = np.frombuffer(shown._message["points"]["x"]["data"], shown._message["points"]["x"]["type"])
    assert x.shape == (4 * 20,)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("heads", [5], r"Head 5 does not exist \(this model has heads 1–4\)"),
        ("colour", "rank", r"There is no colouring 'rank'\. There are: head, group, activation, topic\."),
        ("stage", 4, r"Stage 4 is not"),
    ],
)
def test_what_does_not_exist_is_refused(shown: Any, name: str, value: object, said: str) -> None:
    with pytest.raises(Mistake, match=said):
        setattr(shown, name, value)


def test_a_picture_stands_for_it_where_no_widget_is_drawn(shown: Any) -> None:
    data, _ = shown._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    root = ET.fromstring(data["image/svg+xml"])
    dots = list(root.iter("{http://www.w3.org/2000/svg}circle"))
    assert len(dots) == 4 * 20
    assert sorted(Counter(dot.attrib["fill"].lower() for dot in dots).items()) == sorted(
        (colour, 20) for colour in head_colours(4, 2, "light")
    )


def test_without_anywidget_the_remedy_is_said(mapped: OpenedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "headscope.map_widget", raising=False)
    with pytest.raises(Mistake, match=r"needs the package anywidget\. Run 'pip install anywidget'"):
        mapped.map()
