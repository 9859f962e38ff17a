"""One uploaded file to its texts: which reader, how large, and apart from the app where a foreign format is parsed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from core.errors import Mistake, listed
from core.uploads.apart import apart
from core.uploads.clean import cleaned
from core.uploads.pdf import read_pdf
from core.uploads.plain import read_text
from core.uploads.records import read_json
from core.uploads.uploaded import Read, Uploaded, shown
from core.uploads.web import read_html
from core.uploads.word import read_docx

MAX_BYTES = 20_000_000
"""Unless the caller says otherwise."""


@dataclass(frozen=True)
class Reader:
    read: Read
    kind: str
    foreign: bool = False
    """Parsed by a library, from bytes that anybody may have made: in a process of its own, with a limit."""


READERS: dict[str, Reader] = {
    ".txt": Reader(read_text, "text"),
    ".md": Reader(read_text, "Markdown"),
    ".html": Reader(read_html, "web page", foreign=True),
    ".htm": Reader(read_html, "web page", foreign=True),
    ".pdf": Reader(read_pdf, "PDF", foreign=True),
    ".docx": Reader(read_docx, "Word document", foreign=True),
    ".json": Reader(read_json, "JSON"),
}
"""By the ending of the file's name, in small letters."""


def read_upload(name: str, data: bytes, most: int = MAX_BYTES) -> list[Uploaded]:
    """The texts of a file of at most ``most`` bytes, cleaned; a Mistake in one sentence for one that cannot be read."""
    reader = _reader(name, data, most)
    return apart(name, data) if reader.foreign else parse_upload(name, data, most)


def parse_upload(name: str, data: bytes, most: int = MAX_BYTES) -> list[Uploaded]:
    """The same within this process: nothing but the readers' own limits holds the memory and time that it takes."""
    found = _reader(name, data, most).read(shown(name), data)
    return [cleaned(each) for each in found]


def _reader(name: str, data: bytes, most: int) -> Reader:
    reader = READERS.get(PurePath(name).suffix.lower())
    if reader is None:
        raise Mistake(f"{shown(name)} cannot be read here. Choose a file that ends in {listed(READERS)}.")
    if len(data) > most:
        raise Mistake(
            f"{shown(name)} has {len(data) / 1e6:,.1f} MB, more than the {most / 1e6:,.0f} MB that are taken. "
            "Choose a smaller file, or paste the part that matters."
        )
    if not data:
        raise Mistake(f"{shown(name)} is empty. Choose another file, or paste the text.")
    return reader
