"""Lines of printed pages joined to paragraphs: a PDF knows where its lines end, but not where its paragraphs do."""

from __future__ import annotations

import re
from collections.abc import Sequence

_FULL = 0.9
"""The share of a document's lines that are no longer than a full line."""
_SHORT = 0.75
"""Of a full line: a shorter one may end a paragraph."""
_LEAST = 20
"""Characters: where full lines are shorter (a table, a poem of single words), nothing is joined."""
_END = re.compile(r"[.!?:;…][\"'”’»)\]]*$")
_ITEM = re.compile(r"\s*([•▪‣◦*–—-]\s|\(?([0-9]{1,3}|[a-z])[.)]\s)")
_PAGE_NUMBER = re.compile(r"\s*((page|p\.)\s*)?[0-9]{1,4}(\s*(/|of)\s*[0-9]{1,4})?\s*", re.IGNORECASE)


def joined_paragraphs(pages: Sequence[str]) -> str:
    """The pages' text with one line per paragraph, and an empty line between paragraphs.

    A paragraph goes on over the end of a page; numbers of pages are left out. A word that was divided at the end of a
    line becomes one again.
    """
    kept = [_without_number(page.splitlines(), len(pages) > 1) for page in pages]
    lines = [line for page in kept for line in page]
    lengths = sorted(len(line) for line in lines if line.strip())
    full = lengths[min(len(lengths) - 1, int(_FULL * len(lengths)))] if lengths else 0
    if full < _LEAST:
        return "\n\n".join("\n".join(page) for page in kept).strip()
    paragraphs, current = [], ""
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        current = _continued(current, line.strip()) if line.strip() else current
        if current and _ends(line, following, full):
            paragraphs.append(current)
            current = ""
    return "\n\n".join([*paragraphs, *([current] if current else [])])


def _without_number(lines: list[str], several: bool) -> list[str]:
    """A page's lines without empty ones at its ends and, among several pages, without its number."""
    while lines and (not lines[0].strip() or (several and _PAGE_NUMBER.fullmatch(lines[0]))):
        lines = lines[1:]
    while lines and (not lines[-1].strip() or (several and _PAGE_NUMBER.fullmatch(lines[-1]))):
        lines = lines[:-1]
    return lines


def _continued(before: str, line: str) -> str:
    if before.endswith("\u00ad"):
        return before[:-1] + line
    if re.search(r"[^\W\d_]-$", before) and line[:1].islower():
        return before[:-1] + line
    return f"{before} {line}".lstrip()


def _ends(line: str, following: str, full: int) -> bool:
    """Whether a paragraph ends with this line."""
    if not line.strip() or not following.strip() or _ITEM.match(following):
        return True
    if len(line) >= _SHORT * full:
        return False
    return bool(_END.search(line.rstrip())) or not following.lstrip()[:1].islower()
