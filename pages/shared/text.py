"""Untrusted text on its way into a page: titles, texts, topics and labels are shown, never obeyed."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

# Controls, and the marks that turn or isolate the direction of all that follows them on the line.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~$:&^=])")
# Links, icons and emoji are found by Streamlit in finished text, where an escape is no more: a mark of no width, which
# neither eye nor screen reader meets, keeps them apart.
_FOUND_LATER = re.compile(r"(https?|www|mailto|xmpp|:(?=[\w+-]+(?:/\w+)?:)|(?<=\w)@(?=\w))", re.IGNORECASE)
_APART = "\u2060"
_BREAKS = re.compile(r"\s{2,}|[^\S \u00a0]")
"""White space that is not a single space; one that keeps a number and its unit on one line is left, too."""
NAME_LENGTH = 30
"""Letters of a name on an axis."""


def visible(text: object) -> str:
    """Without control characters and without marks that turn the direction of what follows; lines and tabs stay."""
    return _UNSEEN.sub("", str(text))


def plain(text: object) -> str:
    """For places that read Markdown: every character that Markdown could act on is escaped, lines become one."""
    one_line = _BREAKS.sub(" ", visible(text)).strip()
    return _MARKDOWN.sub(r"\\\1", _FOUND_LATER.sub(rf"\1{_APART}", one_line))


def safe(text: object) -> str:
    """For HTML, attributes included."""
    return html.escape(visible(text), quote=True)


def drawn(text: object) -> str:
    """For Plotly, which reads some HTML and knows the entities of ``&<>``, but not that of quotes; never very long."""
    return html.escape(shortened(str(text), 200), quote=False)


def shortened(text: str, length: int) -> str:
    """The beginning, cut at a word."""
    flat = _BREAKS.sub(" ", visible(text[: 40 * length + 1_000])).strip()
    if len(flat) <= length:
        return flat
    return flat[:length].rsplit(" ", 1)[0].rstrip(",;:–- ") + " …"


def short_names(names: Sequence[str], length: int = NAME_LENGTH) -> list[str]:
    """Escaped beginnings, all different: they are the categories of an axis."""
    found: list[str] = []
    for name in names:
        short = drawn(_cut(name, length))
        while short in found:
            short += "\u200b"  # no width: looks the same, counts as another
        found.append(short)
    return found


def _cut(name: str, length: int) -> str:
    short = shortened(name, length)
    return short if len(short) <= length + 2 else short[:length] + "…"  # a single word has no place to be cut at
