"""Processes that have torch already: forked from one that has imported it, and yet children of the tests' own process.

Kills, signals, exit codes and pipes are those of any process; only the five seconds of imports are saved.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
import pickle
import runpy
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HEAVY = ("torch", "transformers.models.bert.modeling_bert", "transformers.models.auto", "pyarrow.parquet")
"""Nothing of the project: what it reads when it is imported, each process reads for itself."""
_ADOPT = 36
"""PR_SET_CHILD_SUBREAPER: who loses its parent among our descendants becomes our child."""
_MESSAGE = 2**17


class WarmPopen(subprocess.Popen[Any]):
    """``Popen`` of ``[sys.executable, "-m" or "-c", …]``, without ``preexec_fn``."""

    def _execute_child(self, args: Any, *given: Any) -> None:
        cwd, env = given[4], given[5]
        ends = {given[9]: given[10], given[12]: given[11], given[14]: given[13]}  # the other process's: this one's
        message = pickle.dumps((os.getpid(), list(map(str, args[1:])), cwd, env))
        assert len(message) < _MESSAGE
        oven = _oven()
        standard = (given[9], given[12], given[14])
        socket.send_fds(oven, [message], [number if fd == -1 else fd for number, fd in enumerate(standard)])
        self.pid = int(oven.recv(32))
        self._child_created = True
        for fd, other in ends.items():
            if other != -1:  # a pipe
                os.close(fd)


@functools.cache
def _oven() -> socket.socket:
    """The other end of the process that has it all; it ends with this one."""
    ctypes.CDLL(None).prctl(_ADOPT, 1, 0, 0, 0)
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.Popen([sys.executable, __file__, str(its.fileno())], pass_fds=[its.fileno()], env=environment)
    its.close()
    assert ours.recv(32) == b"ready"
    return ours


def _next(asked: socket.socket) -> tuple[list[str], str | None, dict[str, str] | None] | None:
    """Returns in a new process what that is to do; in the first one None, when nobody asks any more."""
    while True:
        message, fds, _, _ = socket.recv_fds(asked, _MESSAGE, 3)
        if not message:
            return None
        between = os.fork()
        if between:
            os.waitpid(between, 0)
            for fd in fds:
                os.close(fd)
            continue
        if os.fork():
            os._exit(0)
        parent, arguments, cwd, env = pickle.loads(message)
        while os.getppid() != parent:
            time.sleep(0.001)
        asked.send(str(os.getpid()).encode())
        asked.close()
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
        for fd in fds:
            os.close(fd)
        return arguments, cwd, env


def _become(arguments: list[str], cwd: str | None, env: dict[str, str] | None) -> None:
    os.chdir(cwd or os.curdir)
    if env is not None:
        os.environ.clear()
        os.environ.update(env)
    sys.path[0] = os.getcwd()
    sys.path[1:1] = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    kind, what, *rest = arguments
    if kind == "-m":
        sys.argv = [what, *rest]
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        sys.argv = [kind, *rest]
        exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    for name in HEAVY:
        importlib.import_module(name)
    own = Path("/proc/self/comm").read_text()
    others = {path.read_text() for path in Path("/proc/self/task").glob("*/comm")} - {own, "jemalloc_bg_thd\n"}
    assert not others, "these threads would not be there after a fork"
    requests = socket.socket(fileno=int(sys.argv[1]))
    requests.send(b"ready")
    if (told := _next(requests)) is not None:
        _become(*told)
