"""``make install``: what requirements.txt pins, into the Python that runs this.

By the hashes of the lock files where they cover the platform; torch by version, because its CPU and CUDA builds differ.
Elsewhere by the pins alone. A file whose hash is another one is refused, never replaced by an unchecked one.
"""

from __future__ import annotations

import platform
import subprocess
import sys
from importlib.metadata import requires

from deploy.lock import CUDA
from deploy.locked import CUDA_LOCK, LOCK, ROOT, pinned

COVERED = {("cpython", "linux", "x86_64"), ("cpython", "darwin", "arm64")}
"""Implementation, system and processor for which every locked package has a wheel."""


def main() -> int:
    torch = str(next(package for package in pinned("requirements.txt") if package.name == "torch"))
    here = (sys.implementation.name, sys.platform, platform.machine())
    if here not in COVERED:
        print(f"The lock files do not cover {' '.join(here)}: installing by version, without hashes.", file=sys.stderr)
        return pip(torch) or pip("-r", "requirements.txt")
    return pip("--no-deps", torch) or locked(LOCK) or (locked(CUDA_LOCK) if is_cuda_build() else 0)


def locked(file: str) -> int:
    return pip("--no-deps", "--require-hashes", "-r", file)


def is_cuda_build() -> bool:
    """Whether the installed torch asks for NVIDIA's libraries."""
    return any(needed.startswith(CUDA) for needed in requires("torch") or ())


def pip(*arguments: str) -> int:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    return subprocess.call(command, cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main())
