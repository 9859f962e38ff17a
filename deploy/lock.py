"""``make lock``: from requirements.txt to the lock files of the image, every package with its hashes.

``requirements.lock`` is everything but torch, ``requirements-cuda.lock`` what only the CUDA build of torch needs. torch
itself is in neither: its CPU build has other hashes than the one on PyPI (see deploy/install.sh).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from deploy.locked import CUDA_LOCK, LOCK, ROOT

HEADER = "# Made from requirements.txt by 'make lock': do not edit. {}\n"
FILES = {
    LOCK: "All but torch and what only its CUDA build needs.",
    CUDA_LOCK: "What only the CUDA build of torch needs.",
}
CUDA = ("nvidia-", "cuda-", "triton")


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "whole.lock"
        command = [sys.executable, "-m", "uv", "--quiet", "pip", "compile", "requirements.txt"]
        command += ["--output-file", str(whole), "--generate-hashes", "--no-header", "--no-annotate"]
        # For all platforms and Pythons at once, with markers: the CUDA base's Python may not be the app's.
        command += ["--universal", "--python-version", "3.11"]
        # Where packages were fetched from is nobody's business, and would be another place elsewhere.
        command += ["--no-emit-index-url", "--no-emit-package", "torch", *sys.argv[1:]]
        subprocess.run(command, cwd=ROOT, check=True)
        parts: dict[str, list[str]] = {name: [] for name in FILES}
        for entry in entries(whole.read_text(encoding="utf-8")):
            parts[CUDA_LOCK if entry.startswith(CUDA) else LOCK].append(entry)
    for name, found in parts.items():
        (ROOT / name).write_text(HEADER.format(FILES[name]) + "".join(found), encoding="utf-8")
        print(f"{name}: {len(found)} packages")
    return 0


def entries(text: str) -> Iterator[str]:
    """One requirement with its hashes at a time: a line, and the indented lines after it."""
    entry = ""
    for line in text.splitlines(keepends=True):
        if not line.startswith((" ", "#")) and entry:
            yield entry
            entry = ""
        entry += "" if line.startswith(("#", "\n")) else line
    if entry:
        yield entry


if __name__ == "__main__":
    sys.exit(main())
