"""The heat map's cells on a canvas: a Streamlit component, its other half is heatmap.js."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import streamlit as st

from pages.shared.components.mount import TIP_CSS, component

_CSS = """
.hs-heat-map { font-family: var(--st-font, sans-serif); font-size: var(--hs-text); color: var(--st-text-color); }
.hs-heat-map:empty { min-height: 520px; }
.tools { display: flex; gap: 6px; align-items: center; margin-bottom: 6px; }
.note { flex: 1; font-size: var(--hs-note); line-height: 1.35;
  color: color-mix(in srgb, currentColor 78%, transparent); }
button { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer; }
.tool { min-width: 30px; height: 28px; padding: 0 9px; border: 1px solid var(--st-border-color);
  border-radius: 7px; font-size: var(--hs-note); font-weight: 600; }
.tool:hover:enabled { border-color: var(--st-primary-color); color: var(--st-primary-color); }
.tool:disabled { opacity: .45; cursor: default; }
.frame { position: relative; outline: none; border-radius: 6px; }
.frame:focus-visible, .tool:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 3px; }
.panel + .panel { margin-top: 20px; }
.head { display: flex; flex-wrap: wrap; gap: 2px 16px; justify-content: space-between; align-items: baseline;
  margin-bottom: 8px; }
.name { font-weight: 650; font-size: var(--hs-name); }
.legend { display: flex; gap: 8px; align-items: center; font-size: var(--hs-small);
  font-variant-numeric: tabular-nums; }
.scale { position: relative; width: 132px; height: 10px; border-radius: 3px; margin-top: 13px;
  box-shadow: 0 0 0 1px color-mix(in srgb, currentColor 22%, transparent); }
.scale i { position: absolute; left: calc(50% - .5px); top: -3px; width: 1px; height: 13px; background: currentColor; }
.scale .zero { position: absolute; left: 0; right: 0; bottom: 13px; text-align: center; line-height: 1;
  font-size: var(--hs-tick); }
.topics { position: relative; height: 44px; overflow: hidden; }
.topics.tall { height: 124px; }
.topic { position: absolute; bottom: 4px; top: 0; display: flex; align-items: flex-end; justify-content: center;
  text-align: center; font-size: var(--hs-label); line-height: 1.2; padding: 0 2px; }
.topic[hidden] { display: none; }
.topic span { display: -webkit-box; -webkit-line-clamp: 3; -webkit-box-orient: vertical; overflow: hidden;
  max-width: 100%; overflow-wrap: anywhere; hyphens: auto; }
.topic.upright { padding: 0; }
.topic.upright span { writing-mode: vertical-rl; transform: rotate(180deg); display: block; white-space: nowrap;
  text-overflow: ellipsis; max-height: 118px; line-height: 12px; font-size: var(--hs-tick); }
