"""The committed bundle of the head map is what its source builds to; nobody needs Node to run the app."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BUILT = ("map.js", "map.css", "map_feed.js")


@pytest.mark.slow
def test_the_bundle_is_built_from_its_source(tmp_path: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed: the bundle cannot be built again here")
    source, built = tmp_path / "frontend" / "map", tmp_path / "pages" / "shared" / "components"
    shutil.copytree(ROOT / "frontend" / "map", source, ignore=shutil.ignore_patterns("node_modules"))
    built.mkdir(parents=True)
    fetched = subprocess.run([npm, "ci", "--no-audit", "--no-fund"], cwd=source, capture_output=True, timeout=300)
    if fetched.returncode:
        pytest.skip("npm cannot fetch its packages here")
    subprocess.run([npm, "run", "build"], cwd=source, check=True, capture_output=True, timeout=120)
    for name in BUILT:
        assert (built / name).read_bytes() == (ROOT / "pages" / "shared" / "components" / name).read_bytes(), (
            f"{name} is not what frontend/map builds to: run 'make frontend' and commit it"
        )
