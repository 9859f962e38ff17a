"""The demo corpus, which comes with the package."""

from collections.abc import Mapping
from pathlib import Path

from core.errors import Mistake
from precompute.sources.files import SourceFile
from precompute.sources.local import LocalSource, OnRead, ReadFile

FOLDER = Path(__file__).parent.parent / "demo"


def open_demo(readers: Mapping[str, ReadFile], on_read: OnRead | None = None) -> LocalSource:
    """Every ``.jsonl`` file of the folder, sorted."""
    paths = sorted(FOLDER.glob("*.jsonl"))
    if not paths:
        raise Mistake("The demo corpus is missing from this installation. Install the project again.")
    files = tuple(SourceFile(path, path.name, path.stat().st_size, ".jsonl") for path in paths)
    return LocalSource("demo", files, readers, on_read)
