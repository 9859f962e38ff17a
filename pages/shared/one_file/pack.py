"""The file itself: data as one compressed block, scripts by their digests, and a policy that lets nothing else run."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pages.shared.components.heatmap import STYLE as HEAT_MAP_STYLE
from pages.shared.text import safe
from pages.shared.theme import CSS, STREAMLIT

_HERE = Path(__file__).parent
_COMPONENTS = _HERE.parent / "components"
_PARTS = ("page.js", "maps.js", "heat_map.js", "heads.js", "tables.js")
_ALIGNED = 8
_BUNDLE_END = re.compile(r"export\s*\{\s*(\w+) as default\s*\};?\s*\Z")


class Packed:
    """Arrays one after another, and a header that says where each lies."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def array(self, values: np.ndarray) -> dict[str, Any]:
        """What stands for the array in the header."""
        data = np.ascontiguousarray(values).tobytes()
        place = {"array": values.dtype.name, "at": self._size, "length": int(values.size)}
        padding = -len(data) % _ALIGNED
        self._parts += [data, bytes(padding)]
        self._size += len(data) + padding
        return place

    def block(self, header: dict[str, Any]) -> bytes:
        """The header's length, the header, the arrays; gzip, for browsers unpack that by themselves."""
        text = json.dumps(header, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        text += b" " * (-(4 + len(text)) % _ALIGNED)
        return gzip.compress(b"".join([struct.pack("<I", len(text)), text, *self._parts]), 9, mtime=0)


def page(title: str, packed: bytes) -> str:
    """The whole document."""
    scripts = [map_script(), _heat_map_script(), _page_script()]
    assert not any(re.search(r"</script|<!--", script, re.IGNORECASE) for script in scripts)
    digests = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    # Nothing may be asked of any server, and no text becomes a program.
    policy = (
        f"default-src 'none'; script-src {digests}; style-src 'unsafe-inline'; img-src data: blob:; "
        "form-action 'none'; base-uri 'none'"
    )
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="referrer" content="no-referrer">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{safe(title)}</title>",
            f"<style>{theme_variables()}{_read(_HERE / 'page.css')}</style></head>",
            '<body><div id="page"><p class="quiet">Opening …</p></div>',
            "<noscript><p>This page draws its data with JavaScript, which is switched off.</p></noscript>",
            f'<template id="map-style"><style>{map_style()}</style></template>',
            f'<template id="heat-map-style"><style>{CSS}{HEAT_MAP_STYLE}</style></template>',
            f'<script type="application/octet-stream" id="data">{base64.b64encode(packed).decode()}</script>',
            *(f'<script type="module">{script}</script>' for script in scripts),
            "</body></html>",
        ]
    )


def theme_variables(root: Callable[[str], str] = ':root[data-theme="{}"]'.format) -> str:
    """Streamlit's names for the theme's colours, which the components use; ``root`` selects what has the theme."""
    names = ("backgroundColor", "secondaryBackgroundColor", "textColor", "borderColor", "primaryColor", "linkColor")
    rules = [CSS]
    for theme in ("light", "dark"):
        dashed = {name: re.sub(r"([A-Z])", lambda found: f"-{found[1].lower()}", name) for name in names}
        said = "".join(f"--st-{dashed[name]}:{STREAMLIT[theme][name]};" for name in names)
        rules.append(f"{root(theme)}{{{said}color-scheme:{theme};}}")
    return "".join(rules) + f":root,:host{{--st-font:{STREAMLIT['font']};--st-button-radius:.5rem;}}"


def map_script() -> str:
    """The bundle of frontend/map as the app has it; its export becomes a part of the page."""
    bundle, count = _BUNDLE_END.subn(r"globalThis.headscopeParts={map:\1};", _read(_COMPONENTS / "map.js").strip())
    assert count == 1, "the bundle's export has another form"
    return bundle


def map_style() -> str:
    return CSS + _read(_COMPONENTS / "map.css")


def _heat_map_script() -> str:
    script = _read(_COMPONENTS / "dom.js") + _read(_COMPONENTS / "heatmap.js")
    assert script.count("export default function (component)") == 1, "the heat map's export has another form"
    script = script.replace("export default function (component)", "globalThis.headscopeParts.heatMap = (component) =>")
    return re.sub(r"^export (?=function )", "", script, flags=re.MULTILINE)


def _page_script() -> str:
    return "\n".join(_read(_HERE / part) for part in _PARTS) + "\nopen();"


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def finite(values: Sequence[Any]) -> list[Any]:
    """Numbers for JSON, six digits each; what is none is None."""
    return [_number(value) for value in values]


def _number(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}") if np.isfinite(value) else None
    return finite(value) if isinstance(value, list) else value
