"""What a click on a picture brings, beside it: a panel to the right, or a sheet below on a narrow screen.

Its other half is beside.js. ``beside`` makes both places, ``asked`` is called when a gesture on it is received.
Then the panel is brought into view. It gets the focus after a key, and on a narrow screen; after a click the focus
stays in the picture. Closing gives it back to the picture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.shared.components.mount import component

_ASKED = "results that gestures have asked for"
GRID_BESIDE = 16
"""Heads that a grid may have for its result to be beside it: a wider one needs the whole page."""


def _stacked(where: str) -> str:
    """The result below the picture, for frames that ``where`` selects."""
    frame = f'[class*="st-key-hs-beside-"]{where}'
    return f"""
{frame} {{ flex-direction: column; }}
{frame} > :has(> [class*="st-key-hs-picture-"]), {frame} > :has(> [class*="st-key-hs-result-"]) {{
  flex: none; width: 100%; position: static; }}
{frame} [class*="st-key-hs-result-"] {{ max-height: none; }}
"""


_STYLE = """<style>
[class*="st-key-hs-beside-"] { align-items: flex-start; }
[class*="st-key-hs-beside-"] > :has(> [class*="st-key-hs-picture-"]) { flex: 1 1 0; min-width: 0; }
[class*="st-key-hs-beside-"] > :has(> [class*="st-key-hs-result-"]) { flex: 0 0 25rem; min-width: 0; position: sticky;
  top: 4rem; }
[class*="st-key-hs-result-"] { max-height: var(--beside-room, 40rem); overflow: hidden auto; scrollbar-width: thin;
  scroll-margin: 4.2rem 0 1rem; flex-wrap: nowrap; }
[class*="st-key-hs-result-"] > * { flex-shrink: 0; }
[class*="st-key-hs-result-"]:focus { outline: none; }
[class*="st-key-hs-result-"]:focus-visible { outline: 2px solid currentColor; outline-offset: -2px; }
[class*="st-key-hs-result-"] > .stElementContainer:first-child { position: sticky; top: 0; z-index: 5; height: 0;
  margin-bottom: -.5rem; }
[class*="st-key-hs-result-"] h3 { font-size: 1.25rem; padding: .2rem 2.4rem .2rem 0; }
"""
_STYLE += f"""@media (max-width: 1099px) {{ {_stacked("")} }}{_stacked('[class*="-below"]')}</style>"""
_ROOM = """<style>@media (min-width: 1100px) {
.st-key-hs-beside-NAME:not(:has([class*="st-key-hs-result-"])) { padding-right: calc(25rem + 2rem); }
}</style>"""
"""The panel's width and the gap before it."""
_CSS = """
.corner { position: relative; height: 0; }
.close { position: absolute; right: 0; top: 0; width: 2rem; height: 2rem; font: inherit; font-size: 1.1rem;
  line-height: 1; color: var(--st-text-color); background: var(--st-background-color); cursor: pointer;
  border: 1px solid var(--st-border-color); border-radius: 50%; }
.close:hover { border-color: var(--st-primary-color); color: var(--st-primary-color); }
.close:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 2px; }
"""

_mount = component(
    "beside",
    "beside.js",
    html='<div class="corner"><button class="close" type="button" aria-label="Close" title="Close">✕</button></div>',
    css=_CSS,
)


@dataclass(frozen=True)
class Beside:
    """The place of a picture, and the one beside it, which is only there while there is something to show."""

    name: str
    frame: DeltaGenerator
    picture: DeltaGenerator

    @contextmanager
    def result(self, label: str, on_close: Callable[[], None]) -> Iterator[None]:
        """The panel, named ``label`` for screen readers; ``on_close`` takes away what it shows."""
        with self.frame, st.container(key=f"hs-result-{self.name}", border=True, gap="small"):
            data = {"label": label, "name": self.name, "asked": st.session_state.get(_ASKED, {}).get(self.name, 0)}
            _mount(key=f"panel beside {self.name}", data=data, on_closed_change=on_close)
            yield


def beside(name: str, below: bool = False, is_open: bool = False) -> Beside:
    """Both places, by a ``name`` of small letters; the picture's never moves, so that what is drawn there stays.

    A picture that needs the page's whole width has its result ``below`` it on every screen. Where a result is to follow
    (``is_open``), its room is free from the start: the picture may be drawn before it arrives.
    """
    st.html(_STYLE + (_ROOM.replace("NAME", name) if is_open else ""))
    frame = st.container(horizontal=True, key=f"hs-beside-{name}{'-below' if below else ''}", gap="medium")
    return Beside(name, frame, frame.container(key=f"hs-picture-{name}", gap="small"))


def asked(name: str) -> None:
    """Called when a gesture on the picture has been received: its result comes into view."""
    counts = st.session_state.get(_ASKED, {})
    st.session_state[_ASKED] = {**counts, name: counts.get(name, 0) + 1}
