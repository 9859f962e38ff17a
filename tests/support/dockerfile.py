"""Reads a Dockerfile and a .dockerignore, as far as ours use them, for the tests of the image."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Instruction:
    """``RUN``, ``COPY`` …; its ``--flags``, and the rest as written."""

    name: str
    flags: dict[str, str]
    rest: str

    def words(self) -> list[str]:
        """The JSON form's strings, or the words."""
        return json.loads(self.rest) if self.rest.startswith("[") else self.rest.split()


def stages(text: str) -> dict[str, list[Instruction]]:
    """The instructions of each named stage, FROM first; those before the first FROM are under an empty name."""
    found: dict[str, list[Instruction]] = {"": []}
    stage = ""
    for line in _logical_lines(text):
        name, _, rest = line.partition(" ")
        flags: dict[str, str] = {}
        while flag := re.match(r"--([a-z-]+)=(\S+)\s+", rest):
            flags[flag[1]] = flag[2]
            rest = rest[flag.end() :]
        if name == "FROM":
            stage = rest.split()[-1]
            found[stage] = []
        found[stage].append(Instruction(name, flags, rest.strip()))
    return found


def _logical_lines(text: str) -> Iterator[str]:
    whole = ""
    for line in text.splitlines():
        if line.lstrip().startswith("#") or not line.strip():
            continue
        whole += line.rstrip().removesuffix("\\")
        if not line.rstrip().endswith("\\"):
            yield re.sub(r"\s{2,}", " ", whole.strip())
            whole = ""


def environment(instructions: list[Instruction]) -> dict[str, str]:
    """What the ENV lines set; ``$PATH`` stays as it is written."""
    pairs = [pair for it in instructions if it.name == "ENV" for pair in it.words()]
    return dict(pair.split("=", 1) for pair in pairs)


def is_ignored(path: str, patterns: list[str]) -> bool:
    """Whether .dockerignore leaves ``path`` out: the last pattern that fits it, or a folder above it, decides."""
    ignored = False
    parts = path.split("/")
    above = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    for pattern in patterns:
        if any(_fits(folder, pattern.removeprefix("!")) for folder in above):
            ignored = not pattern.startswith("!")
    return ignored


def _fits(path: str, pattern: str) -> bool:
    if pattern.startswith("**/"):
        return any(fnmatch.fnmatch(part, pattern[3:]) for part in path.split("/"))
    parts, wanted = path.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))


def ignore_patterns(folder: Path) -> list[str]:
    lines = (folder / ".dockerignore").read_text().splitlines()
    return [line.strip().rstrip("/") for line in lines if line.strip() and not line.startswith("#")]
