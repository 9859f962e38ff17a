"""Every sentence a person may see, as a list to read: ``python -m tests.support.wording [folder or file ...]``.

From Python: text in calls, returns, assignments and tables, f-strings with placeholders as ``{…}``; docstrings, log
keys, patterns, styles and identifiers are left out. From our JavaScript: string and template literals. A list like this
is never exact: it is for reading, so that one phrase can be compared with the other five that say the same.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support import ROOT

FOLDERS = ("app.py", "pages", "core", "precompute", "headscope", "frontend/map/src")
_SENTENCE = re.compile(r"[A-Za-z]{2,}[,;:.]?\s+\S")
"""Two words; single words are labels, and are caught below."""
_LABEL = re.compile(r"[A-Z][a-z]+(-[a-z]+)*$")
_CODE = re.compile(
    r"^\s*(?:[@<&]|\.(?! )|#(?!#)|:(?!material| ))"
    r"|[{}][^…]*;|=>|\bfunction\b|--[a-z]+:|^\s*(SELECT|INSERT|CREATE|DELETE|PRAGMA)\b|^[a-z-]+:\s|^application/"
    r"|\(\?[:P=!<]|\\[bdswS]"
)
_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')


def sentences(file: Path) -> Iterator[tuple[int, str]]:
    """Line numbers and texts of one file."""
    text = file.read_text(encoding="utf-8")
    found = _of_python(ast.parse(text)) if file.suffix == ".py" else _of_script(text)
    for line, said in found:
        flat = re.sub(r"\s+", " ", said).strip()
        if (_SENTENCE.search(flat) or _LABEL.match(flat)) and not _CODE.search(flat.replace("{…}", "…")):
            yield line, flat


def _of_python(tree: ast.Module) -> Iterator[tuple[int, str]]:
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, (ast.Constant, ast.JoinedStr)):
            skipped.add(node.value)  # a docstring
        if isinstance(node, ast.Subscript):
            skipped.add(node.slice)
        if node in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            skipped.update(node.values)
            parts = (part.value if isinstance(part, ast.Constant) else "{…}" for part in node.values)
            yield node.lineno, "".join(str(part) for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def _of_script(text: str) -> Iterator[tuple[int, str]]:
    for match in _LITERAL.finditer(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)):
        said = re.sub(r"\$\{[^{}]*\}", "{…}", match.group(1) or match.group(2) or "")
        yield text.count("\n", 0, match.start()) + 1, said


def files(places: list[str]) -> Iterator[Path]:
    for place in places:
        path = ROOT / place
        yield from [path] if path.is_file() else sorted([*path.rglob("*.py"), *path.rglob("*.js")])


def main(places: list[str]) -> None:
    for file in files(places or list(FOLDERS)):
        if file.name == "map.js" or file.parent.name == "plotly":  # built from frontend/
            continue
        listed = sorted(set(sentences(file)))
        if listed:
            print(f"\n## {file.relative_to(ROOT)}")
        for line, said in listed:
            print(f"{line:5}  {said}")


if __name__ == "__main__":
    main(sys.argv[1:])
