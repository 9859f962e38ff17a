"""From a server's reply to the answer that is stored: which topic it names, what it cost, whether to ask once more."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from precompute.labelling.answers import Answer
from precompute.labelling.client import Reply
from precompute.labelling.config import AskConfig
from precompute.labelling.prices import cost
from precompute.labelling.request import longest
from precompute.labelling.secret import Secret

_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCED = re.compile(r"\A```(?:json)?[ \t]*\n(.*)\n```\Z", re.DOTALL | re.IGNORECASE)
STOPS = {
    "length": "the answer was cut off at its length limit",
    "content_filter": "the server's content filter stopped the answer",
}
"""Why a model stopped, where that is not its own end."""


@dataclass(frozen=True)
class ReadAnswer:
    topic: str
    confidence: float | None
    """0 to 1; None where the answer had none that makes sense, which the topic does not suffer from."""


@dataclass(frozen=True)
class Problem:
    reason: str
    """Lower-case, no full stop: it stands in a table beside the document."""


def read(
    text: str | None, topics: Sequence[str], refusal: str | None = None, finish: str | None = None
) -> ReadAnswer | Problem:
    """One answer. ``finish`` is the protocol's finish_reason.

    Servers without schema support answer in a code fence, think aloud first, or spell a topic in their own way; nothing
    else around the JSON is forgiven, for a topic that was merely mentioned is no answer.
    """
    if refusal:
        return Problem(f"the model refused: {refusal}")
    if finish in STOPS:
        return Problem(STOPS[finish])
    if text is None or not text.strip():
        return Problem("the answer is empty")
    found = _parsed(_THOUGHT.sub("", text).strip())
    if isinstance(found, Problem):
        return found
    if not isinstance(found, dict) or not isinstance(found.get("topic"), str):
        return Problem(f"the answer has no topic: {text.strip()}")
    topic = _matched(found["topic"], topics)
    if topic is None:
        return Problem(f"the answer is not a topic on the list: {found['topic']}")
    return ReadAnswer(topic, _confidence(found.get("confidence")))


def _parsed(text: str) -> Any:
    fenced = _FENCED.match(text)
    try:
        return json.loads(fenced.group(1) if fenced else text, parse_constant=_not_json)
    except (ValueError, RecursionError):
        return Problem(f"the answer is not JSON: {text}")


def _not_json(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _matched(name: str, topics: Sequence[str]) -> str | None:
    """Letter for letter, or else the only topic that differs in case, spaces or the spelling of its characters."""
    if name in topics:
        return name
    alike = [topic for topic in dict.fromkeys(topics) if _plain(topic) == _plain(name)]
    return alike[0] if len(alike) == 1 else None


def _plain(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def _confidence(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and 0 <= value <= 1 else None


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
