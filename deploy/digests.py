"""``make digests``: pins the base images of Dockerfile and compose.yaml by the digests that their registry gives now.

Needs skopeo or Docker's buildx, and a registry that can be reached. A digest that is there is replaced.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable

from deploy.locked import ROOT

FILES = ("Dockerfile", "compose.yaml")
_IMAGE = re.compile(r"(?:IMAGE=|_IMAGE:-)([\w./-]+:[\w.-]+)(?:@sha256:[0-9a-f]{64})?")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_ASK = {
    "skopeo": lambda image: ["skopeo", "inspect", "--format", "{{.Digest}}", f"docker://{image}"],
    "docker": lambda image: ["docker", "buildx", "imagetools", "inspect", "--format", "{{.Manifest.Digest}}", image],
}


def main() -> int:
    tool = next((name for name in _ASK if shutil.which(name)), None)
    if tool is None:
        print("Digests come from a registry: install skopeo or Docker first.", file=sys.stderr)
        return 1
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in FILES}
    try:
        found = {image: digest(tool, image) for image in sorted(images(*texts.values()))}
    except LookupError as error:
        print(f"{error} Nothing was changed.", file=sys.stderr)
        return 1
    for name, text in texts.items():
        (ROOT / name).write_text(with_digests(text, found.__getitem__), encoding="utf-8")
    for image, its in found.items():
        print(f"{image}@{its}")
    return 0


def images(*texts: str) -> set[str]:
    """Every base image that is named by default, without its digest."""
    return {image for text in texts for image in _IMAGE.findall(text)}


def with_digests(text: str, digest_of: Callable[[str], str]) -> str:
    def pinned(match: re.Match[str]) -> str:
        named = match[0].partition("@")[0]
        return f"{named}@{digest_of(match[1])}"

    return _IMAGE.sub(pinned, text)


def digest(tool: str, image: str) -> str:
    """That of the index of all platforms, which a pull by tag resolves."""
    done = subprocess.run(_ASK[tool](image), capture_output=True, text=True, timeout=120)
    said = done.stdout.strip()
    if done.returncode or not _DIGEST.fullmatch(said):
        reason = (done.stderr.strip() or said or "no answer").splitlines()[-1][:300]
        raise LookupError(f"{tool} could not resolve {image} ({reason}).")
    return said


if __name__ == "__main__":
    sys.exit(main())
