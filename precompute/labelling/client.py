"""One answer from the server: sent again while that may help, in the dialect that it understands."""

from __future__ import annotations

import asyncio
import itertools
import random
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import TracebackType
from typing import Any

import httpx2
import openai

from core.errors import Mistake
from precompute.labelling.config import AskConfig
from precompute.labelling.endpoint import address
from precompute.labelling.faults import Fault, Remedy, fault_of
from precompute.labelling.guarded import async_client
from precompute.labelling.limits import Limits
from precompute.labelling.request import AskedQuestion, body, first_dialect, longest, simpler
from precompute.labelling.secret import find_secret

_LONGEST_WAIT = 60.0
"""Seconds that the waiting between two tries grows to by itself."""
_POOL = 4
"""Requests that share a pool of connections: before each one the library looks at every idle connection of its pool."""
_PATIENCE = 600.0
"""Seconds that a server may ask for with Retry-After; one that wants more counts as silent."""


@dataclass(frozen=True)
class Reply:
    """What a server answered; everything in it but the numbers is its own words."""

    text: str | None
    refusal: str | None
    finish: str | None
    model: str | None
    prompt_tokens: int | None
    """None: the server does not say."""
    completion_tokens: int | None


class Unlabellable(Exception):
    """The server will not answer for this document; the message says why."""


class Unanswered(Exception):
    """No answer was had this time; the message says why."""


class Client:
    """A connection to the server. ``closing`` set, nothing is tried again; ``idle`` holds the tasks that only wait."""

    def __init__(self, config: AskConfig, chance: random.Random | None = None) -> None:
        self.config, self.dialect = config, first_dialect(config)
        self.closing = False
        self.idle: set[asyncio.Task[Any]] = set()
        self.secret = find_secret(config.base_url)
        self._chance = chance or random.Random()
        self._limits = Limits(config.requests_per_minute, config.tokens_per_minute)
        # Our own retries know the limits and the dialect; the library's would hide what they cost.
        first = openai.AsyncOpenAI(
            api_key=self.secret.reveal(),
            base_url=address(config.base_url),
            max_retries=0,
            timeout=config.timeout,
            http_client=_pool(),
        )
        self._pools = [first, *(first.copy(http_client=_pool()) for _ in range((config.concurrency - 1) // _POOL))]
        self._turns = itertools.cycle(self._pools)

    async def complete(self, asked: AskedQuestion, again: bool = False) -> Reply:
        """The answer. Raises Unlabellable, Unanswered, or, if no document has hope, a Mistake."""
        size = asked.tokens + longest(self.config, again)
        tries = 0
        while True:
            await self.idly(self._limits.take(size))
            dialect = self.dialect
            request = body(self.config, asked.sent, dialect, again)
            try:
                return reply_of(await self._post(request))
            except (openai.OpenAIError, TimeoutError, ValueError, RecursionError) as error:
                fault = fault_of(error, self.config, self.secret)
            if fault.remedy is Remedy.SIMPLER and not self.closing:
                if dialect != self.dialect:
                    continue  # another request has found out in the meantime
                if (plainer := simpler(dialect, fault.complaint)) is not None:
                    self.dialect = plainer
                    continue
            tries += 1
            self._give_up(fault, tries)
            await self.idly(asyncio.sleep(self._pause(tries, fault.wait)))

    def _give_up(self, fault: Fault, tries: int) -> None:
        """Raises unless the same request is worth another try."""
        # Not "from error": what a server said may hold the key, and a traceback would show it.
        if fault.remedy is Remedy.STOP:
            raise Mistake(fault.sentence) from None
        if fault.remedy is Remedy.SKIP:
            raise Unlabellable(fault.sentence) from None
        silent = tries >= self.config.tries or (fault.wait or 0) > _PATIENCE or self.closing
        if fault.remedy is not Remedy.AGAIN or silent:
            raise Unanswered(fault.sentence) from None

    async def _post(self, request: dict[str, Any]) -> object:
        """The answer's JSON. Not ``chat.completions.create``: checking what we have just built, and turning the answer
        into objects, takes half of the client's time; the body is the very one that a batch's line holds."""
        async with asyncio.timeout(self.config.timeout):  # the library's own counts from each piece to the next
            return await next(self._turns).post("/chat/completions", cast_to=object, body=request)

    def _pause(self, tries: int, asked: float | None) -> float:
        """Seconds until the next try: doubled each time, spread out, and never less than the server asks for."""
        grown = min(_LONGEST_WAIT, self.config.backoff * 2 ** (tries - 1)) * self._chance.uniform(0.5, 1.0)
        return max(grown, asked + self._chance.uniform(0, 0.1) * asked) if asked is not None else grown

    async def idly(self, waiting: Any) -> None:
        """Waits in a way that may be cut short: nothing is under way that has to be paid for."""
        task = asyncio.current_task()
        assert task is not None
        self.idle.add(task)
        try:
            await waiting
        finally:
            self.idle.discard(task)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pool in self._pools:
            await pool.close()


def _pool() -> httpx2.AsyncClient:
    return async_client(verify=_certificates())


@cache
def _certificates() -> ssl.SSLContext:
    """Read once: each pool would take a tenth of a second for its own."""
    return httpx2.create_ssl_context()


def reply_of(answer: object) -> Reply:
    """A chat completion's JSON as a reply; ValueError if it is none: the server's fault, not the model's."""
    if not isinstance(answer, Mapping) or not isinstance(answer.get("choices"), list):
        raise ValueError("no chat completion")
    choice = _mapping(answer["choices"][0] if answer["choices"] else None)
    message, usage = _mapping(choice.get("message")), _mapping(answer.get("usage"))
    return Reply(
        text=_text(message.get("content")),
        refusal=_text(message.get("refusal")),
        finish=_text(choice.get("finish_reason")),
        model=_text(answer.get("model")),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
