"""The app without a browser."""

from __future__ import annotations

import functools
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import ROOT

if TYPE_CHECKING:
    from streamlit.testing.v1 import AppTest


@pytest.fixture(scope="session", autouse=True)
def _installed_once() -> None:
    """An AppTest looks through all installed packages for components: more work than most pages are, so once is enough.

    Nothing is installed while tests run; a server of the browser tests looks for itself.
    """
    if "streamlit" in sys.modules:  # or no test of this worker opens a page
        from streamlit.components.v2 import manifest_scanner

        manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)


def app_at(page: str, patience: float = 120) -> AppTest:
    """The app, about to show the page of that file."""
    from streamlit.testing.v1 import AppTest
    from streamlit.util import calc_hash

    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=patience)
    app._page_hash = calc_hash(Path(page).parent.name)  # before a first run AppTest would take the file's name for it
    return app


def page_at(cache: Path, page: str, monkeypatch: pytest.MonkeyPatch, patience: float = 60, **address: str) -> AppTest:
    """A page of the app on a cache, at an address, without a browser."""
    monkeypatch.setenv("HEADSCOPE_CACHE", str(cache))
    app = app_at(page, patience)
    for name, value in address.items():
        app.query_params[name] = value
    app.run()  # the page at once, as by a link: a run of the Overview before it would cost as much again
    assert not app.exception
    return app


@dataclass(frozen=True)
class Figure:
    """A Plotly figure as a page sends it to the browser."""

    spec: str
    alt: str | None

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.spec)
        return found


def figures_of(app: AppTest) -> list[Figure]:
    """From the top of the page to its end."""
    mounted = [one.proto for one in app.get("bidi_component") if one.proto.component_name == "headscope_figure"]
    sent = [json.loads(one.json) for one in mounted]
    return [Figure(one["spec"], one["alt"]) for one in sent]
