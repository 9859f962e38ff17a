"""Counting while the asking goes on: documents, tokens, money spent and money promised."""

from __future__ import annotations

import time
from collections.abc import Callable

from core.errors import Mistake
from precompute.labelling.answers import Answer
from precompute.labelling.config import AskConfig, Tally
from precompute.labelling.prices import PRICES, cost, price_of
from precompute.labelling.request import AskedQuestion, longest

_EVERY = 0.1
"""Seconds between two reports."""


class AskCounts:
    """What has been done so far; ``show`` hears of it ten times a second at most."""

    def __init__(self, documents: int, config: AskConfig, show: Callable[[Tally], None]) -> None:
        self.documents, self._show, self._shown = documents, show, float("-inf")
        self.labelled = self.failed = self.reused = self.prompt_tokens = self.completion_tokens = 0
        self.spent: float | None = 0.0 if price_of(config.model, config.base_url) else None
        self.stopped: str | None = None

    def paid(self, answer: Answer) -> None:
        """One answer that was paid for, good or bad."""
        self.prompt_tokens += answer.prompt_tokens
        self.completion_tokens += answer.completion_tokens
        if self.spent is not None:
            self.spent += answer.cost or 0.0

    def done(self, answer: Answer | None, documents: int = 1, reused: int = 0) -> None:
        """``documents`` with the same text are over; no answer: the server was silent."""
        if answer is not None and answer.topic is not None:
            self.labelled += documents
        else:
            self.failed += documents
        self.reused += reused
        self.show()

    def tally(self) -> Tally:
        return Tally(
            documents=self.documents,
            done=self.labelled + self.failed,
            labelled=self.labelled,
            failed=self.failed,
            reused=self.reused,
            spent=self.spent,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            stopped=self.stopped,
        )

    def show(self, now: bool = False) -> None:
        clock = time.monotonic()
        if now or clock - self._shown >= _EVERY:
            self._shown = clock
            self._show(self.tally())


class Purse:
    """Money for what is under way is promised before it is sent, so that all answers together cannot pass the limit.

    What a promise has to cover is an estimate; where answers turn out dearer than theirs, later ones grow with them.
    """

    def __init__(self, config: AskConfig, counts: AskCounts, batch: bool = False) -> None:
        self._config, self._counts, self._batch = config, counts, batch
        self._promised, self._dearest = 0.0, 1.0
        if config.max_cost is not None and price_of(config.model, config.base_url) is None:
            raise Mistake(
                f"--max-cost needs a price, and the price of {config.model!r} at this server is not known (known: "
                f"OpenAI's {', '.join(PRICES)}). Leave out --max-cost, or use one of these."
            )

    def price(self, asked: AskedQuestion, again: bool = False) -> float:
        """US dollars that one answer costs at most, as far as is known; 0 where the price is not."""
        config = self._config
        whole = cost(config.model, asked.tokens, longest(config, again), self._batch, config.base_url)
        return (whole or 0.0) * self._dearest

    def promise(self, dollars: float) -> bool:
        """Whether there is enough left; if so, it is set aside."""
        limit = self._config.max_cost
        if limit is not None and (self._counts.spent or 0.0) + self._promised + dollars > limit:
            return False
        self.set_aside(dollars)
        return True

    def set_aside(self, dollars: float) -> None:
        """Enough or not: what is under way already has to be paid for."""
        self._promised += dollars

    def release(self, dollars: float) -> None:
        self._promised = max(0.0, self._promised - dollars)

    def learn(self, asked: AskedQuestion, prompt_tokens: int) -> None:
        """``prompt_tokens`` is what the server counted."""
        self._dearest = max(self._dearest, prompt_tokens / asked.tokens)

    @property
    def sentence(self) -> str:
        spent = self._counts.spent or 0.0
        limit = self._config.max_cost
        return f"The next document might cost more than --max-cost ${limit:g} leaves (${spent:.4f} is spent)."
