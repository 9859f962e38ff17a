"""Where documents come from: ``demo``, a file, a folder, a glob, or ``hf:DATASET[/CONFIG][:SPLIT]``."""

from precompute.sources import columnar, delimited, jsonl, text
from precompute.sources.demo import open_demo
from precompute.sources.files import find
from precompute.sources.hub import PREFIX, open_hub
from precompute.sources.local import LocalSource, OnRead, ReadFile, refuse_empty
from precompute.sources.row import OnBad, Row, Source, refuse

__all__ = ["READERS", "OnBad", "Row", "Source", "open_source", "refuse"]

READERS: dict[str, ReadFile] = {
    ".jsonl": jsonl.read,
    ".ndjson": jsonl.read,
    ".json": jsonl.read_json,
    ".csv": delimited.read_csv,
    ".tsv": delimited.read_tsv,
    ".parquet": columnar.read,
    ".txt": text.read_text,
    ".md": text.read_markdown,
    ".markdown": text.read_markdown,
}


def open_source(name: str, on_read: OnRead | None = None) -> Source:
    """The source that a person names; a name that leads nowhere or to an empty file is told at once.

    ``on_read`` is told how much of the files has been read; the hub does not say.
    """
    if name == "demo":
        return open_demo(READERS, on_read)
    if name.startswith(PREFIX):
        return open_hub(name)
    found = find(name, READERS)
    if found.alone:
        refuse_empty(found.files[0])
    return LocalSource(found.label, found.files, READERS, on_read)
