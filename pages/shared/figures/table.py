"""Tables of figures with their intervals, as HTML: a line a figure, a column a head, a stage or a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from core.analysis.wording import percent
from core.runs.tables import Row
from pages.shared.text import safe

Form = Callable[[float | None], str]
"""How a figure is written: ``number`` or ``share``."""
_TABLE_STYLE = """
<style>
.hs-figures { border-collapse: collapse; width: 100%; max-width: 46rem; font-variant-numeric: tabular-nums; }
.hs-figures th, .hs-figures td { text-align: left; vertical-align: top; padding: .45rem .4rem .45rem 0;
  font-weight: 400; border: 0; border-bottom: 1px solid color-mix(in srgb, currentColor 14%, transparent);
  overflow-wrap: break-word; }
.hs-figures thead th, .hs-figures .hs-now { font-weight: 650; }
.hs-figures thead th.hs-now { border-bottom: 2px solid currentColor; }
.hs-figures small { display: block; white-space: nowrap; opacity: .8; font-weight: 400; }
</style>
"""


def figure_table(columns: Sequence[str], chosen: int, lines: Sequence[tuple[str, Sequence[str]]]) -> str:
    """A table of figures as HTML, column ``chosen`` set off (-1: none); the texts are HTML already."""
    now = [' class="hs-now"' if at == chosen else "" for at in range(len(columns))]
    head = "".join(f'<th scope="col"{mark}>{column}</th>' for mark, column in zip(now, columns, strict=True))
    body = "".join(
        f'<tr><th scope="row">{label}</th>'
        + "".join(f"<td{mark}>{cell}</td>" for mark, cell in zip(now, cells, strict=True))
        + "</tr>"
        for label, cells in lines
    )
    return (
        f'{_TABLE_STYLE}<table class="hs-figures"><thead><tr><th scope="col"></th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def number(value: float | None) -> str:
    """Two decimals and a real minus; a dash where there is no figure."""
    if value is None or value != value:
        return "–"
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")  # adding 0 turns a rounded -0 into 0


def share(value: float | None) -> str:
    """In percent with one decimal; a dash where there is no figure."""
    return "–" if value is None or value != value else percent(round(value, 3) + 0.0, 1)


def interval(row: Row, name: str, form: Form = number) -> str:
    """From low to high; empty where there is none."""
    low, high = (row.get(f"{name}_{end}", row.get(end)) for end in ("low", "high"))
    return "" if low is None or high is None else f"{form(low)} to {form(high)}"


def cell(row: Row, name: str, form: Form = number) -> str:
    """A figure with its interval below it, as HTML."""
    said = interval(row, name, form)
    return safe(form(row.get(name))) + (f"<small>{safe(said)}</small>" if said else "")
