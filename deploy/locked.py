"""What the image's packages are: torch as requirements.txt pins it, and everything in the lock files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK, CUDA_LOCK = "requirements.lock", "requirements-cuda.lock"
"""Everything but torch, and what only the CUDA build of torch needs."""
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)


@dataclass(frozen=True, order=True)
class Package:
    """``name`` in the index's own spelling: lower case, with hyphens."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name}=={self.version}"


def pinned(file: str) -> list[Package]:
    """The packages of a requirements or lock file; one with two versions for two Pythons is there twice."""
    text = (ROOT / file).read_text(encoding="utf-8")
    return [Package(re.sub(r"[-_.]+", "-", name).lower(), version) for name, version in _PINNED.findall(text)]


def packages() -> list[Package]:
    """All of them, whatever the platform, by name."""
    torch = [package for package in pinned("requirements.txt") if package.name == "torch"]
    return sorted([*torch, *pinned(LOCK), *pinned(CUDA_LOCK)])
