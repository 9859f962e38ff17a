"""Every document's topic, from the store or else from the server; and what that would cost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from precompute.labelling.answers import Answer, AnswerStore
from precompute.labelling.client import Client
from precompute.labelling.config import AskConfig, Estimate, Tally
from precompute.labelling.counts import AskCounts, Purse
from precompute.labelling.prices import PRICES_OF, cost
from precompute.labelling.request import question, typical
from precompute.labelling.window import GRACE, Window
from precompute.labelling.writer import Writer

__all__ = ["AskConfig", "Estimate", "Tally", "answer_of", "ask", "estimate"]


def ask(
    texts: Iterable[str], documents: int, config: AskConfig, answers: AnswerStore, show: Callable[[Tally], None]
) -> Tally:
    """Asks about every text that has no final answer in the store; memory does not grow with their number.

    After Ctrl-C, answers that arrive within a few seconds are kept, and KeyboardInterrupt goes on its way.
    """
    counts = AskCounts(documents, config, show)
    purse = Purse(config, counts)
    try:
        asyncio.run(_ask(texts, config, answers, counts, purse))
    finally:
        counts.show(now=True)
    return counts.tally()


async def _ask(texts: Iterable[str], config: AskConfig, answers: AnswerStore, counts: AskCounts, purse: Purse) -> None:
    async with Client(config) as client, Writer(answers) as writer:
        window = Window(config, answers, counts, purse, client, writer)
        try:
            await window.feed(texts)
            await window.settle()
        except asyncio.CancelledError:
            await window.settle(GRACE)
            raise
        except BaseException:
            await window.settle()
            raise
        window.check()


def estimate(texts: Iterable[str], config: AskConfig, answers: AnswerStore, batch: bool = False) -> Estimate:
    """What asking would cost. A text that occurs twice counts twice, though it is paid once."""
    documents = reused = prompt = completion = 0
    for text in texts:
        documents += 1
        asked = question(text, config)
        if asked.is_empty or answers.get(asked.key) is not None:
            reused += 1
            continue
        prompt += asked.tokens
        completion += typical(config)
    dollars = cost(config.model, prompt, completion, batch, config.base_url)
    return Estimate(documents, reused, prompt + completion, dollars, PRICES_OF)


def answer_of(text: str, config: AskConfig, answers: AnswerStore) -> Answer | None:
    """The stored answer; None where the document has not been asked about, or no answer was had."""
    return answers.get(question(text, config).key)
