"""Streamlit's files as they go to the browser: the same bytes as Streamlit's own server gives, and named in time."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient
from streamlit import config, file_util
from streamlit.web.server.starlette.starlette_static_routes import create_streamlit_static_assets_routes

from pages.shared import assets
from pages.shared.assets import Assets, needed_soon

FOLDER = Path(file_util.get_static_dir())
KINDS = ("static/js/index.*.js", "static/css/index.*.css", "static/media/MaterialSymbols-Rounded.*.woff2")


def clients(base: str = "") -> tuple[TestClient, TestClient]:
    """Streamlit's own way to serve its files, with our layer before it, and without."""
    return tuple(  # type: ignore[return-value]
        TestClient(Starlette(routes=create_streamlit_static_assets_routes(base), middleware=layers))
        for layers in ([Middleware(Assets)], [])
    )


@pytest.fixture
def base(request: pytest.FixtureRequest) -> Iterator[str]:
    before = config.get_option("server.baseUrlPath")
    config.set_option("server.baseUrlPath", request.param)
    yield str(request.param)
    config.set_option("server.baseUrlPath", before)


@pytest.mark.parametrize("base", ["", "team/heads"], indirect=True)
@pytest.mark.parametrize("pattern", KINDS)
def test_a_file_is_the_one_that_streamlit_serves(base: str, pattern: str) -> None:
    path = (
        "/".join(["", *base.split("/")] if base else [""])
        + "/"
        + next(FOLDER.glob(pattern)).relative_to(FOLDER).as_posix()
    )
    ours, streamlits = (client.get(path) for client in clients(base))
    assert ours.status_code == streamlits.status_code == 200
    assert ours.content == streamlits.content
    assert ours.headers["cache-control"] == streamlits.headers["cache-control"]
    assert ours.headers["content-type"].split(";")[0] == streamlits.headers["content-type"].split(";")[0]
    assert "etag" not in ours.headers, "or it was Streamlit that has answered"


def test_text_is_packed_for_those_who_take_it_so() -> None:
    path = "/" + next(FOLDER.glob(KINDS[0])).relative_to(FOLDER).as_posix()
    ours, _ = clients()
    with ours.stream("GET", path, headers={"Accept-Encoding": "gzip"}) as answer:
        raw = b"".join(answer.iter_raw())
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["vary"] == "Accept-Encoding"
    plain = ours.get(path, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert gzip.decompress(raw) == plain.content
    assert len(raw) < len(plain.content) / 2


@pytest.mark.parametrize("path", ["/static/js/none.js", "/static/../index.html", "/static/js/..%2f..%2findex.html"])
def test_a_name_that_is_no_file_is_left_to_streamlit(path: str) -> None:
    ours, streamlits = (client.get(path) for client in clients())
    assert (ours.status_code, ours.content) == (streamlits.status_code, streamlits.content)


def test_a_part_of_a_file_is_left_to_streamlit() -> None:
    path = "/" + next(FOLDER.glob(KINDS[2])).relative_to(FOLDER).as_posix()
    ours, _ = clients()
    assert ours.get(path, headers={"Range": "bytes=0-9"}).status_code == 206


@pytest.mark.parametrize("base", ["", "team/heads"], indirect=True)
def test_a_page_names_scripts_that_are_there(base: str) -> None:
    ours, _ = clients(base)
    start = f"/{base}" if base else ""
    answer = ours.get(f"{start}/head_map")
    assert "<!DOCTYPE html>" in answer.text
    named = re.findall(r"<([^>]+)>; rel=modulepreload; crossorigin", answer.headers["link"])
    assert any("/BidiComponent." in name for name in named), "every page has one: the sidebar's Copy link"
    assert len(named) == len(set(named)) > 10
    assert not [name for name in named if name.rsplit("/", 1)[-1] in answer.text], "those the page names itself"
    for name in named:
        found = ours.get(name)
        assert found.headers["content-type"].startswith("text/javascript"), name
    assert "link" not in ours.get(named[0]).headers


def test_all_that_a_script_imports_is_named_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """a → b, c; b → c, known; ``known`` stands in the page, and d is not there."""
    scripts = tmp_path / "static" / "js"
    scripts.mkdir(parents=True)
    (tmp_path / "index.html").write_text('<script src="./static/js/known.1.js"></script>')
    texts = {
        "A.1.js": 'import{x as y}from"./b.2.js";import"./c.3.js";let z=()=>import("./later.4.js");',
        "b.2.js": 'import {q} from "./c.3.js"; import r from "./known.1.js"; import s from "./d.9.js";',
        "c.3.js": "",
        "known.1.js": 'import"./later.4.js"',
        "later.4.js": "",
    }
    for name, text in texts.items():
        (scripts / name).write_text(text)
    monkeypatch.setattr(assets, "_ON_EVERY_PAGE", ("A",))
    assert needed_soon(tmp_path) == ["A.1.js", "b.2.js", "c.3.js"]
    assert needed_soon(tmp_path / "none") == []
