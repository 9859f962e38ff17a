"""The app as a server."""

from __future__ import annotations

import contextlib
import functools
import os
import random
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import ROOT

SLOW = 180_000
"""Milliseconds to wait for something that will come: generous, for a loaded machine; no test asserts a time."""


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[..., str]]:
    """Starts the app (or another ``script``) on a cache and returns its address; it ends with the test's file.

    ``log`` is a file for what it says; ``flags`` and variables of the ``environment`` are added.
    """
    with contextlib.ExitStack() as running:
        yield functools.partial(_start_server, running)


@pytest.fixture(scope="session")
def served() -> Iterator[Callable[[Path], str]]:
    """The address of the app on a cache that several files look at: one server for all of them."""
    with contextlib.ExitStack() as running:
        # On a busy machine the model's threads wait for each other.
        yield functools.cache(functools.partial(_start_server, running, OMP_NUM_THREADS="1"))


def _start_server(
    running: contextlib.ExitStack,
    cache: Path,
    script: str = "app.py",
    port: int | None = None,
    log: Path | None = None,
    flags: tuple[str, ...] = (),
    **environment: str,
) -> str:
    port = port or free_port()
    flags = ("--server.headless=true", f"--server.port={port}", "--server.address=127.0.0.1", *flags)
    with open(log or os.devnull, "wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", script, *flags, "--server.fileWatcherType=none"],
            cwd=ROOT,
            env={**os.environ, "HEADSCOPE_CACHE": str(cache), "PYTHONPATH": str(ROOT), **environment},
            stdout=said,
            stderr=said,
        )
    running.callback(_end_server, process)
    address = f"http://127.0.0.1:{port}"
    late = time.monotonic() + 3 * SLOW / 1000
    while time.monotonic() < late:
        assert process.poll() is None, "the app has ended"
        try:
            urllib.request.urlopen(f"{address}/_stcore/health", timeout=2).read()
            return address
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the app did not start")


def _end_server(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:  # a page that is still at work, on a machine that has no time for it
        process.kill()
        process.wait()


def free_port() -> int:
    """One that nobody gets before a slow server has it: the system gives others only from 32,768 on."""
    while True:
        port = random.SystemRandom().randrange(12_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
