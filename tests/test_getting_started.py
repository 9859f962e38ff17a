"""docs/getting-started.md, followed to the letter: every command of the page, in its order, with the demo's model."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from precompute.cli import main

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
COMMAND = ".venv/bin/python -m precompute "


def commands() -> list[str]:
    """The page's shell commands; a here-document is one."""
    blocks = re.findall(r"^```bash\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return [
        found[0]
        for block in blocks
        for found in re.finditer(r"^cat .*<<'(\w+)'\n(?:.*\n)*?\1$|^.+$", block, re.MULTILINE)
    ]


@pytest.mark.slow
def test_a_newcomer_can_follow_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path / "cache"))
    said: dict[str, str] = {}
    for line in commands():
        if line.startswith(COMMAND):
            arguments = shlex.split(line.removeprefix(COMMAND))
            status = main(arguments)
            said[arguments[0]] = "".join(capsys.readouterr())
            assert status == 0, f"{line}\n{said[arguments[0]]}"
        elif line.startswith("make "):
            subprocess.run([*shlex.split(line), "--dry-run"], cwd=ROOT, check=True, capture_output=True)
        else:
            assert line.startswith("cat > my-"), line
            subprocess.run(line, shell=True, check=True, cwd=tmp_path)
    assert "12 documents" in said["all"]
    assert "done" in said["status"]
    assert "no problems found" in said["verify"]
    assert "\nFindings\n" in said["report"]
    assert "heads" in said["explain"]
    assert "4 queries" in said["retrieve"] or "query set" in said["retrieve"]
    assert "12 of 12 documents labelled" in said["label"]
    assert "3 topics" in said["analyse"]
