"""Colours: one hue for each key/value group with a shade for each of its heads, and a scheme for topics."""

from __future__ import annotations

import numpy as np

SHADES = 6
"""Steps of the activation scale, pale to full."""
_LIGHTNESS = {"light": (0.74, 0.44), "dark": (0.86, 0.58)}
_RAMP = {"light": (0.89, 0.40), "dark": (0.34, 0.88)}
# Okabe and Ito's colours, which stay apart for all common kinds of colour blindness; the order puts unlike ones first.
_TOPICS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C7A1E", "#6A4C93")
_SAFE_HUES = (250, 70, 165, 345, 30, 205, 110, 300)
_TIERS = {"light": (0.0, -0.14, 0.13, -0.22), "dark": (0.06, 0.2, 0.13, 0.0)}


def group_colours(groups: int, theme: str) -> list[str]:
    """One hue a group; where there are many, neighbours differ in lightness too."""
    light, dark = _LIGHTNESS[theme]
    number = np.arange(groups)
    middle = (light + dark) / 2 + (np.where(number % 2, -0.07, 0.07) if groups > 8 else np.zeros(groups))
    return _hex(middle, np.full(groups, 0.13), _hues(groups))


def head_colours(heads: int, groups: int, theme: str) -> list[str]:
    """One colour a head: the hue of its key/value group, from light to dark within the group."""
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
    found = []
    for number in range(topics):
        lightness, a, b = _to_oklab(_TOPICS[number % len(_TOPICS)])
        moved = np.clip(lightness + tiers[number // len(_TOPICS) % len(tiers)], 0.3, 0.93)
        found += _hex(np.array([moved]), np.array([np.hypot(a, b)]), np.array([np.arctan2(b, a)]))
    return found


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
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    r, g, b = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    long = np.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b)
    medium = np.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b)
    short = np.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b)
    return (
        float(0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short),
        float(1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short),
        float(0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short),
    )
