"""Random and hostile addresses over all pages: no traceback, no hang, and no file opened that is not ours.

A fifth of them by default: ``make fuzz`` (``FUZZ=1``) takes all 1,000, and ``FUZZ=10`` more.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support import ROOT
from tests.support.apps import app_at
from tests.support.hostile import TEXTS

EXAMPLES = int(1_000 * float(os.environ.get("FUZZ", "0.2")))
PAGES = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "pages").glob("*/*/page.py"))]
NAMES = (
    *("run", "stage", "head", "doc", "beside", "beside_head", "view", "linked", "heads", "area", "colour", "camera"),
    *("layout", "words", "t", "size", "sort", "stages", "range", "panel", "block", "groups", "label", "mismatch"),
    *("measure", "split", "find", "layer", "type", "text", "token", "relation"),
    *("query", "way", "other", "mix", "task", "k", "pruned", "pair", "brush", "aspect.topic", "aspect.length"),
)
HOSTILE = (
    *(text[:400] for text in TEXTS),
    *("", "0", "-1", "1e9", "1" * 400, "٣", "²", "NaN", "None", "true", "0x10", "1,2,,", "1-", "4-1", "1-9999", "none"),
    *(
        "..",
        "../outside",
        "../../etc/passwd",
        "/etc/passwd",
        "link",
        "link/../hostile",
        "hostile/../../outside",
        "hostile\x00",
    ),
    *(
        "1_1.1_2.2",
        "1_" + "_".join(["1.1"] * 500),
        "3_0.0_9999.0_9999.9999",
        "0.5,0.5,9999",
        "-1,-1,0.2",
        "%00",
        "%2e%2e%2f",
    ),
)
OURS = st.sampled_from(("1", "2", "3", "4", "hostile", "gallery", "heads", "all", "cosine", "0,1", "1-3", "120"))
VALUES = st.one_of(
    st.sampled_from(HOSTILE),
    OURS,
    st.integers().map(str),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
)
QUERIES = st.dictionaries(
    st.one_of(st.sampled_from(NAMES), st.sampled_from(NAMES), st.text(st.characters(codec="ascii"), max_size=8)),
    VALUES,
    min_size=1,
    max_size=6,
).map(urlencode)
_opened: list[str] = []
_watching = False


def _note(event: str, given: tuple[object, ...]) -> None:
    if _watching and event == "open" and isinstance(given[0], (str, bytes)):
        _opened.append(os.fsdecode(given[0]))


sys.addaudithook(_note)  # cannot be taken away again: it notes only while this module's test is running


@pytest.fixture
def cache(hostile_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The hostile run, and beside the cache another one that a link in the cache leads to."""
    cache, outside = tmp_path / "cache", tmp_path / "outside"
    cache.mkdir()
    shutil.copytree(hostile_cache / "hostile", cache / "hostile")
    shutil.copytree(hostile_cache / "hostile", outside)
    (cache / "link").symlink_to(outside)
    monkeypatch.setenv("HEADSCOPE_CACHE", str(cache))
    global _watching
    _watching = True
    yield cache
    _watching = False


def test_no_address_brings_a_page_down_or_opens_what_is_not_ours(cache: Path) -> None:
    apps = {}
    for page in PAGES:
        apps[page] = app_at(page).run()
        assert not apps[page].exception
    turns = cycle(PAGES)
    assert any(Path(path).is_relative_to(cache) for path in _opened), "the pages did read the run"
    _opened.clear()

    @settings(max_examples=EXAMPLES, derandomize=True, database=None, deadline=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(QUERIES)
    def holds(query: str) -> None:
        page = next(turns)
        app = apps[page]
        for name in list(app.query_params):
            del app.query_params[name]
        for name, value in parse_qsl(query, keep_blank_values=True):
            app.query_params[name] = value
        app.run()  # ends with an exception of its own after two minutes
        assert not app.exception, (page, query)

    holds()
    assert len(PAGES) == 13
    ours = [
        cache,
        ROOT,
        Path(sys.prefix),
        Path(sys.base_prefix),
        Path("/proc"),
        Path("/sys"),
        Path("/dev"),
        Path("/usr"),
        Path.home() / ".streamlit" / "secrets.toml",  # where Streamlit looks for [auth]
    ]
    opened = [Path.cwd() / path for path in _opened]  # a relative one, too, leads somewhere
    others = {str(path) for path in opened if not any(path.is_relative_to(folder) for folder in ours)}
    resolved = {str(path.resolve()) for path in opened if path.is_relative_to(cache)}
    assert others == set()
    assert all(Path(path).is_relative_to(cache.resolve()) for path in resolved)
