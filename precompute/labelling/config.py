"""How documents are asked about, how far that has come, and what it will cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.errors import Mistake
from precompute.labelling.endpoint import other_server
from precompute.labelling.prompt import TOPIC

_LEAST = {
    "excerpt_tokens": 50,
    "concurrency": 1,
    "requests_per_minute": 1,
    "tokens_per_minute": 1,
    "timeout": 0.001,
    "tries": 1,
    "max_cost": 0,
    "backoff": 0,
}


@dataclass(frozen=True)
class AskConfig:
    topics: tuple[str, ...]
    model: str = "gpt-4o"
    base_url: str | None = None
    """None: OpenAI's own, whatever OPENAI_BASE_URL says; the command line reads that variable."""
    excerpt_tokens: int = 1500
    """Of each document, head and tail together; see prompt.tokens for what counts as one."""
    concurrency: int = 16
    """Requests under way at once."""
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    timeout: float = 60.0
    """Seconds for one answer, from the first byte sent to the last one received."""
    tries: int = 6
    """How often one request is sent, before the server counts as silent."""
    max_cost: float | None = None
    """US dollars, in this start."""
    backoff: float = 0.5
    """Seconds before the second try; doubled for each one after it."""
    aspect: str = TOPIC
    """What ``topics`` are values of."""
    definitions: tuple[str, ...] = ()
    """Of these values, where they are not topics."""

    def __post_init__(self) -> None:
        other_server(self.base_url)
        if len(set(self.topics)) < 2:
            raise Mistake("There is nothing to choose from: give at least two topics with --topics.")
        if not self.model.strip():
            raise Mistake("The model has no name. Give one with --label-model, such as gpt-4o.")
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= least):
                raise Mistake(f"--{name.replace('_', '-')} must be at least {least}, not {value}.")


@dataclass(frozen=True)
class Tally:
    """Where the asking stands; ``done`` is ``labelled`` and ``failed`` together."""

    documents: int
    done: int
    labelled: int
    failed: int
    """No topic was found, or no answer was had."""
    reused: int
    """Of those done, the ones for which nothing was paid in this start."""
    spent: float | None
    """US dollars, in this start; None where the price is not known."""
    prompt_tokens: int
    completion_tokens: int
    stopped: str | None
    """Why not all documents were asked about, in a sentence; None when they were."""


@dataclass(frozen=True)
class Estimate:
    """What is known before anything is spent."""

    documents: int
    reused: int
    """Answered before: nothing is sent for them."""
    tokens: int
    """To send and to get, for the others."""
    cost: float | None
    """US dollars; None where the price is not known."""
    prices_of: str
