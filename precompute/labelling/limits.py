"""No more requests, and no more tokens, a minute than the server allows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

_WINDOW, _BURST = 60.0, 5.0
"""Seconds: what a limit is counted over, and how much of it may come at once."""


class Bucket:
    """Lets at most ``per_minute`` through in any minute: five seconds' worth at once, then evenly.

    What flows in within a minute and what the full bucket holds make up the limit together, so that no minute,
    wherever it begins, sees more. A request larger than the bucket waits until it is full and leaves a debt to those
    behind it: by so much a minute may be overdrawn. A whole minute's worth at once would not please servers that count
    by the second.
    """

    def __init__(
        self,
        per_minute: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._rate = per_minute / (_WINDOW + _BURST)
        self._size = self._rate * _BURST
        self._level, self._at = self._size, clock()
        self._clock, self._sleep = clock, sleep
        self._turn = asyncio.Lock()  # first come, first served: a large request is not overtaken for ever

    async def take(self, amount: float) -> None:
        async with self._turn:
            needed = min(amount, self._size)
            while (missing := needed - self._filled()) > 1e-9:
                await self._sleep(missing / self._rate)
            self._level -= amount

    def _filled(self) -> float:
        now = self._clock()
        self._level = min(self._size, self._level + (now - self._at) * self._rate)
        self._at = now
        return self._level


class Limits:
    """Both limits, or whichever of them there is."""

    def __init__(self, requests_per_minute: int | None, tokens_per_minute: int | None) -> None:
        self._requests = Bucket(requests_per_minute) if requests_per_minute else None
        self._tokens = Bucket(tokens_per_minute) if tokens_per_minute else None

    async def take(self, tokens: int) -> None:
        """Returns when one more request of ``tokens`` tokens may be sent."""
        if self._requests is not None:
            await self._requests.take(1)
        if self._tokens is not None:
            await self._tokens.take(tokens)
