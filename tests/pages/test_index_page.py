"""What is added to the page that Streamlit's front end is drawn into."""

from __future__ import annotations

import re
from pathlib import Path

import streamlit
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from pages.shared.server.front_end import LINKS
from pages.shared.server.index_page import ADDED, STYLE, asks_for_page, send_page

STATIC = Path(streamlit.__file__).parent / "static"
PAGE = '<head>é<script type="module" src="a.js"></script></head><script type="module"></script>'
WANTED = {"accept": "text/html,*/*;q=0.8", "accept-encoding": "gzip", "if-none-match": '"stored"'}


def asked(answer: Response) -> TestClient:
    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        assert asks_for_page(scope)
        names = {name for name, _ in scope["headers"]}
        assert not {b"accept-encoding", b"if-none-match"} & names  # the whole page, not packed
        await answer(scope, receive, send)

    async def outer(scope: Scope, receive: Receive, send: Send) -> None:
        await send_page(inner, scope, receive, send)

    return TestClient(outer)


def test_style_and_script_come_before_the_front_end_s_own() -> None:
    found = asked(HTMLResponse(PAGE, headers={"etag": '"stored"'})).get("/head_map", headers=WANTED)
    assert found.text == PAGE.replace("<script", f"{ADDED}<script", 1)
    assert found.headers["content-length"] == str(len(found.content))
    assert "etag" not in found.headers


def test_other_answers_go_through() -> None:
    for answer in (PlainTextResponse(PAGE), HTMLResponse(PAGE, 404)):
        assert asked(answer).get("/", headers=WANTED).text == PAGE


def test_streamlit_s_page_has_the_place_for_them_once() -> None:
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert page.count('<script type="module"') == 1


def test_early_scripts_are_streamlit_s_own_and_none_that_its_page_names_itself() -> None:
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    files = re.findall(r'href="\./([^"]+)"', LINKS)
    assert any("/BidiComponent." in file for file in files)
    assert not any("/PlotlyChart." in file for file in files)
    assert files.pop() == "figures.js"  # ours
    assert all((STATIC / file).is_file() and file not in page for file in files)


def test_no_style_looks_through_the_whole_page() -> None:
    """A browser asks :has() again for every text that Plotly measures: a third of a second of a page with figures."""
    assert STYLE.count(":has(") == 1  # of the upload field, which is small
    assert '[class*="st-key-files-"]:not(:has(' in STYLE
