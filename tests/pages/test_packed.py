"""Streamlit's scripts and styles come packed and from memory; everything else comes from Streamlit."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
import streamlit
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from pages.shared.server.guard import Guard
from pages.shared.server.headers import HEADERS

FRONT_END = Path(streamlit.__file__).parent / "static"
KINDS = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
FILES = [path for path in sorted((FRONT_END / "static").rglob("*")) if path.suffix in KINDS]
STREAMLIT_S = "from Streamlit"


@pytest.fixture
def client() -> TestClient:
    return TestClient(Guard(PlainTextResponse(STREAMLIT_S)), base_url="http://127.0.0.1")


def address(path: Path) -> str:
    return f"/{path.relative_to(FRONT_END).as_posix()}"


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_comes_packed_to_who_can_unpack_it(client: TestClient, kind: str) -> None:
    path = max((file for file in FILES if file.suffix == kind), key=lambda file: file.stat().st_size)
    content = path.read_bytes()
    for accepted, length in (("gzip, br", len(gzip.compress(content))), ("identity", len(content))):
        found = client.get(address(path), headers={"accept-encoding": accepted})
        assert found.content == content  # the client has unpacked it
        assert found.headers["content-length"] == str(length)
        assert found.headers["content-type"] == KINDS[kind]
        assert found.headers["vary"] == "Accept-Encoding"  # for a proxy that keeps it
        assert "immutable" in found.headers["cache-control"]
        assert found.headers.items() >= {name.lower(): value for name, value in HEADERS.items()}.items()


def test_what_a_browser_keeps_for_good_has_a_digest_in_its_name() -> None:
    assert len(FILES) > 100
    assert all(re.search(r"\.[\w-]{8}\.(js|css)$", path.name) for path in FILES)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/index.html",
        "/manifest.json",
        "/static/js/nothing.js",
        "/static/js/%2e%2e/%2e%2e/index.html",
        "/static/js",
    ],
)
def test_other_addresses_are_streamlit_s(client: TestClient, path: str) -> None:
    assert client.get(path).text == STREAMLIT_S


def test_only_reading_is_answered_here(client: TestClient) -> None:
    for method in ("HEAD", "POST"):
        assert client.request(method, address(FILES[0])).headers["content-length"] == str(len(STREAMLIT_S))
