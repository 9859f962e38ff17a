"""Nobody who reads waits for an object store that says nothing.

Those who want the same thing share one call. In the app (``hurried``) a call has a thread of its own: its readers leave
it once the store has said nothing for ``SILENCE`` seconds, and from then on nobody asks the store but a probe in the
background. A call that bytes arrive for is waited for, however long it takes; one that was left goes on without its
readers, and what it brings is there for the next ones. A job calls in its own thread and waits as long as retries last.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, wait
from datetime import UTC, datetime, timedelta
from typing import Any

from core.cache_address import Address
from core.errors import Mistake, NoAnswer, RemoteMistake

SILENCE, PROBED = 1.2, 2.0
"""Seconds of silence that a reader waits for, and between two probes."""
_GLANCE = 0.2
"""Seconds after which a reader looks again whether the store is what keeps a call."""


class Call(Future[Any]):
    def __init__(self) -> None:
        super().__init__()
        self.begun = time.monotonic()

    since: float | None = None
    """When the store was asked what it has not answered yet; None while the call is busy on this machine."""

    def is_lost(self, heard: float) -> bool:
        """Whether it hangs, and the store has answered others since."""
        since = self.since
        return since is not None and since + SILENCE < time.monotonic() and heard > since


class Breaker:
    """``probe`` asks the store for something small."""

    def __init__(self, address: Address, probe: Callable[[], object]) -> None:
        self._address, self._probe = address, probe
        self.hurried = False
        self.heard = -math.inf
        """When the store last answered."""
        self.silent_since: float | None = None
        """Since when it does not answer readers; None while it does. Moments are those of time.monotonic."""
        self._running: dict[Hashable, Call] = {}
        self._guard = threading.Lock()
        self._mine = threading.local()

    @property
    def trouble(self) -> str:
        """That the store is silent, in a sentence with a remedy; '' while it is not."""
        since = self.silent_since
        return self._silent_sentence(since) if since is not None else ""

    def _silent_sentence(self, since: float) -> str:
        return (
            f"{self._address} has not answered since {clock(since)}. The server retries by itself: reload the page in "
            "a moment. If this persists, check the network connection and AWS_ENDPOINT_URL."
        )

    def is_running(self, key: Hashable) -> bool:
        return key in self._running

    def share(self, key: Hashable, work: Callable[[], Any], within: float = math.inf) -> Any:
        """What ``work`` returns, done once for all who ask for ``key`` at the same time.

        A reader who can do without leaves so many seconds after it was begun, with None.
        """
        if getattr(self._mine, "call", None) is not None:  # it is part of a call
            return work()
        if self.hurried and (trouble := self.trouble):
            raise NoAnswer(trouble)
        with self._guard:
            call = self._running.get(key)
            begun = call is None or (self.hurried and call.is_lost(self.heard))
            if call is None or begun:
                call = self._running[key] = Call()
        if begun and self.hurried:
            threading.Thread(target=self._run, args=(call, key, work), daemon=True).start()
        elif begun:
            self._run(call, key, work)
        while self.hurried and not call.done():
            since = self._unanswered_since(call)
            left = SILENCE if since is None else since + SILENCE - time.monotonic()
            if since is not None and left <= 0:
                self._open(since)
                raise NoAnswer(self._silent_sentence(since))
            if (time_left := call.begun + within - time.monotonic()) <= 0:
                return None
            wait([call], min(_GLANCE, left, time_left))
        return call.result()

    def _unanswered_since(self, call: Call) -> float | None:
        """Since when the store says nothing that this call could go on with: to it, or to anybody."""
        since = call.since
        others = [other.since for other in list(self._running.values())]
        silent = [each for each in others if each is not None and each > self.heard]
        return min([since, *silent]) if since is not None else None

    def _run(self, call: Call, key: Hashable, work: Callable[[], Any]) -> None:
        self._mine.call = call
        found, failed = None, None
        try:
            found = work()
        except BaseException as error:
            failed = error
        self._mine.call = None
        with self._guard:  # before it is answered: whoever comes after that begins anew
            if self._running.get(key) is call:
                del self._running[key]
        call.set_exception(failed) if failed is not None else call.set_result(found)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Around each request: what the store says, even that it refuses, ends its silence."""
        call, since = getattr(self._mine, "call", None), time.monotonic()
        if call is not None:
            call.since = since
        try:
            yield
        except NoAnswer:
            if self.heard < since:  # otherwise it has answered others meanwhile
                self._open(since)
            raise
        except (FileNotFoundError, RemoteMistake):
            self._hear()
            raise
        else:
            self._hear()
        finally:
            if call is not None:
                call.since = None

    def _hear(self) -> None:
        self.heard, self.silent_since = time.monotonic(), None

    def _open(self, since: float) -> None:
        with self._guard:
            if not self.hurried or self.silent_since is not None:
                return
            self.silent_since = since
        threading.Thread(target=self._ask_on, args=(since,), daemon=True).start()

    def _ask_on(self, since: float) -> None:
        while self.silent_since == since:
            with contextlib.suppress(Mistake):
                self._probe()
            time.sleep(PROBED)


def clock(moment: float) -> str:
    """The time of day at a moment of time.monotonic."""
    return f"{datetime.now(UTC) - timedelta(seconds=time.monotonic() - moment):%H:%M:%S} UTC"
