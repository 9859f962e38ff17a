"""Two nodes of a Ray cluster on one machine, each a process group that can be killed whole."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ENVIRONMENT = {
    "RAY_AUTH_MODE": "disabled",  # it would write a token into the home folder
    "RAY_USAGE_STATS_ENABLED": "0",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
}
_PATIENCE = 180


class Node:
    """One ``ray start``."""

    def __init__(self, *options: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--num-cpus=1", *options],
            env={**os.environ, **ENVIRONMENT},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def replicas(self) -> list[int]:
        """The workers that hold a model on this node."""
        return [process for process in self._processes() if "ray::Replica" in command_of(process)]

    def kill(self) -> None:
        """The node is lost: all its processes at once, without a word."""
        for process in [self._process.pid, *self._processes()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._process.wait()

    def _processes(self) -> list[int]:
        """All that descend from it, whatever session they are in."""
        parents = {int(path.name): parent_of(path) for path in Path("/proc").iterdir() if path.name.isdigit()}
        found = [self._process.pid]
        for process in found:
            found += [child for child, parent in parents.items() if parent == process]
        return found[1:]


@contextlib.contextmanager
def cluster(nodes: int = 2) -> Iterator[tuple[str, list[Node]]]:
    """The address of a cluster with so many nodes of one processor each, and the nodes; the first is its head."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    address = f"127.0.0.1:{port}"
    head = ("--head", f"--port={port}", "--include-dashboard=false", "--node-ip-address=127.0.0.1")
    started = [Node(*head)]
    try:
        _wait_for(port)
        started += [Node(f"--address={address}", "--node-ip-address=127.0.0.1") for _ in range(nodes - 1)]
        yield address, started
    finally:
        for node in reversed(started):
            node.kill()


def _wait_for(port: int) -> None:
    for _ in range(_PATIENCE * 2):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.5)
    raise TimeoutError("Ray's head node does not come up")


def parent_of(process: Path) -> int | None:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None


def command_of(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""
