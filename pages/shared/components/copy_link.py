"""A button that copies the link to what is shown; its other half is copy_link.js.

With it, as it is on every page, comes history_steps.js, which keeps the browser's Back to steps that a reader took.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pages.shared.components.buttons import BUTTON_CSS

_FOLDER = Path(__file__).parent
_copy_link = st.components.v2.component(
    "headscope_copy_link",
    html='<button type="button" aria-live="polite" disabled>Copy link to this view</button>',
    css=BUTTON_CSS,
    js="\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in ("history_steps.js", "copy_link.js")),
)


def copy_link() -> None:
    """The address as the browser has it, heads and colours included, which the server may not know."""
    _copy_link(key="copy link")
