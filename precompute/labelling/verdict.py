"""From a server's reply to the answer that is stored: what it says, what it cost, and whether to ask once more."""

from __future__ import annotations

from dataclasses import dataclass

from precompute.labelling.answers import Answer
from precompute.labelling.client import Reply
from precompute.labelling.config import AskConfig
from precompute.labelling.prices import cost
from precompute.labelling.reading import ReadAnswer, read
from precompute.labelling.request import longest
from precompute.labelling.secret import Secret

EMPTY = "the document is empty"
CHANCES = 2
"""Paid answers for one document: a bad one is asked for once more."""


@dataclass(frozen=True)
class JudgedReply:
    answer: Answer
    """Its tokens and cost are those of this reply alone."""
    final: bool
    """A topic was found, or the document's chances are used up."""


def verdict(
    reply: Reply, config: AskConfig, secret: Secret, prompt_tokens: int, paid_before: int, batch: bool = False
) -> JudgedReply:
    """``paid_before``: answers for the same document, all of them bad. ``prompt_tokens``: an estimate, which counts
    where a server does not say what it used."""
    found = read(reply.text, config.topics, reply.refusal, reply.finish)
    prompt = prompt_tokens if reply.prompt_tokens is None else reply.prompt_tokens
    completion = longest(config) if reply.completion_tokens is None else reply.completion_tokens
    model = secret.clean(reply.model or config.model, most=100)
    dollars = cost(config.model, prompt, completion, batch, config.base_url)
    if isinstance(found, ReadAnswer):
        return JudgedReply(Answer(found.topic, found.confidence, None, model, prompt, completion, dollars), True)
    reason = secret.clean(found.reason)
    return JudgedReply(Answer(None, None, reason, model, prompt, completion, dollars), paid_before + 1 >= CHANCES)


def unlabellable(reason: str, config: AskConfig) -> Answer:
    """For a document that nobody was paid for."""
    return Answer(None, None, reason, config.model, 0, 0, cost(config.model, 0, 0, base_url=config.base_url))
