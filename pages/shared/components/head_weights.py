"""A switch and a weight for every head, groups together: a Streamlit component, its other half is head_weights.js."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.shared.components.mount import component
from pages.shared.theme import ink_on

MOST_WEIGHT = 99.0
_CSS = """
.hs-head-weights { display: flex; flex-wrap: wrap; gap: 10px 18px; padding: 2px;
  font-family: var(--st-font, sans-serif); font-size: var(--hs-text); color: var(--st-text-color); }
.group { display: flex; flex-direction: column; gap: 4px; }
.heads { display: flex; flex-wrap: wrap; gap: 6px; }
.tile { display: flex; flex-direction: column; gap: 3px; width: 44px; }
button { font: inherit; cursor: pointer; border-radius: 7px; border: 1.5px solid var(--st-border-color);
  background: none; color: inherit; font-weight: 600; font-variant-numeric: tabular-nums; }
.chip { height: 30px; border-color: var(--own); }
.chip[aria-pressed="true"] { background: var(--own); color: var(--ink); }
.chip[aria-pressed="false"] { opacity: .8; text-decoration: line-through; border-style: dashed; }
.all { align-self: flex-start; padding: 1px 9px; font-size: var(--hs-small); }
.all[aria-pressed="true"] { border-color: var(--st-text-color); }
.all[aria-pressed="false"] { border-style: dashed; }
button:hover, .weight:hover { border-color: var(--st-primary-color); }
button:focus-visible, .weight:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 2px; }
.weight { font: inherit; font-size: var(--hs-small); width: 100%; box-sizing: border-box; height: 24px;
  text-align: center; color: inherit; background: none; border: 1px solid var(--st-border-color); border-radius: 6px;
  padding: 0; font-variant-numeric: tabular-nums; appearance: textfield; }
.weight::-webkit-inner-spin-button { appearance: none; margin: 0; }
.weight.off { opacity: .8; }
"""

_mount = component(
    "head_weights",
    "dom.js",
    "head_weights.js",
    html='<div class="hs-head-weights" role="group" aria-label="Heads: switches and weights"></div>',
    css=_CSS,
)


@dataclass(frozen=True)
class HeadTiles:
    """``groups`` of heads (from 0) that share a key/value head; ``colours`` and ``labels`` a head."""

    groups: Sequence[Sequence[int]]
    colours: Sequence[str]
    labels: Sequence[str]


def head_weights(key: str, tiles: HeadTiles, weights: Sequence[float], on_set: Callable[[list[float]], None]) -> None:
    """Draws the tiles; ``on_set`` gets all heads' weights, 0 for one that is off. It runs before the page does."""
    heads, seen = len(tiles.labels), f"{key}: settings that were seen"

    def was_set() -> None:
        given: Any = (st.session_state.get(key) or {}).get("set")
        found = checked_weights(given, heads)
        if found is not None:
            st.session_state[seen] = int(given["press"])
            on_set(found)

    data = {
        "groups": [list(group) for group in tiles.groups],
        "grouped": len(tiles.groups) < heads,
        "colours": list(tiles.colours),
        "inks": [ink_on(colour) for colour in tiles.colours],
        "labels": list(tiles.labels),
        "weights": [float(weight) for weight in weights],
        "press": st.session_state.get(seen, 0),
    }
    data["version"] = repr([data["groups"], data["colours"], data["labels"]])
    _mount(key=key, data=data, on_set_change=was_set)


def checked_weights(given: Any, heads: int) -> list[float] | None:
    """``given`` as the browser sent it, if it is a weight for every head."""
    if not isinstance(given, dict) or type(given.get("press")) is not int:
        return None
    weights = given.get("weights")
    if not isinstance(weights, list) or len(weights) != heads:
        return None
    for weight in weights:
        if type(weight) not in (int, float) or not math.isfinite(weight) or not 0 <= weight <= MOST_WEIGHT:
            return None
    return [round(float(weight), 2) for weight in weights]
