"""Hooks of mkdocs.yml: pages of the project's root join the site, and links read the same on a forge and in it."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
FROM_ROOT = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "THIRD_PARTY.md": "third-party.md",
}
"""Files of the root, and their pages."""
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, page in FROM_ROOT.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    here = ROOT if page.file.src_uri in FROM_ROOT.values() else ROOT / "docs"
    return _LINK.sub(lambda link: link_in_site(link, here), markdown)


def link_in_site(link: re.Match[str], here: Path) -> str:
    """A link to a page of the site; one to a file that the site does not have becomes its name."""
    text, target, anchor = link[1], link[2], link[3] or ""
    if re.match(r"[a-z]+:", target):
        return link[0]
    there = (here / target).resolve()
    if there.parent == ROOT and there.name in FROM_ROOT:
        return f"[{text}]({FROM_ROOT[there.name]}{anchor})"
    if (ROOT / "docs") in there.parents:
        return f"[{text}]({there.relative_to(ROOT / 'docs').as_posix()}{anchor})"
    path = there.relative_to(ROOT).as_posix()
    return text if text.strip("`/") in (path, there.name) else f"{text} (`{path}`)"
