"""Takes the pictures of README and the tour again: ``make screenshots``, or ``python -m docs.screenshots layers``."""

from __future__ import annotations

import ast
import io
import sys
from typing import TYPE_CHECKING

from docs.open_app import PICTURES, ROOT, embed_a_text, opened, rest

if TYPE_CHECKING:
    from playwright.sync_api import Page

VIEWS = {
    "overview": "/",
    "head_map": "/head_map?stage=1",
    "heat_map": "/heat_map?stage=1",
    "head_profile": "/head_profile?stage=1&head=11",
    "stages": "/stages",
    "topics": "/topics",
    "aspects": "/aspects?stage=1",
    "layers": "/layers",
    "attention": "/attention",
    "ablation": "/ablation",
    "your_document": "/your_document",
    "retrieval_lab": "/retrieval_lab?stage=1",
}
"""Pages that are best seen at an address of their own; a page that is not here is taken as it opens."""
WIDTH, HEIGHT = 1400, 1000
THUMBNAIL = 320


def pages() -> list[str]:
    """The names of all pages, as ``PAGES`` of app.py lists them."""
    tree = ast.parse((ROOT / "app.py").read_text(encoding="utf-8"))
    (value,) = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["PAGES"]
    ]
    return [name for section in ast.literal_eval(value).values() for name, _, _ in section]


def main(wanted: list[str]) -> None:
    (PICTURES / "small").mkdir(parents=True, exist_ok=True)
    with opened(WIDTH, HEIGHT) as go:
        for name in wanted or pages():
            page = go(VIEWS.get(name, f"/{name}"))
            if name == "your_document":
                embed_a_text(page)
                page.get_by_role("heading").nth(1).scroll_into_view_if_needed()
                rest(page)
            save(page, name)
            page.close()
            print(name)


def save(page: Page, name: str) -> None:
    """``docs/pictures/<name>.webp``, and small for the table in README."""
    from PIL import Image

    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.save(PICTURES / f"{name}.webp", quality=82, method=6)
    picture.thumbnail((THUMBNAIL, THUMBNAIL))
    picture.save(PICTURES / "small" / f"{name}.webp", quality=82, method=6)


if __name__ == "__main__":
    main(sys.argv[1:])
