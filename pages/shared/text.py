"""Untrusted text on its way into a page: titles, texts, topics and labels are shown, never obeyed."""

from __future__ import annotations

import html
import re


def plain(text: object) -> str:
    """For places that read Markdown: every character that Markdown could act on is escaped, lines become one."""
    one_line = re.sub(r"\s+", " ", str(text)).strip()
    return re.sub(r"([\\`*_{}\[\]()#+\-.!|<>~$:&^=])", r"\\\1", one_line)


def safe(text: object) -> str:
    """For HTML, attributes included."""
    return html.escape(str(text), quote=True)


def shortened(text: str, length: int) -> str:
    """The beginning, cut at a word."""
    flat = re.sub(r"\s+", " ", text).strip()
    if len(flat) <= length:
        return flat
    return flat[:length].rsplit(" ", 1)[0].rstrip(",;:–- ") + " …"
