"""What OpenAI's models cost, as far as this table knows; a price that is not known is None, never 0."""

from __future__ import annotations

import re
from dataclasses import dataclass

from precompute.labelling.endpoint import other_server

PRICES_OF = "2026-03-21"
"""When the table was last looked at. Cached input is cheaper than this says, so that a bill may be lower."""
BATCH = 0.5
"""The Batch API's share of the price."""


@dataclass(frozen=True)
class Price:
    """US dollars for a million tokens."""

    sent: float
    got: float


PRICES = {
    "gpt-4o": Price(2.50, 10.00),
    "gpt-4o-2024-05-13": Price(5.00, 15.00),
    "gpt-4o-mini": Price(0.15, 0.60),
    "gpt-4.1": Price(2.00, 8.00),
    "gpt-4.1-mini": Price(0.40, 1.60),
    "gpt-4.1-nano": Price(0.10, 0.40),
    "gpt-5": Price(1.25, 10.00),
    "gpt-5-mini": Price(0.25, 2.00),
    "gpt-5-nano": Price(0.05, 0.40),
}
_SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}$")


def price_of(model: str, base_url: str | None = None) -> Price | None:
    """A dated snapshot costs what its model costs, unless it has a row of its own."""
    if other_server(base_url) is not None:
        return None
    return PRICES.get(model) or PRICES.get(_SNAPSHOT.sub("", model))


def cost(
    model: str, prompt_tokens: int, completion_tokens: int, batch: bool = False, base_url: str | None = None
) -> float | None:
    """US dollars; None for an unknown model, and for a server that is not OpenAI's."""
    price = price_of(model, base_url)
    if price is None:
        return None
    return (prompt_tokens * price.sent + completion_tokens * price.got) / 1e6 * (BATCH if batch else 1.0)
