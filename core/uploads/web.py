"""The text of an HTML page: its main part where it marks one, else all that a reader would see.

By selectolax, a browser's parser without further dependencies. Trafilatura was the other choice: it guesses the main
text where none is marked, but it leaves out paragraphs that look like boilerplate without a word, and here the person
sees what was taken and can shorten it.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from core.errors import Mistake
from core.uploads.encoding import decode
from core.uploads.uploaded import Uploaded

_UNSEEN = "script, style, noscript, template, head, iframe, object, svg, math, canvas, select, [hidden], dialog"
_BESIDE = "nav, aside, footer, form, button"
"""Within the main part, what is not of it."""
_MAIN = ("main", "[role=main]", "article")
_ENOUGH = 200
"""Characters; a shorter main part is a heading or a teaser."""
_PARAGRAPHS = "p, h1, h2, h3, h4, h5, h6, blockquote, pre, ul, ol, dl, table, section, article, figure, hr"
_LINES = "div, li, dt, dd, tr, header, footer, nav, aside, main, figcaption, caption, address, option, form, fieldset"
_BREAK = "\x1e"  # no page has it, and it survives the collapsing of white space
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE)
_HEAD = 4_096
MAX_DEPTH = 1_000
"""Tags within each other. A browser stops at 512; the parser looks through all that are open at every further one."""
_TAG = re.compile(
    r"<!--(?:-?>|.*?(?:-->|\Z))|<(script|style)\b.*?(?:</\1|\Z)|<(/?)([a-z][^\s/>]*)[^<>]*", re.IGNORECASE | re.DOTALL
)
_NEVER_OPEN = frozenset(
    {
        *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track"),
        *("html", "head", "body", "p", "li", "dt", "dd", "option", "optgroup", "rp", "rt", "thead", "tbody", "tfoot"),
        *("wbr", "tr", "td", "th", "colgroup", "a", "nobr", "button"),
    }
)
"""Tags that have no end, or that one of the same kind ends."""


def read_html(name: str, data: bytes) -> list[Uploaded]:
    from selectolax.lexbor import LexborHTMLParser

    declared = _CHARSET.search(data[:_HEAD])
    found = decode(name, data, declared[1].decode("ascii") if declared else None)
    if too_deep(found.text):
        raise Mistake(f"{name} has more than {MAX_DEPTH:,} nested tags. Save it as text, or paste the text.")
    tree = LexborHTMLParser(found.text.replace(_BREAK, " "))
    tree.strip_tags([tag.strip() for tag in _UNSEEN.split(",") if "[" not in tag])
    for node in tree.css("[hidden]"):
        node.decompose()
    _mark_breaks(tree)
    for selector in _MAIN:
        parts = tree.css(selector)
        if len(parts) == 1 and len(text := _main_text(parts[0])) >= _ENOUGH:
            return [Uploaded(name, text, (*found.notes, "Only the main part of the page was read."))]
    return [Uploaded(name, _text(tree.body), found.notes)]


def too_deep(page: str) -> bool:
    """Whether more than MAX_DEPTH tags are open at once, about: one pass without a tree."""
    opened: Counter[str] = Counter()
    depth = 0
    for tag in _TAG.finditer(page):
        name = (tag[3] or "").lower()
        if not name or name in _NEVER_OPEN:
            continue
        ended = tag[0].endswith("/") and (opened["svg"] or opened["math"])  # elsewhere that sign means nothing
        if not tag[2] and not ended:
            opened[name] += 1
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif tag[2] and opened[name]:
            opened[name] -= 1
            depth -= 1
    return False


def _main_text(node: Any) -> str:
    from selectolax.lexbor import LexborHTMLParser

    copy = LexborHTMLParser(node.html)  # the page itself stays whole, for it may be needed yet
    for beside in copy.css(_BESIDE):
        beside.decompose()
    return _text(copy.body)


def _mark_breaks(tree: Any) -> None:
    for selector, mark in ((_PARAGRAPHS, _BREAK * 2), (_LINES, _BREAK)):
        for node in tree.css(selector):
            node.insert_before(mark)
            node.insert_after(mark)
    for node in tree.css("br"):
        node.replace_with(_BREAK)
    for node in tree.css("td, th"):
        node.insert_after(" ")


def _text(node: Any) -> str:
    if node is None:
        return ""
    text = re.sub(r"[ \t\n\r\f]+", " ", node.text(deep=True, separator=""))
    text = re.sub(rf" ?{_BREAK} ?", _BREAK, text)
    return re.sub(rf"{_BREAK}+", lambda run: "\n\n" if len(run[0]) > 1 else "\n", text).strip()
