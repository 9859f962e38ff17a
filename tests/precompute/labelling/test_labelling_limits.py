"""Limits by a clock that the test turns, prices by hand, and how long a server asks to wait."""

from __future__ import annotations

import asyncio

import pytest

from core.errors import Mistake
from precompute.labelling.config import AskConfig
from precompute.labelling.endpoint import address, other_server
from precompute.labelling.faults import retry_after
from precompute.labelling.limits import Bucket
from precompute.labelling.prices import cost


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


def passed(per_minute: float, amounts: list[float]) -> list[float]:
    """When each of the amounts was let through."""
    clock = Clock()
    bucket = Bucket(per_minute, clock, clock.sleep)

    async def take() -> list[float]:
        times = []
        for amount in amounts:
            await bucket.take(amount)
            times.append(round(clock.now, 6))
        return times

    return asyncio.run(take())


def test_five_seconds_worth_at_once_then_evenly() -> None:
    # 130 a minute: two a second flow in, ten at once.
    assert passed(130, [1] * 14) == [0.0] * 10 + [0.5, 1.0, 1.5, 2.0]


@pytest.mark.parametrize("per_minute", [1, 6, 60, 500])
def test_no_minute_sees_more_than_the_limit(per_minute: int) -> None:
    times = passed(per_minute, [1] * (3 * per_minute + 2))
    for first in times:
        assert sum(first <= at < first + 60 - 1e-6 for at in times) <= per_minute
    assert times[-1] <= 65 * 4  # and not much less


def test_a_request_larger_than_the_bucket_leaves_a_debt_to_the_next() -> None:
    # 6,500 tokens a minute: 100 a second, 500 at once. 2,000 go from a full bucket and leave a debt of 1,500.
    assert passed(6_500, [2_000, 100]) == [0.0, 16.0]


def test_waiting_requests_keep_their_order() -> None:
    clock, order = Clock(), []

    async def take(bucket: Bucket, amount: int) -> None:
        await bucket.take(amount)
        order.append(amount)

    async def all_of_them() -> None:
        bucket = Bucket(65, clock, clock.sleep)
        await asyncio.gather(*(take(bucket, amount) for amount in (5, 4, 1, 3)))

    asyncio.run(all_of_them())
    assert order == [5, 4, 1, 3]


def test_prices_by_hand() -> None:
    assert cost("gpt-4o", 1_000_000, 100_000) == pytest.approx(2.50 + 1.00)
    assert cost("gpt-4o", 1_000_000, 100_000, batch=True) == pytest.approx(1.75)
    assert cost("gpt-4o-mini", 2_000_000, 0) == pytest.approx(0.30)
    assert cost("gpt-4o-2024-08-06", 1_000_000, 0) == pytest.approx(2.50)  # a snapshot costs what its model does
    assert cost("gpt-4o-2024-05-13", 1_000_000, 0) == pytest.approx(5.00)  # but for this one
    assert cost("llama-3", 1, 1) is None
    assert cost("gpt-4o", 1, 1, base_url="http://localhost:8000/v1") is None
    assert cost("gpt-4o", 1_000_000, 0, base_url="https://api.openai.com/v1") == pytest.approx(2.50)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "7", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:30 GMT"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:27:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
    ],
)
def test_how_long_a_server_asks_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    at = 1445412480.0  # Wed, 21 Oct 2015 07:28:00 GMT
    assert retry_after(headers, now=at) == seconds


def test_addresses_have_one_spelling_and_no_passwords() -> None:
    assert other_server(None) is other_server("") is other_server("https://api.openai.com/v1") is None
    assert (
        other_server("HTTP://LocalHost:8000/v1/") == "http://localhost:8000/v1" == address("http://localhost:8000/v1")
    )
    assert address(None) == "https://api.openai.com/v1"
    assert other_server("http://[::1]:80/v1") == "http://[::1]:80/v1"
    for wrong in ("localhost:8000", "ftp://x/v1", "http://", "http://x:port/v1"):
        with pytest.raises(Mistake, match="not a valid server address"):
            other_server(wrong)
    with pytest.raises(Mistake, match="password") as told:
        other_server("https://me:hunter2@host/v1")
    assert "hunter2" not in str(told.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"topics": ("one",)}, "at least two topics"),
        ({"model": " "}, "--label-model"),
        ({"concurrency": 0}, "--concurrency must be at least 1, not 0"),
        ({"excerpt_tokens": 10}, "--excerpt-tokens must be at least 50, not 10"),
        ({"max_cost": -1.0}, "--max-cost must be at least 0, not -1"),
        ({"max_cost": float("nan")}, "--max-cost must be at least 0, not nan"),
        ({"base_url": "nowhere"}, "--base-url"),
    ],
)
def test_a_senseless_config_is_a_mistake(change: dict[str, object], said: str) -> None:
    with pytest.raises(Mistake, match=said):
        AskConfig(**{"topics": ("a", "b"), **change})  # type: ignore[arg-type]
