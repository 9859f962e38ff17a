"""The documentation as a site: it builds without a warning, and a browser that reads it asks no other host."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from docs import command_line, run_files
from docs.site_hooks import _LINK, link_in_site

ROOT = Path(__file__).resolve().parents[1]
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "object": "data"}
LINKS_THAT_LOAD = {"stylesheet", "preconnect", "preload", "prefetch", "dns-prefetch", "icon", "manifest"}


class Loaded(HTMLParser):
    """The addresses that a browser would ask by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "link" and set(given.get("rel", "").split()) & LINKS_THAT_LOAD:
            self.found.append(given.get("href", ""))
        elif tag in LOADS:
            self.found += [given.get(LOADS[tag], ""), *given.get("srcset", "").split()]


def is_elsewhere(address: str) -> bool:
    return bool(re.match(r"(https?:)?//", address))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``make docs``, into another folder."""
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "true"},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    return folder


@pytest.mark.slow
def test_every_page_is_in_the_site(site: Path) -> None:
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"README"}
    assert pages | {"index", "contributing", "changelog"} <= {path.stem for path in site.glob("*.html")}


@pytest.mark.slow
def test_a_browser_asks_no_other_host(site: Path) -> None:
    seen = 0
    for path in site.rglob("*.html"):
        reader = Loaded()
        reader.feed(path.read_text(encoding="utf-8"))
        seen += len(reader.found)
        assert [address for address in reader.found if is_elsewhere(address)] == [], path.name
    assert seen > 100
    for path in site.rglob("*.css"):
        addresses = re.findall(r"(?:url\(|@import\s+)['\"]?([^'\")\s]+)", path.read_text(encoding="utf-8"))
        assert [address for address in addresses if is_elsewhere(address)] == [], path.name


@pytest.mark.parametrize(
    ("link", "here", "shown"),
    [
        ("[how](../CONTRIBUTING.md#add-a-page)", "docs", "[how](contributing.md#add-a-page)"),
        ("[settings](docs/configuration.md)", "", "[settings](configuration.md)"),
        ("[`deploy/slurm/`](../deploy/slurm)", "docs", "`deploy/slurm/`"),
        ("[recipes](../deploy)", "docs", "recipes (`deploy`)"),
        ("[LICENSE](LICENSE)", "", "LICENSE"),
        ("[study](https://example.org/a)", "docs", "[study](https://example.org/a)"),
    ],
)
def test_links_read_the_same_on_a_forge_and_in_the_site(link: str, here: str, shown: str) -> None:
    found = _LINK.fullmatch(link)
    assert found
    assert link_in_site(found, ROOT / here) == shown


@pytest.mark.parametrize("generated", [command_line, run_files], ids=["command line", "files"])
def test_generated_pages_are_those_of_today(generated: object) -> None:
    """Otherwise: make docs-write."""
    assert generated.PAGE.read_text(encoding="utf-8") == generated.page()  # type: ignore[attr-defined]
