"""Threads that wait for each other sleep, as OpenMP itself says where it is loaded."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

COMMAND = "import sys; from precompute.cli import main; main(['status', '--cache', sys.argv[1]]); import torch, faiss"
TURNS = re.compile(r"GOMP_SPINCOUNT = '(\d+)'")
"""How often a thread looks whether it may go on before it sleeps."""


@pytest.fixture(autouse=True)
def telling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_DISPLAY_ENV", "VERBOSE")
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)  # which a command in this process may have set


@pytest.mark.slow
def test_threads_of_a_command_sleep_unless_one_has_chosen_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def turns() -> set[str]:
        done = subprocess.run([sys.executable, "-c", COMMAND, str(tmp_path)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return set(TURNS.findall(done.stderr))

    assert turns() == {"0"}
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    (chosen,) = turns()
    assert int(chosen) > 0


def test_threads_of_the_app_sleep(serve: Callable[..., str], tmp_path: Path) -> None:
    """The server's own half over a page that needs what embeds a document; it has run once when the server answers."""
    script = tmp_path / "embeds.py"
    script.write_text(
        "import streamlit as st\nfrom pages.shared.server.lifespan import lifespan\n"
        "if __name__ == '__main__':\n    import torch\nelse:\n    app = st.App(__file__, lifespan=lifespan)\n"
    )
    serve(tmp_path, script=str(script), log=tmp_path / "log")
    assert TURNS.findall((tmp_path / "log").read_text()) == ["0"]
