"""The documents: README fits on a few screens, links lead somewhere, commands exist."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from core import VERSION
from docs import screenshots
from precompute.cli import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)|<img src=\"([^\"]+)\"")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(path: Path) -> set[str]:
    """As forges make them: small letters, spaces to hyphens, punctuation left out."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_a_newcomer_reads_the_readme_in_a_minute() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    broken = []
    for link in map("".join, _LINK.findall(_FENCE.sub("", path.read_text(encoding="utf-8")))):
        if link.startswith(("http:", "https:")):
            continue
        name, _, anchor = link.partition("#")
        there = (path.parent / name).resolve() if name else path
        if not there.exists() or (anchor and anchor not in anchors(there)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_commands_exist(path: Path) -> None:
    named = re.findall(r"python -m precompute ([a-z]+)", path.read_text(encoding="utf-8"))
    assert set(named) <= set(COMMANDS)


def test_the_index_names_every_document() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    missing = [path.name for path in (ROOT / "docs").glob("*.md") if f"({path.name})" not in index]
    assert missing == ["README.md"]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_lines_can_be_read_without_scrolling(path: Path) -> None:
    """Tables and code aside."""
    lines = _FENCE.sub("", path.read_text(encoding="utf-8")).splitlines()
    assert [line for line in lines if len(line) > 120 and not line.startswith("|")] == []


@pytest.mark.parametrize("name", screenshots.pages())
def test_every_page_has_its_picture_in_the_tour_and_in_the_readme(name: str) -> None:
    """``make screenshots`` takes them."""
    assert f"(pictures/{name}.webp)" in (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    assert f"docs/pictures/small/{name}.webp" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_moving_picture_is_light() -> None:
    picture = ROOT / "docs" / "pictures" / "moving.webp"
    assert picture.stat().st_size < 3_000_000
    assert picture.read_bytes().count(b"ANMF") >= 4, "it moves"


def test_one_version_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"]
    released = re.findall(
        r"^## \[(\d[^\]]*)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert {VERSION, project, cited, released[0][0]} == {VERSION}


def test_project_files_can_be_parsed() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))
    assert [step["run"] for step in workflow["jobs"]["test"]["steps"] if "run" in step] == ["make test", "make docs"]
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["cff-version"] == "1.2.0"
    assert json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))["forwardPorts"] == [
        8501
    ]
