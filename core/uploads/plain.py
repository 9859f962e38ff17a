"""Text and Markdown, as they are."""

from __future__ import annotations

from core.uploads.encoding import decode
from core.uploads.uploaded import Uploaded


def read_text(name: str, data: bytes) -> list[Uploaded]:
    found = decode(name, data)
    return [Uploaded(name, found.text, found.notes)]
