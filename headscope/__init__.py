"""Headscope from Python: open a run and read its vectors, tables, findings and figures.

>>> import headscope
>>> run = headscope.open_run("example")
>>> run
<run 'example': 36 documents, 4 heads, stages 1, 2, 3, 4>

Runs are opened read-only. Each part is read when you ask for it, and torch is imported only to embed.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import core

if Path(str(core.__file__)).resolve().parents[1] != Path(__file__).resolve().parents[1]:
    raise ImportError(
        f"Headscope needs its own package 'core', and Python finds another one first ({core.__file__}). Start Python "
        "in a folder that has no 'core' of its own."
    )

if TYPE_CHECKING:
    from core.errors import Mistake
    from headscope.opened import EmbeddedTexts, Explained, OpenedRun, open_run
    from headscope.paper import caption_of, save_figure

__all__ = ["EmbeddedTexts", "Explained", "Mistake", "OpenedRun", "caption_of", "open_run", "save_figure"]

_HOMES = {"Mistake": "core.errors", "caption_of": "headscope.paper", "save_figure": "headscope.paper"}


def __getattr__(name: str) -> Any:
    """Imports what is asked for: ``status`` needs none of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "headscope.opened")), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
