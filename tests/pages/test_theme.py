"""The theme is the one place of colours, sizes and fonts; the settings and the components agree with it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from pages.shared import theme
from pages.shared.components import mount
from pages.shared.figures.template import error_bars, row_error_bars, template

ROOT = Path(__file__).resolve().parents[2]
COLOUR = re.compile(r"#(?:[0-9a-fA-F]{8}|[0-9a-fA-F]{6}|[0-9a-fA-F]{3,4})\b|\b(?:rgb|hsl)a?\(\s*[\d.]")
BUILT = {"map.js", "map.css", "map_feed.js"}


def sources() -> list[Path]:
    found = [path for room in ("pages", "frontend/map/src") for path in (ROOT / room).rglob("*")]
    return [
        path
        for path in found
        if path.suffix in (".py", ".js", ".css") and path.name not in BUILT and path.parent.name != "plotly"
    ]


def test_no_other_file_has_a_colour_of_its_own() -> None:
    paths = sources()
    assert len(paths) > 100
    for path in paths:
        lines = COLOUR.findall(path.read_text(encoding="utf-8"))
        assert bool(lines) == (path.name == "theme.py"), f"{path.relative_to(ROOT)}: {lines}"


@pytest.mark.parametrize(
    "text", ["color: #fff;", '"#8888"', "#10141D", "#10141D1A", "rgb(0 0 0 / .2)", "rgba( 1,2,3,.4)", "hsl(20 3% 4%)"]
)
def test_a_colour_would_be_found(text: str) -> None:
    assert COLOUR.search(text)


PERCENT_OF_PLOTLY = re.compile(r"""[:"']\+?\.\d~?%["'}]""")


def test_no_axis_or_hover_text_has_plotlys_own_percent_sign() -> None:
    """It stands right after the number; sentences have a space there, and so has ``PERCENT_TICKS``."""
    for written in ('"tickformat": ".0%"', "%{x:.1%}", "%{{y:+.1~%}}"):
        assert PERCENT_OF_PLOTLY.search(written), written
    drawing = [path for path in sources() if "plotly" in path.read_text(encoding="utf-8")]
    assert len(drawing) > 20
    found = [path.name for path in drawing if PERCENT_OF_PLOTLY.search(path.read_text(encoding="utf-8"))]
    assert found == []


def test_streamlits_own_theme_is_this_one() -> None:
    settings = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    assert settings["theme"] == theme.STREAMLIT


def test_components_use_only_variables_that_the_theme_has() -> None:
    """``--hs-…`` from the theme; the built bundle is looked through, too."""
    used: set[str] = set()
    for path in [*sources(), *(ROOT / "pages/shared/components" / name for name in BUILT)]:
        used |= set(re.findall(r"var\(--hs-([a-z]+)", path.read_text(encoding="utf-8")))
    assert used == set(theme.CSS_VARIABLES)
    assert all(f"--hs-{name}: {value};" in theme.CSS for name, value in theme.CSS_VARIABLES.items())


def test_a_components_style_begins_with_the_themes_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, str] = {}
    monkeypatch.setattr(mount.st.components.v2, "component", lambda name, **given: made.update(name=name, **given))
    mount.component("tried", "dom.js", "picture.js", html="<p></p>", css="p { color: var(--hs-positive); }")
    assert made["name"] == "headscope_tried"
    assert made["css"] == theme.CSS + "p { color: var(--hs-positive); }"
    assert made["js"].index("function element") < made["js"].index("export default function picture")


@pytest.mark.parametrize("look", ["light", "dark"])
def test_plotly_has_the_themes_font_and_ground(look: str) -> None:
    layout = template(look).layout
    assert layout.font.family == theme.FONT
    assert layout.font.color == theme.INK[look]
    assert layout.paper_bgcolor == theme.STREAMLIT[look]["backgroundColor"]


def test_black_or_white_on_a_colour_by_hand() -> None:
    """Luminance 0.18 divides them: (0.18 + 0.05)² is about 1.05 · 0.05."""
    assert theme.ink_on("#FFFFFF") == "#000000"
    assert theme.ink_on("#000000") == "#FFFFFF"
    assert theme.ink_on("#0000FF") == "#FFFFFF"  # pure blue has 0.0722
    assert theme.ink_on("#FF0000") == "#000000"  # pure red 0.2126


def test_a_colour_between_two_stops_and_beyond_them() -> None:
    stops = [[0, "#000000"], [0.5, "#804020"], [1, "#FFFFFF"]]
    assert theme.colour_at(0.25, stops) == "#402010"
    assert theme.colour_at(-3, stops) == "#000000"
    assert theme.colour_at(7, stops) == "#FFFFFF"


def test_error_bars_reach_from_low_to_high_and_none_where_an_end_is_missing() -> None:
    bars = error_bars([0.5, 0.5], [0.25, float("nan")], [1.0, 0.75], width=0)
    assert bars["array"].tolist() == [0.5, 0.25]
    assert bars["arrayminus"].tolist() == [0.25, 0.0]
    assert bars["width"] == 0
    rows = [{"lost": 2.0, "lost_low": 1.5, "lost_high": 4.0}]
    assert row_error_bars(rows, "lost", "lost_")["array"].tolist() == [2.0]
