"""A process of its own that works for this one: it may die without taking this one with it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from core.errors import Mistake
from core.model.embedder import Embedded
from precompute.steps.embed.part_spec import PartSpec
from precompute.steps.embed.surviving import Died, Unusable

_ROOT = Path(__file__).parents[2]
_DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG."""


class Child:
    """The other end: requests are written to it, answers read from it; whoever waits for many selects by fileno()."""

    def __init__(self, spec: PartSpec) -> None:
        threads = {} if spec.threads is None else {"OMP_NUM_THREADS": str(spec.threads)}
        paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "precompute.job.child", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # what is read ahead would not be seen by who selects
            env={**os.environ, **threads, "PYTHONPATH": os.pathsep.join(paths)},
        )
        self.send(spec)

    def send(self, request: Any) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has died: receive() says so
            _write(self._process.stdin.fileno(), request)

    def receive(self) -> Any:
        """The next answer; a Mistake of the other process is raised here, its death as Died."""
        try:
            answer = _read(self.fileno())
        except (EOFError, OSError):
            raise Died(self._last_words()) from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def embed(self, texts: list[str]) -> Embedded:
        self.send(texts)
        answer = self.receive()
        assert isinstance(answer, Embedded)
        return answer

    def fileno(self) -> int:
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def close(self) -> None:
        """Ends it, whatever it does."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]

    def _last_words(self) -> str:
        status = self._process.wait()
        if status >= 0:
            return f"The process ended with status {status}."
        with contextlib.suppress(ValueError):
            return f"The process was ended by signal {-status} ({signal.Signals(-status).name})."
        return f"The process was ended by signal {-status}."


class Isolated:
    """Embeds in a process apart, and in another one if that dies."""

    def __init__(self, spec: PartSpec) -> None:
        self._spec = spec
        self._child: Child | None = None

    def embed(self, texts: list[str]) -> Embedded:
        self._child = self._child or Child(self._spec)
        try:
            return self._child.embed(texts)
        except (Died, Unusable) as error:
            self._close()
            raise Died(str(error)) from None

    def _close(self) -> None:
        if self._child is not None:
            self._child.close()
        self._child = None

    def __enter__(self) -> Isolated:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()


def main(parent: int) -> None:
    """Answers requests: a part's number by what becomes of it, texts by their vectors."""
    _die_with(parent)
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(2, 1)  # what a library prints is no answer

    def answer(message: Any) -> None:
        _write(answers, message)

    from precompute.steps.embed.part import Worker, hush

    hush()
    worker = Worker(_read(requests))
    while True:
        try:
            request = _read(requests)
        except EOFError:
            return
        try:
            if isinstance(request, list):
                answer(worker.embed(request))
            else:
                answer(worker.load() if request is None else worker.work(request, answer))
        except (Mistake, Unusable) as error:
            answer(type(error)(str(error)))
        except Exception as error:
            if not isinstance(request, list):
                raise  # a bug of ours: its traceback is of use
            answer(RuntimeError(f"{type(error).__name__}: {error}"))


def _write(to: int, message: Any) -> None:
    data = memoryview(pickle.dumps(message))
    data = memoryview(len(data).to_bytes(8, "little") + data)
    while data:
        data = data[os.write(to, data) :]


def _read(where: int) -> Any:
    """The next message, and not a byte beyond it."""
    return pickle.loads(_bytes(where, int.from_bytes(_bytes(where, 8), "little")))


def _bytes(where: int, count: int) -> bytes:
    found = bytearray()
    while len(found) < count:
        more = os.read(where, min(count - len(found), 2**20))
        if not more:
            raise EOFError
        found += more
    return bytes(found)


def _die_with(parent: int) -> None:
    """Where the system can do that: a job that is killed leaves nobody who writes into its run."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]))
