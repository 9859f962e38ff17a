"""Every colour, size and font of the app, for Plotly, the components and Streamlit's own theme; nothing of Streamlit.

``.streamlit/config.toml`` must say what STREAMLIT says, and the components take CSS: tests compare them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

FONT = "'Inter', 'Segoe UI', 'Helvetica Neue', 'Noto Sans', sans-serif"
CODE_FONT = "'JetBrains Mono', 'DejaVu Sans Mono', monospace"
PAGE_SIZE = 15
CHART_SIZE, LABEL_SIZE, TICK_SIZE, SMALL_TICK_SIZE = 13, 12, 11, 10
"""Text in pixels: on a page, and in charts."""
CLEAR = "rgba(0,0,0,0)"
INK = {"light": "#10141D", "dark": "#E8E6E1"}
GROUND = {"light": "#FCFBF8", "dark": "#14171D"}
PANEL = {"light": "#F1EEE7", "dark": "#1F242D"}
BORDER = {"light": "#DDD8CC", "dark": "#343B47"}
FRAME = {"light": "#10141D", "dark": "#FFFFFF"}
"""Around the chosen row or cell of a chart."""
QUIET = {"light": "#8C8678", "dark": "#7D8694"}
MUTED = {"light": "#6B7280", "dark": "#9AA3B2"}
"""For baselines, and for text and marks that say "nothing clear"."""
GRID_LINE = {theme: f"{ink}1A" for theme, ink in INK.items()}
BAR = {"light": "#4C78C8", "dark": "#6C8FD6"}
POSITIVE, NEGATIVE = "#C2543F", "#4C78C8"
UNLABELLED = {"light": "#8d8a84", "dark": "#8b919c"}
WORD_SHADE = "#E69F00"
"""Okabe and Ito's orange: a word's attention is in its strength alone."""
# Blue low, red high, around a middle that is nearly the page's own ground: no value, no ink.
DIVERGING = {
    "light": [[0, "#2B5C9E"], [0.25, "#89AFD9"], [0.5, "#F4F1EA"], [0.75, "#E29A7B"], [1, "#B03A2E"]],
    "dark": [[0, "#6FA8F0"], [0.25, "#3B5F93"], [0.5, "#1F242D"], [0.75, "#9A4B3A"], [1, "#F2876B"]],
}
SEQUENTIAL = {
    "light": [[0, "#F4F1EA"], [0.35, "#A9C3E2"], [0.7, "#4C78C8"], [1, "#1D3A73"]],
    "dark": [[0, "#1F242D"], [0.35, "#2F4C7E"], [0.7, "#6F9BE8"], [1, "#D5E3FF"]],
}
# Distinguishable for most colour-blind readers (after Okabe and Ito), on either ground.
SERIES = {
    "light": ("#2B5C9E", "#C2543F", "#3A8C6E", "#8A6FB0", "#B58A1F", "#5F6B7A"),
    "dark": ("#7FB0F5", "#F2957B", "#6FCBA6", "#BFA5E6", "#E3BE5C", "#A7B0BD"),
}
ATTENTION_TYPES = {
    "light": {
        "subject–verb": "#0B6E76", "verb–object": "#2FA3A8", "modifier": "#93D3CE", "coreference": "#A82B73",
        "induction": "#D2690A", "duplicate token": "#F0B46B", "semantic similarity": "#E394BE",
        "previous token": "#2B5C9E", "next token": "#7FAEDB", "sink": "#5F6B7A", "delimiter": "#B58A1F",
        "rare token": "#8A6FB0", "local": "#3A8C6E", "long-range": "#C2543F", "broad": "#E0A58F", "mixed": "#E9E4D8",
    },
    "dark": {
        "subject–verb": "#35B4BC", "verb–object": "#1D7C83", "modifier": "#A5E3DF", "coreference": "#E868A7",
        "induction": "#FF9B45", "duplicate token": "#A5641F", "semantic similarity": "#8C3B69",
        "previous token": "#7FB0F5", "next token": "#3F6DB0", "sink": "#8B95A4", "delimiter": "#E3BE5C",
        "rare token": "#BFA5E6", "local": "#6FCBA6", "long-range": "#F2957B", "broad": "#9A5A48", "mixed": "#2A303B",
    },
}  # fmt: skip
ATTENTION_FAMILIES = {
    theme: {
        "positional": types["previous token"],
        "syntactic": types["verb–object"],
        "semantic": types["coreference"],
        "task": types["induction"],
        "none": types["mixed"],
    }
    for theme, types in ATTENTION_TYPES.items()
}
CSS_VARIABLES = {
    "shadow": "rgb(0 0 0 / .18)",
    "positive": POSITIVE,
    "negative": NEGATIVE,
    "name": "14px",
    "text": "13px",
    "note": "12.5px",
    "small": "12px",
    "label": "11.5px",
    "tick": "11px",
    "cell": "10.5px",
}
CSS = f":root, :host {{ {' '.join(f'--hs-{name}: {value};' for name, value in CSS_VARIABLES.items())} }}\n"
"""Goes before the style of every component; what changes with the theme comes from Streamlit as ``--st-…``."""
PAGE_STYLE = """<style>
[data-testid="stCaptionContainer"] code { color: inherit; }
[data-testid="stSidebarNavLink"]:focus-visible { outline: 2px solid currentColor; outline-offset: -2px; }
</style>"""
"""Streamlit's navigation shows the focus by a shade of its ground alone, and by none on the page that is open; code in
its captions is too pale to read."""
STREAMLIT: dict[str, Any] = {
    "baseRadius": "medium",
    "baseFontSize": PAGE_SIZE,
    "paddingTop": "1.5rem",
    "metricValueFontSize": "1.45rem",
    "metricValueFontWeight": 600,
    "headingFontWeights": [700, 650, 600],
    "font": FONT,
    "codeFont": CODE_FONT,
    **{
        theme: {
            "primaryColor": {"light": "#3B5BA9", "dark": "#8FB0FF"}[theme],
            "backgroundColor": GROUND[theme],
            "secondaryBackgroundColor": PANEL[theme],
            "textColor": INK[theme],
            "borderColor": BORDER[theme],
            "linkColor": {"light": "#2F4F9E", "dark": "#A4BFFF"}[theme],
            "sidebar": {
                "backgroundColor": {"light": "#F3F0E9", "dark": "#191D24"}[theme],
                "secondaryBackgroundColor": {"light": "#E7E2D7", "dark": "#252B35"}[theme],
            },
        }
        for theme in ("light", "dark")
    },
}

SHADES = 6
"""Steps of the activation scale, pale to full."""
_LIGHTNESS = {"light": (0.74, 0.44), "dark": (0.86, 0.58)}
_RAMP = {"light": (0.89, 0.40), "dark": (0.34, 0.88)}
# Okabe and Ito's colours, which stay apart for all common kinds of colour blindness; the order puts unlike ones first.
_TOPICS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C7A1E", "#6A4C93")
_SAFE_HUES = (250, 70, 165, 345, 30, 205, 110, 300)
_TIERS = {"light": (0.0, -0.14, 0.13, -0.22), "dark": (0.06, 0.2, 0.13, 0.0)}


def group_colours(groups: int, theme: str) -> list[str]:
    """One hue per group; where there are many, neighbours differ in lightness too."""
    light, dark = _LIGHTNESS[theme]
    number = np.arange(groups)
    middle = (light + dark) / 2 + (np.where(number % 2, -0.07, 0.07) if groups > 8 else np.zeros(groups))
    return _hex(middle, np.full(groups, 0.13), _hues(groups))


def head_colours(heads: int, groups: int, theme: str) -> list[str]:
    """One colour per head: the hue of its key/value group, from light to dark within the group."""
    size = heads // groups
    if size == 1:
        return group_colours(groups, theme)
    light, dark = _LIGHTNESS[theme]
    lightness = np.tile(np.linspace(light, dark, size), groups)
    return _hex(lightness, np.full(heads, 0.13), np.repeat(_hues(groups), size))


def activation_colours(groups: int, theme: str) -> list[str]:
    """``groups × SHADES`` colours, a group's pale one first: weak activations are near the ground, strong ones far."""
    weak, strong = _RAMP[theme]
    lightness = np.tile(np.linspace(weak, strong, SHADES), groups)
    chroma = np.tile(np.linspace(0.035, 0.15, SHADES), groups)
    return _hex(lightness, chroma, np.repeat(_hues(groups), SHADES))