.body { position: relative; }
.rows { position: absolute; left: 0; top: 0; }
.row { position: absolute; right: 0; width: 100%; text-align: right; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.row.full { font-weight: 650; }
.group { position: absolute; left: 0; width: 15px; box-sizing: border-box; border: 1.5px solid currentColor;
  border-right: 0; border-radius: 4px 0 0 4px; opacity: .7; }
.group span { position: absolute; left: -1px; top: 50%; translate: 0 -50%; writing-mode: vertical-rl; rotate: 180deg;
  font-size: var(--hs-tick); line-height: 14px; white-space: nowrap; background: var(--st-background-color);
  padding: 3px 0; }
.row:hover, .topic:hover, .row.on, .topic.on { color: var(--st-primary-color); text-decoration: underline; }
.row.on, .topic.on { outline: 2px solid var(--st-primary-color); border-radius: 3px; }
canvas { display: block; cursor: crosshair; touch-action: pan-y; }
canvas.moving { cursor: grabbing; }
.tip { max-width: min(320px, 100%); padding: 8px 11px; }
.tip .first { font-weight: 650; }
.tip .value { font-weight: 650; font-variant-numeric: tabular-nums; font-size: var(--hs-name); }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
"""

STYLE = TIP_CSS + _CSS

_NEEDED = {"cell": ("panel", "row", "column"), "row": ("panel", "row"), "topic": ("block",)}

_mount = component(
    "heat_map",
    "dom.js",
    "heatmap.js",
    html='<div class="hs-heat-map"></div>',
    css=STYLE,
)


@dataclass(frozen=True)
class Panel:
    """One picture: ``values[row, column]``, coloured from ``-limit`` to ``limit``."""

    name: str
    values: np.ndarray
    limit: float


@dataclass(frozen=True)
class Sheet:
    """All that the browser gets, once for each ``version``; block ``b`` begins at column ``starts[b]``."""

    version: str
    label: str
    panels: Sequence[Panel]
    rows: Sequence[str]
    blocks: Sequence[str]
    starts: Sequence[int]
    titles: pa.Array | pa.ChunkedArray
    """``[column]``."""
    groups: Sequence[tuple[int, int]] = ()
    """The first and the last row of each key/value group, which is bracketed."""


@dataclass(frozen=True)
class Look:
    """Colours of the theme; ``scale`` is a list of ``[share, hexadecimal colour]``."""

    scale: list[list[Any]]
    ink: str
    ground: str
    accent: str


@dataclass(frozen=True)
class Pick:
    """What was clicked: a 'cell' (panel, row, column), a 'row' (panel, row) or a 'topic' (block)."""

    kind: str
    panel: int = 0
    row: int = 0
    column: int = 0
    block: int = 0


def canvas_heat_map(
    sheet: Sheet, look: Look, key: str, mark: dict[str, int] | None, on_pick: Callable[[], None]
) -> None:
    """Draws the sheet. ``mark`` (panel, row, column) is framed at first; clicks move the frame in the browser.

    Everything here is one message: it is sent again when anything in it changes, and by its hash alone when nothing
    does. So ``mark`` must stay the same for as long as the version does.
    """
    data: dict[str, Any] = {
        "version": sheet.version,
        "label": sheet.label,
        "rows": list(sheet.rows),
        "blocks": list(sheet.blocks),
        "groups": [list(group) for group in sheet.groups],
        "starts": [int(start) for start in sheet.starts],
        "columns": len(sheet.titles),
        "titles": pa.table({"title": sheet.titles}),
        "panels": [
            {"name": panel.name, "limit": panel.limit, "values": f"values {number}"}
            for number, panel in enumerate(sheet.panels)
        ],
        "colours": look.scale,
        "ink": look.ink,
        "ground": look.ground,
        "accent": look.accent,
        "mark": mark,
    }
    for number, panel in enumerate(sheet.panels):
        bits = np.ascontiguousarray(panel.values, dtype=np.float16).view(np.uint16).ravel()
        data[f"values {number}"] = pa.table({"value": bits})
    _mount(key=key, data=data, on_pick_change=on_pick)


def read_pick(key: str, sheet: Sheet) -> Pick | None:
    """What was clicked on this sheet; None for anything else: another version's click, a number out of range."""
    given = (st.session_state.get(key) or {}).get("pick")
    return checked_pick(given, sheet)


def checked_pick(given: Any, sheet: Sheet) -> Pick | None:
    """``given`` as the browser sent it, if this sheet has such a place."""
    if not isinstance(given, dict) or given.get("version") != sheet.version:
        return None
    sizes = {"panel": len(sheet.panels), "row": len(sheet.rows)}
    sizes |= {"column": len(sheet.titles), "block": len(sheet.blocks)}
    needed = _NEEDED.get(str(given.get("kind")))
    if needed is None:
        return None
    found = {name: given.get(name) for name in needed}
    if not all(type(value) is int and 0 <= value < sizes[name] for name, value in found.items()):
        return None
    return Pick(given["kind"], **found)  # type: ignore[arg-type]
