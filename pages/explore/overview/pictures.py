"""The small pictures of the Overview's findings, as HTML: a headline's picture in, a string out."""

from __future__ import annotations

from core.analysis.headlines import Depth, DotsOnBand, HeadlineBar, Marks, Picture
from core.analysis.wording import percent
from pages.shared.text import safe
from pages.shared.theme import GROUND, INK, MUTED, QUIET, SERIES

STYLE = """
<style>
.hs-picture { position: relative; font-size: .76rem; line-height: 1.25; font-variant-numeric: tabular-nums; }
.hs-picture i, .hs-picture b { position: absolute; display: block; font-style: normal; font-weight: 400; }
.hs-line { display: grid; grid-template-columns: 6.6rem 1fr 2.7rem; gap: .4rem; align-items: center; height: 1.2rem; }
.hs-line > span:first-child { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.hs-line > span:last-child { text-align: right; }
.hs-track { position: relative; height: .62rem; border-radius: 2px;
  background: color-mix(in srgb, currentColor 9%, transparent); }
.hs-marks { display: grid; gap: 2px; align-items: center; }
.hs-marks u { display: block; height: .8rem; border-radius: 2px; text-decoration: none;
  background: color-mix(in srgb, currentColor 9%, transparent); }
</style>
"""


def picture(drawn: Picture, alt: str, theme: str) -> str:
    """Any of them; ``alt`` is what it shows in words."""
    if isinstance(drawn, DotsOnBand):
        inner = _dots(drawn, theme)
    elif isinstance(drawn, Marks):
        inner = _marks(drawn, theme)
    elif isinstance(drawn, Depth):
        inner = _depth(drawn, theme)
    else:
        inner = "".join(_bar(bar, theme) for bar in drawn)
    return f'<div class="hs-picture" role="img" aria-label="{safe(alt)}">{inner}</div>'


def _dots(drawn: DotsOnBand, theme: str) -> str:
    """Values go from left to right; those beyond the band are filled and have their head's number above them."""
    most = max(*drawn.values.values(), drawn.most, drawn.full or 0) * 1.04 or 1.0

    def at(value: float) -> str:
        return f"{100 * max(0.0, value) / most:.1f}%"

    parts = [
        f'<i style="left:{at(low)};width:{at(high - low)};top:1.3rem;height:1.5rem;background:{QUIET[theme]};'
        f'opacity:{opacity}"></i>'
        for low, high, opacity in ((drawn.least, drawn.most, 0.16), (drawn.low, drawn.high, 0.3))
    ]
    for head, value in drawn.values.items():
        beyond = head in drawn.beyond
        colour = SERIES[theme][1 if beyond else 0]
        fill = colour if beyond else GROUND[theme]
        parts.append(
            f'<i style="left:calc({at(value)} - .3rem);top:1.75rem;width:.6rem;height:.6rem;border-radius:50%;'
            f'background:{fill};border:1.5px solid {colour};box-sizing:border-box"></i>'
        )
        if beyond:
            parts.append(f'<b style="left:calc({at(value)} - 1rem);width:2rem;top:.2rem;text-align:center">{head}</b>')
    if drawn.full is not None:
        line = f"left:{at(drawn.full)};top:1rem;height:2.1rem;border-left:2px dashed {SERIES[theme][2]}"
        parts.append(f'<i style="{line}"></i>')
        parts.append(
            f'<b style="right:max(0px, calc(100% - {at(drawn.full)} - 1.6rem));top:3.2rem;white-space:nowrap;'
            f'color:{INK[theme]}">all heads {percent(drawn.full)}</b>'
        )
    parts.append(
        f'<b style="left:{at(drawn.least)};top:3.2rem;white-space:nowrap;color:{MUTED[theme]}">random slices</b>'
    )
    return f'<div style="position:relative;height:4.5rem">{"".join(parts)}</div>'


def _bar(bar: HeadlineBar, theme: str) -> str:
    colour = SERIES[theme][1] if bar.strong else QUIET[theme]
    whisker = ""
    if bar.low is not None and bar.high is not None:
        low = max(0.0, bar.low)
        whisker = (
            f'<i style="left:{100 * low:.1f}%;width:{100 * (bar.high - low):.1f}%;top:.26rem;'
            f'height:2px;background:{INK[theme]}"></i>'
        )
    return (
        f'<div class="hs-line"><span>{safe(bar.label)}</span><span class="hs-track">'
        f'<i style="left:0;width:{100 * min(1.0, max(0.0, bar.value)):.1f}%;top:0;bottom:0;background:{colour};'
        f'border-radius:2px"></i>{whisker}</span><span>{safe(bar.text)}</span></div>'
    )


def _marks(drawn: Marks, theme: str) -> str:
    """A line for each aspect, a cell for each head; heads are numbered where something is marked."""
    columns = f"grid-template-columns: 4.6rem repeat({drawn.columns}, minmax(2px, 1fr))"
    lines = []
    for name, heads in drawn.rows.items():
        cells = "".join(
            f'<u style="background:{SERIES[theme][1]}"></u>' if head in heads else "<u></u>"
            for head in range(1, drawn.columns + 1)
        )
        short = f'<span style="overflow:hidden;text-overflow:ellipsis;white-space:nowrap">{safe(name)}</span>'
        lines.append(f'<div class="hs-marks" style="{columns};height:1.15rem">{short}{cells}</div>')
    some = {head for heads in drawn.rows.values() for head in heads} if drawn.columns <= 16 else set()
    numbers = "".join(
        f'<span style="text-align:center">{head if head in some else ""}</span>' for head in range(1, drawn.columns + 1)
    )
    return "".join(lines) + f'<div class="hs-marks" style="{columns}"><span>head</span>{numbers}</div>'


def _depth(drawn: Depth, theme: str) -> str:
    """A bar for each layer, and a line at what random slices stay below."""
    most = max(*drawn.values, *drawn.bounds) or 1.0
    width, parts = 100 / len(drawn.values), []
    for at, (value, bound) in enumerate(zip(drawn.values, drawn.bounds, strict=True)):
        left = at * width
        colour = SERIES[theme][1] if value > bound else QUIET[theme]
        parts.append(
            f'<i style="left:{left + 0.12 * width:.2f}%;width:{0.76 * width:.2f}%;bottom:1.1rem;'
            f'height:{2.9 * value / most:.2f}rem;background:{colour};border-radius:2px 2px 0 0"></i>'
            f'<i style="left:{left:.2f}%;width:{width:.2f}%;bottom:{1.1 + 2.9 * bound / most:.2f}rem;height:2px;'
            f'background:{INK[theme]};opacity:.75"></i>'
        )
    ends = (
        f'<b style="left:0;bottom:0">layer 1</b><b style="right:0;bottom:0">layer {len(drawn.values)}</b>'
        f'<b style="left:0;right:0;bottom:0;text-align:center;color:{MUTED[theme]}">— 95 % of random slices below</b>'
    )
    return f'<div style="position:relative;height:4.3rem">{"".join(parts)}{ends}</div>'
