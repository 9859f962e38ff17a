"""Every page as four readers see it, to be looked at: ``make looks``, or ``python -m docs.looks demo smollm2``.

For each run and page one sheet in ``build/looks``: wide and narrow, light above dark. What ``docs.screenshots`` takes
are the pictures of the documentation; these are kept nowhere.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from core.runs.run import Run
from core.settings import setting
from docs.open_app import ROOT, embed_a_text, opened
from docs.screenshots import VIEWS, pages

FOLDER = ROOT / "build" / "looks"
WIDTHS, HEIGHT, SCHEMES = (1400, 420), 1000, ("light", "dark")
RUNS = ("demo", "smollm2", "big")
"""Small, with key/value groups, and as large as the study's; those that the cache has."""


def main(runs: list[str], wanted: list[str]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for width in WIDTHS:
        for scheme in SCHEMES:
            with opened(width, HEIGHT, scheme) as go:
                for run in runs:
                    for name in wanted:
                        view = VIEWS.get(name, f"/{name}")
                        page = go(f"{view}{'&' if '?' in view else '?'}run={run}")
                        if name == "your_document" and page.get_by_role("textbox").count():
                            embed_a_text(page)
                        _part(run, name, width, scheme).write_bytes(page.screenshot())
                        page.close()
                        print(run, name, width, scheme, flush=True)
    for run in runs:
        for name in wanted:
            _sheet(run, name)


def _part(run: str, name: str, width: int, scheme: str) -> Path:
    return FOLDER / f"{run}-{name}-{width}-{scheme}.png"


def _sheet(run: str, name: str) -> None:
    from PIL import Image

    gap = 20
    sheet = Image.new("RGB", (sum(WIDTHS) + gap, len(SCHEMES) * HEIGHT + gap), "grey")
    for row, scheme in enumerate(SCHEMES):
        for column, width in enumerate(WIDTHS):
            part = _part(run, name, width, scheme)
            with Image.open(io.BytesIO(part.read_bytes())) as picture:
                sheet.paste(picture, (column * (WIDTHS[0] + gap), row * (HEIGHT + gap)))
            part.unlink()
    sheet.save(FOLDER / f"{run}-{name}.png")


if __name__ == "__main__":
    cache = Path(setting("HEADSCOPE_CACHE"))
    known, asked = pages(), sys.argv[1:]
    main(
        [name for name in asked if name not in known] or [name for name in RUNS if Run(cache, name).exists()],
        [name for name in asked if name in known] or known,
    )
