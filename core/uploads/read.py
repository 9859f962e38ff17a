"""One uploaded file to its texts: which reader, how large, and parsed apart from the app."""

from __future__ import annotations

from pathlib import PurePath

from core.errors import Mistake, listed
from core.uploads.apart import Watch, apart, unwatched
from core.uploads.encoding import read_text
from core.uploads.pdf import read_pdf
from core.uploads.records import read_json
from core.uploads.uploaded import Read, Uploaded, cleaned, shown
from core.uploads.web import read_html
from core.uploads.word import read_docx

MAX_BYTES = 20_000_000
"""Unless the caller says otherwise."""


READERS: dict[str, Read] = {
    ".txt": read_text,
    ".md": read_text,
    ".html": read_html,
    ".htm": read_html,
    ".pdf": read_pdf,
    ".docx": read_docx,
    ".json": read_json,
}
"""By the ending of the file's name, in small letters."""


def read_upload(name: str, data: bytes, most: int = MAX_BYTES, watch: Watch = unwatched) -> list[Uploaded]:
    """The texts of a file of at most ``most`` bytes, cleaned; a Mistake in one sentence for one that cannot be read.

    All formats are parsed in a process of their own, from bytes that anybody may have made, within the budget of
    core/uploads/apart.py; ``watch`` is told how many files come first.
    """
    return apart(name, _suffix(name, data, most), data, watch)


def parse_upload(name: str, data: bytes, most: int = MAX_BYTES) -> list[Uploaded]:
    """The same within this process: nothing but the readers' own limits holds the memory and time that it takes."""
    return parsed(_suffix(name, data, most), shown(name), data)


def parsed(suffix: str, name: str, data: bytes) -> list[Uploaded]:
    """The file's texts, by the reader of that ending; ``name`` is to be shown."""
    return [cleaned(each) for each in READERS[suffix](name, data)]


def _suffix(name: str, data: bytes, most: int) -> str:
    """The ending that says which reader; a file without one, too large or empty is refused."""
    suffix = PurePath(name).suffix.lower()
    if suffix not in READERS:
        raise Mistake(f"{shown(name)} cannot be read here. Choose a file that ends in {listed(READERS)}.")
    if len(data) > most:
        raise Mistake(
            f"{shown(name)} is {len(data) / 1e6:,.1f} MB; the limit is {most / 1e6:,.0f} MB. "
            "Choose a smaller file, or paste the part that matters."
        )
    if not data:
        raise Mistake(f"{shown(name)} is empty. Choose another file, or paste the text.")
    return suffix
