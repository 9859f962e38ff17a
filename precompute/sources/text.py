"""Text and Markdown: one document a file."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from precompute.sources import files
from precompute.sources.files import UNPACKERS, SourceFile, UnpackedReader
from precompute.sources.row import OnBad, Row

HEADING = re.compile(r" {0,3}#[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
FENCE = re.compile(r" {0,3}(```|~~~)")


def read_text(file: SourceFile, on_bad: OnBad) -> Iterator[Row]:
    """One row; its title is the file's name without extensions."""
    return _read(file, on_bad, markdown=False)


def read_markdown(file: SourceFile, on_bad: OnBad) -> Iterator[Row]:
    """One row; its title is the first ``# heading``, or else as for text."""
    return _read(file, on_bad, markdown=True)


def _read(file: SourceFile, on_bad: OnBad, markdown: bool) -> Iterator[Row]:
    with UnpackedReader(file) as stream:
        content = stream.read(files.MAX_RECORD + 1)
    if len(content) > files.MAX_RECORD:
        on_bad(f"{file.name} is longer than {files.MAX_RECORD:,} bytes.")
        return
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        on_bad(f"{file.name} is not valid UTF-8.")
        return
    path = PurePosixPath(file.name)
    stem = path.with_suffix("").stem if path.suffix.lower() in UNPACKERS else path.stem
    columns: dict[str, object] = {
        "text": text,
        "title": (heading(text) if markdown else None) or stem,
        "id": file.name,
        "folder": "" if path.parent == PurePosixPath(".") else path.parent.as_posix(),
    }
    yield Row(columns, file.name, file.name, 1.0)


def heading(markdown: str) -> str | None:
    """The first ``# heading`` outside fenced code, where ``#`` begins a comment as often as not."""
    fence = None
    for line in markdown.splitlines():
        mark = FENCE.match(line)
        if mark and fence in (None, mark[1]):
            fence = None if fence else mark[1]
        elif fence is None and (match := HEADING.fullmatch(line)) and match[1]:
            return match[1]
    return None