def ramp_colours(theme: str) -> list[str]:
    """The activation scale without a hue, for the legend."""
    weak, strong = _RAMP[theme]
    return _hex(np.linspace(weak, strong, SHADES), np.zeros(SHADES), np.zeros(SHADES))


def topic_colours(topics: int, theme: str) -> list[str]:
    """Eight colour-blind-safe hues; the ninth topic and later ones repeat them darker and lighter."""
    tiers = _TIERS[theme]
    colours = []
    for number in range(topics):
        lightness, a, b = _to_oklab(_TOPICS[number % len(_TOPICS)])
        moved = np.clip(lightness + tiers[number // len(_TOPICS) % len(tiers)], 0.3, 0.93)
        colours += _hex(np.array([moved]), np.array([np.hypot(a, b)]), np.array([np.arctan2(b, a)]))
    return colours


def _hues(groups: int) -> np.ndarray:
    """Radians: up to eight groups have hues that colour-blind readers tell apart, more go evenly round the circle."""
    degrees = np.array(_SAFE_HUES[:groups]) if groups <= len(_SAFE_HUES) else 250 + 360 * np.arange(groups) / groups
    hues: np.ndarray = np.deg2rad(degrees)
    return hues


def _hex(lightness: np.ndarray, chroma: np.ndarray, hue: np.ndarray) -> list[str]:
    """OKLCH as ``#rrggbb``; a colour beyond the screen's is brought in by taking chroma away."""
    strength = chroma.copy()
    for _ in range(40):
        linear = _to_linear(lightness, strength * np.cos(hue), strength * np.sin(hue))
        outside = ((linear < -1e-4) | (linear > 1 + 1e-4)).any(axis=0)
        if not outside.any():
            break
        strength[outside] *= 0.93
    linear = np.clip(linear, 0, 1)
    channels = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return [f"#{r:02x}{g:02x}{b:02x}" for r, g, b in np.rint(channels * 255).astype(int).T]


def _to_linear(lightness: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """OKLab to linear red, green and blue (B. Ottosson's matrices)."""
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return np.stack(
        [
            4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
            -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
            -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
        ]
    )


def _to_oklab(colour: str) -> tuple[float, float, float]:
    r, g, b = _linear(_channels(colour))
    long = np.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b)
    medium = np.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b)
    short = np.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b)
    return (
        float(0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short),
        float(1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short),
        float(0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short),
    )


def colour_at(share: float, stops: Sequence[Sequence[Any]]) -> str:
    """The colour at ``share``, from 0 to 1, of a scale of ``[share, colour]``."""
    channels = np.array([_channels(str(colour)) for _, colour in stops])
    at = min(1.0, max(0.0, share))
    mixed = [np.interp(at, [float(place) for place, _ in stops], channels[:, number]) for number in range(3)]
    return "#" + "".join(f"{round(float(255 * value)):02X}" for value in mixed)


def ink_on(colour: str) -> str:
    """Black or white, whichever reads better on a colour: never less than WCAG's 4.5 : 1."""
    light = float(_linear(_channels(colour)) @ np.array([0.2126, 0.7152, 0.0722]))  # WCAG's relative luminance
    return "#000000" if (light + 0.05) ** 2 > 1.05 * 0.05 else "#FFFFFF"


def _channels(colour: str) -> np.ndarray:
    """``#rrggbb`` as three numbers from 0 to 1."""
    return np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255


def _linear(channels: np.ndarray) -> np.ndarray:
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
