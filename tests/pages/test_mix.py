"""Heads and weights in the address, and as the browser sends them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.shared.components.head_weights import checked_weights
from pages.shared.heads_in_address import format_weights, parse_weights


@pytest.mark.parametrize(
    ("weights", "text"),
    [
        ([1, 1, 1], ""),
        ([0, 0, 0], "none"),
        ([1, 1, 0, 1], "1-2,4"),
        ([0.5, 0.5, 2, 0], "1-2*0.5,3*2"),
        ([0, 0.001, 1], "2*0.01,3"),
        ([1000, 0], "1*99"),
    ],
)
def test_by_hand(weights: list[float], text: str) -> None:
    assert format_weights(weights) == text


@given(st.lists(st.integers(0, 9_900).map(lambda weight: weight / 100), min_size=1, max_size=40))
def test_what_is_written_is_read_again(weights: list[float]) -> None:
    found = parse_weights(format_weights(weights), len(weights))
    assert found is not None
    assert np.allclose(found, weights, atol=1e-9)


@pytest.mark.parametrize("text", ["0", "5", "1-9", "2-1", "1*", "1*-1", "1*1e9", "1*nan", "a", ",", "1,,2", "١", "1 "])
def test_what_names_no_heads_of_this_model_is_refused(text: str) -> None:
    assert parse_weights(text, 4) is None


@given(st.text(max_size=60))
def test_any_text_gives_weights_or_nothing(text: str) -> None:
    found = parse_weights(text, 4)
    assert found is None or (found.shape == (4,) and (found >= 0).all() and (found <= 99.99).all())


@pytest.mark.parametrize(
    "given_",
    [
        None,
        [],
        {"weights": [1, 1]},
        {"weights": [1], "press": 1},
        {"weights": [1, float("nan")], "press": 1},
        {"weights": [1, -1], "press": 1},
        {"weights": [1, 1e9], "press": 1},
        {"weights": [1, True], "press": 1},
        {"weights": "11", "press": 1},
        {"weights": [1, 1], "press": "1"},
    ],
)
def test_what_the_browser_sends_is_checked(given_: Any) -> None:
    assert checked_weights(given_, 2) is None


def test_weights_from_the_browser() -> None:
    assert checked_weights({"weights": [1, 0.333], "press": 3}, 2) == [1.0, 0.33]
