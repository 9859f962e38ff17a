"""A figure to take away as PNG, or as SVG or PDF for a paper, with its caption; the other half is picture.js."""

from __future__ import annotations

import re

from core import VERSION
from pages.shared.components.mount import BUTTON_CSS, component

_CSS = """
section { width: 100%; }
.row { align-items: center; }
select { font: inherit; font-size: .93rem; color: inherit; background: var(--st-background-color); padding: .3rem .4rem;
  border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius, .5rem); min-height: 2.2rem; }
label, .problem { font-size: var(--hs-note); }
.caption { font-size: var(--hs-note); line-height: 1.4; max-height: 8.5em; overflow: auto; margin: .6rem 0 .5rem;
  max-width: 34rem; overflow-wrap: anywhere; }
.problem { margin: 0; color: var(--hs-positive); }
"""

_picture = component(
    "picture",
    "clipboard.js",
    "picture.js",
    html='<section><div class="row"><button type="button" data-format="png" disabled>PNG</button>'
    '<button type="button" data-format="svg" disabled>SVG</button>'
    '<button type="button" data-format="pdf" disabled>PDF</button>'
    '<label>SVG and PDF <select aria-label="Width of SVG and PDF">'
    '<option value="column">column width, 88 mm</option><option value="page">page width, 180 mm</option>'
    '</select></label></div><p class="problem" role="status"></p>'
    '<p class="caption" role="note" tabindex="0" aria-label="Caption"></p>'
    '<button type="button" class="copy" disabled>Copy caption</button></section>',
    css=BUTTON_CSS + _CSS,
)


def picture(figure: str, name: str, caption: str, by_address: bool, own: str | None = None) -> None:
    """Of the chart whose key is ``figure``, as a file called ``name``; ``own`` names one that a component draws.

    With ``by_address`` the browser ends the caption with the page's address.
    """
    _picture(
        key=f"picture of {figure}",
        data={
            # Streamlit names an element's class after its key, with dashes for what a class cannot have.
            "figure": re.sub(r"[^a-zA-Z0-9_-]", "-", figure.strip()),
            "name": name,
            "own": own,
            "caption": caption,
            "by_address": by_address,
            "creator": f"Headscope {VERSION}",
        },
    )
