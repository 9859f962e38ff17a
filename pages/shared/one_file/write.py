"""Writes a run as one HTML file."""

from __future__ import annotations

from pathlib import Path

from core.errors import Mistake, listed
from core.runs.files import replacing_here, write_mistake
from core.runs.results import require
from core.runs.run import Run
from pages.shared.one_file.gather import gathered
from pages.shared.one_file.pack import page

TEXTS = {"whole": "Whole texts", "cut": "The beginning of each text", "none": "No texts and no titles"}
"""How much of the documents' texts the file holds."""


def html_of(run: Run, texts: str = "cut") -> str:
    """The file's content, for a run that is embedded; what it lacks beyond that, the page says."""
    if texts not in TEXTS:
        raise Mistake(f"'{texts}' is not a way to include texts. Choose one of: {listed(TEXTS)}.")
    manifest = run.manifest()
    require(run, manifest, "embed")
    packed, header = gathered(run, texts if manifest.has_texts else "none")
    return page(f"{run.name} · Headscope", packed.block(header))


def write_page(run: Run, path: Path, texts: str = "cut") -> int:
    """Writes the file, whole or not at all; returns its size in bytes."""
    data = html_of(run, texts).encode()
    try:
        with replacing_here(path) as temporary:
            temporary.write_bytes(data)
    except OSError as error:
        raise write_mistake(path, error) from error
    return len(data)
