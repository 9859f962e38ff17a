"""Which scripts of Streamlit's front end a browser fetches early, and which late.

Streamlit asks for the script of a widget when the first one arrives, so each page would begin with three rounds of
requests. What draws the figures comes early too, but for Plotly itself: the page's own pictures are before it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import streamlit

FIGURES = Path(__file__).with_name("figures.js")
STATIC = Path(streamlit.__file__).parent / "static"
_PARTS = ("BidiComponent", "Button", "ButtonGroup", "Html", "PageLink", "Selectbox", "TextInput")
"""What nearly every page begins with, as Streamlit's build names it."""


def _manifest() -> dict[str, dict[str, Any]]:
    """Streamlit's list of its scripts by source; empty where this version has none, and nothing is early or late."""
    path = STATIC / "manifest.json"
    found: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found


def early_scripts() -> list[str]:
    """The files of ``_PARTS`` and of all that they import, without those that Streamlit's page itself names."""
    manifest = _manifest()
    page = (STATIC / "index.html").read_text(encoding="utf-8") if manifest else ""
    wanted = [source for source, script in manifest.items() if script.get("name") in _PARTS]
    found: dict[str, None] = {}
    while wanted:
        script = manifest[wanted.pop()]
        if script["file"] not in found and script["file"] not in page:
            found[script["file"]] = None
            wanted += script.get("imports", ())
    return list(found)


LINKS = "".join(
    f'<link rel="modulepreload" crossorigin href="./{file}">\n' for file in (*early_scripts(), FIGURES.name)
)
