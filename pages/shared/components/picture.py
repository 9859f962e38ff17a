"""Buttons that save a Plotly figure as PNG or SVG; their other half is picture.js."""

from __future__ import annotations

import re

from pages.shared.components.mount import BUTTON_CSS, component

_picture = component(
    "picture",
    "picture.js",
    html='<div><button type="button" data-format="png" disabled>PNG</button>'
    '<button type="button" data-format="svg" disabled>SVG</button></div>',
    css=BUTTON_CSS,
)


def picture(figure: str, name: str) -> None:
    """Of the chart whose key is ``figure``, as a file called ``name``."""
    # Streamlit names an element's class after its key, with dashes for what a class cannot have.
    _picture(key=f"picture of {figure}", data={"figure": re.sub(r"[^a-zA-Z0-9_-]", "-", figure.strip()), "name": name})
