"""The demo, built by a button: the job runs beside the app, and every session sees how far it is."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import streamlit as st

from core.runs.backend import backend_at
from pages.shared.server.log import Stopwatch, event
from pages.shared.server.metrics import count
from pages.shared.server.visit import note

PROJECT = Path(__file__).resolve().parent.parent.parent


class Build:
    """A job in a process of its own; its reports are read by a thread, so that no page has to wait for them."""

    def __init__(self, cache: Path) -> None:
        self.fraction = 0.0
        self.sentence = "Starting …"
        self.problem = ""
        self._clock = Stopwatch()
        options = ["--cache", backend_at(cache).place, "--progress", "json"]
        command = [sys.executable, "-m", "precompute", "all", "demo", *options]
        self._process = subprocess.Popen(
            command,
            cwd=PROJECT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        self._said = ""
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def running(self) -> bool:
        return self._reader.is_alive()

    def stop(self) -> None:
        """The job goes no further; what it has finished is kept, and the next start goes on there."""
        self._process.terminate()

    def _listen(self) -> None:
        """Keeps the last line of what the job complains of; unread, it would fill the pipe, and the job would stop."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._said = line.strip() or self._said

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process:
            for line in self._process.stdout:
                try:
                    report = json.loads(line)
                except ValueError:
                    continue
                self.fraction = report["fraction"] or 0.0
                self.sentence = f"{report['step']}: {report['sentence']}"
            self._listener.join()
        if self._process.returncode:
            self.problem = self._said.removeprefix("headscope: ") or "The job stopped without an error message."
        outcome = "failed" if self.problem else "ok"
        count("headscope_builds_total", outcome)
        event("build", run="demo", ms=self._clock.ms, outcome=outcome)


@st.cache_resource
def _builds() -> dict[Path, Build]:
    return {}


def current_build(cache: Path) -> Build | None:
    """The build that was started last from this app, running or ended."""
    return _builds().get(cache)


def start_build(cache: Path) -> None:
    """Starts the job, unless it is running."""
    build = current_build(cache)
    if build is None or not build.running:
        note("build", run="demo", outcome="started")
        _builds()[cache] = Build(cache)


def stop_builds() -> None:
    """With the server its jobs end, too."""
    for build in _builds().values():
        if build.running:
            build.stop()
