"""What the app's own components (Streamlit's v2) share: how their scripts are put together, and styles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from pages.shared.theme import CSS

_FOLDER = Path(__file__).parent
BUTTON_CSS = """
div { display: flex; flex-wrap: wrap; gap: .5rem; }
button { font: inherit; font-size: .93rem; color: inherit; background: none; cursor: pointer; padding: .3rem .75rem;
  border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius, .5rem); min-height: 2.2rem; }
button:hover { border-color: var(--st-primary-color); color: var(--st-primary-color); }
button:disabled { opacity: .45; cursor: default; }
button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 2px; }
"""
"""Buttons like Streamlit's own."""
TIP_CSS = """
.tip { position: absolute; z-index: 3; box-sizing: border-box; pointer-events: none; border-radius: 8px;
  background: var(--st-background-color); border: 1px solid var(--st-border-color); overflow-wrap: anywhere;
  box-shadow: 0 4px 16px var(--hs-shadow); font-size: var(--hs-note); line-height: 1.4; }
.tip[hidden] { display: none; }
"""


def component(name: str, *scripts: str, html: str = "", css: str = "", isolated: bool = True) -> Any:
    """A component whose module is these scripts, one after another; their files lie beside this one.

    One that is not ``isolated`` is a part of the page itself, where Plotly's own styles reach it.
    """
    text = "\n".join((_FOLDER / script).read_text(encoding="utf-8") for script in scripts)
    return st.components.v2.component(
        f"headscope_{name}", html=html or None, css=CSS + css if css else None, js=text, isolate_styles=isolated
    )
