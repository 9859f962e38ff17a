"""The page that somebody asked for before the login, found again after it; its other half is asked_for.js."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

_mount = st.components.v2.component(
    "headscope_asked_for",
    html='<span class="asked-for"></span>',
    js=Path(__file__).with_suffix(".js").read_text(encoding="utf-8"),
)


def asked_for(before: bool) -> None:
    """``before`` the login the address is remembered in the browser's tab; after it the browser goes there, once."""
    _mount(key=f"asked for {before}", data={"before": before}, height=1)
