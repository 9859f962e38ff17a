"""A request's body, in the dialect that the server understands; the same for a single request and a line of a batch."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from precompute.labelling.answers import key_of
from precompute.labelling.config import AskConfig
from precompute.labelling.endpoint import other_server
from precompute.labelling.prompt import TOPIC, excerpt, messages, schema, tokens

_THINKING = ("o1", "o3", "o4", "gpt-5")
"""Models that think before they answer: they take no temperature, and their thoughts count as tokens of the answer."""
_ROOM, _ROOM_TO_THINK = 200, 2_000
"""The longest answer in tokens: a topic's name and a number need few."""
_MORE_ROOM = 2
"""How much longer the second answer may be than a first one that was bad."""
_TYPICAL, _TYPICAL_WITH_THOUGHTS = 30, 400
"""Tokens of an answer as it usually is, for the estimate."""
_WARMER = 0.5
"""The second try's temperature: at 0 a bad answer would come back word for word."""
_OVERHEAD = 20
"""Tokens that the protocol itself adds to a request."""


@dataclass(frozen=True)
class Dialect:
    """What a server understands of the protocol."""

    schema: bool = True
    temperature: bool = True
    limit: str | None = "max_completion_tokens"
    """What the answer's longest length is called; None: the server knows no such thing."""


@dataclass(frozen=True)
class AskedQuestion:
    sent: str
    """The document's excerpt."""
    key: str
    """Of its answer in the store."""
    fixed: int
    """Tokens of a request without its document."""

    @property
    def is_empty(self) -> bool:
        """Nobody is asked, or paid, about nothing."""
        return not self.sent.strip()

    @cached_property
    def tokens(self) -> int:
        """To send, by estimate: instructions, topics, the schema (which is billed too) and the excerpt."""
        return self.fixed + tokens(json.dumps(self.sent, ensure_ascii=False))


def question(text: str, config: AskConfig) -> AskedQuestion:
    sent = excerpt(text, config.excerpt_tokens)
    aspect = () if config.aspect == TOPIC else (config.aspect, *config.definitions)
    key = key_of(sent, config.topics, config.model, config.base_url, aspect)
    return AskedQuestion(sent, key, _fixed_tokens(config.topics, config.aspect, config.definitions))


def first_dialect(config: AskConfig) -> Dialect:
    """OpenAI's newest models refuse the limit's old name, and most other servers only know the old one."""
    limit = "max_tokens" if other_server(config.base_url) else "max_completion_tokens"
    return Dialect(temperature=not thinks(config.model), limit=limit)


def simpler(dialect: Dialect, complaint: str) -> Dialect | None:
    """The dialect without what a server complained of; None if it complained of something else."""
    if dialect.schema and any(word in complaint for word in ("response_format", "json_schema", "structured output")):
        return replace(dialect, schema=False)
    if dialect.temperature and "temperature" in complaint:
        return replace(dialect, temperature=False)
    if dialect.limit and dialect.limit in complaint:
        return replace(dialect, limit="max_tokens" if dialect.limit == "max_completion_tokens" else None)
    return None


def body(config: AskConfig, sent: str, dialect: Dialect, again: bool = False) -> dict[str, Any]:
    """``sent`` is the document's excerpt; ``again`` that the first answer was bad."""
    made: dict[str, Any] = {"model": config.model, "messages": _messages(config, sent)}
    if dialect.schema:
        made["response_format"] = schema(config.topics)
    if dialect.temperature:
        made["temperature"] = _WARMER if again else 0.0
    if dialect.limit:
        made[dialect.limit] = longest(config, again)
    return made


def longest(config: AskConfig, again: bool = False) -> int:
    """The longest answer, in tokens; local models may think too, and cost nothing."""
    room = _ROOM_TO_THINK if thinks(config.model) or other_server(config.base_url) else _ROOM
    return room * (_MORE_ROOM if again else 1)


def typical(config: AskConfig) -> int:
    return _TYPICAL_WITH_THOUGHTS if thinks(config.model) else _TYPICAL


def longest_prompt(config: AskConfig) -> int:
    """The tokens of a request with an excerpt as long as may be."""
    return _fixed_tokens(config.topics, config.aspect, config.definitions) + config.excerpt_tokens


def _messages(config: AskConfig, sent: str) -> list[dict[str, str]]:
    return messages(sent, config.topics, config.aspect, config.definitions)


@lru_cache(maxsize=8)
def _fixed_tokens(topics: tuple[str, ...], aspect: str, definitions: tuple[str, ...]) -> int:
    written = "".join(message["content"] for message in messages("", topics, aspect, definitions))
    return tokens(written) + tokens(json.dumps(schema(topics), ensure_ascii=False)) + _OVERHEAD


def thinks(model: str) -> bool:
    return model.startswith(_THINKING)
