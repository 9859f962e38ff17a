"""A button that copies the link to what is shown; its other half is copy_link.js."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pages.shared.components.buttons import BUTTON_CSS

_copy_link = st.components.v2.component(
    "headscope_copy_link",
    html='<button type="button" aria-live="polite">Copy link to this view</button>',
    css=BUTTON_CSS,
    js=Path(__file__).with_suffix(".js").read_text(encoding="utf-8"),
)


def copy_link() -> None:
    """The address as the browser has it, heads and colours included, which the server may not know."""
    _copy_link(key="copy link")
