"""Makes README's moving picture again: ``make moving-picture``.

Map, another stage, a document of the heat map, a text of one's own; docs/pictures/moving.webp, below 3 MB. Views are
opened by their addresses, which are an interface, not by clicks, which change with the design.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from docs.open_app import PICTURES, embed_a_text, opened, rest

if TYPE_CHECKING:
    from PIL.Image import Image
    from playwright.sync_api import Page

WIDTH, HEIGHT = 1280, 800
SHOWN = 960
"""Pixels that the picture is wide."""
HOLD, STEP, STEPS = 2600, 70, 4
"""Milliseconds that a scene stays, and that each of the frames between two scenes does."""
CAPTION = 44
MOST = 3_000_000


@dataclass(frozen=True)
class Scene:
    address: str
    caption: str
    scroll_to: str = ""
    """A CSS selector: what is brought into view, with what is above it."""
    block: str = "nearest"
    """Scrolled no farther than that takes, or with it at the ``start``."""
    text: bool = False
    """Whether a text is embedded first."""


SCENES = (
    Scene("/head_map?stage=1", "Every head of every document on one map: stage 1, attention", ".head-map"),
    Scene("/head_map?stage=3", "The same documents at stage 3, the model's output", ".head-map"),
    Scene("/heat_map?stage=1", "How close each head places each document to its own topic", ".hs-heat-map"),
    Scene(
        "/heat_map?stage=1&doc=18&head=11", "One cell: a document, and its neighbours in head 11", ".hs-card", "start"
    ),
    Scene("/your_document?stage=1", "A text of your own through every head", ".js-plotly-plot", text=True),
)


def main() -> None:
    with opened(WIDTH, HEIGHT) as go:
        frames = [_frame(go(scene.address), scene) for scene in SCENES]
    path = PICTURES / "moving.webp"
    pictures, times = _blended(frames)
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=times, loop=0, quality=70, method=6)
    size = path.stat().st_size
    print(f"{path.name}: {len(pictures)} frames, {size:,} bytes")
    if size > MOST:
        raise SystemExit(f"That is more than {MOST:,} bytes. Lower SHOWN or the quality.")


def _frame(page: Page, scene: Scene) -> Image:
    from PIL import Image

    if scene.text:
        embed_a_text(page)
    if scene.scroll_to:
        target = page.locator(scene.scroll_to).first
        target.wait_for()
        target.evaluate(
            "(it, block) => { it.style.scrollMargin = '110px 0 20px'; it.scrollIntoView({block}); }", scene.block
        )
        rest(page)
    shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    page.close()
    return _captioned(shot.resize((SHOWN, round(HEIGHT * SHOWN / WIDTH)), Image.Resampling.LANCZOS), scene.caption)


def _captioned(shot: Image, caption: str) -> Image:
    from PIL import Image, ImageDraw, ImageFont

    made = Image.new("RGB", (shot.width, shot.height + CAPTION), "#1f2937")
    made.paste(shot, (0, 0))
    font = ImageFont.load_default(19)
    ImageDraw.Draw(made).text((20, shot.height + CAPTION / 2), caption, "#ffffff", font, anchor="lm")
    return made


def _blended(frames: list[Image]) -> tuple[list[Image], list[int]]:
    """Each scene, then some frames that fade into the next; the last fades into the first."""
    from PIL import Image

    pictures, times = [], []
    for frame, following in zip(frames, [*frames[1:], frames[0]], strict=True):
        pictures.append(frame)
        times.append(HOLD)
        for step in range(1, STEPS + 1):
            pictures.append(Image.blend(frame, following, step / (STEPS + 1)))
            times.append(STEP)
    return pictures, times


if __name__ == "__main__":
    main()
