"""From an answer's text to a topic of the list, or the reason why it is none."""

from __future__ import annotations

import pytest

from precompute.labelling.reading import Problem, ReadAnswer, read

TOPICS = ("Sports", "Food, Drink", 'The "Arts"', "ﬁnance", "Straße", "Twin", "TWIN")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"topic": "Sports", "confidence": 0.5}', ReadAnswer("Sports", 0.5)),
        ('{"topic": "Food, Drink", "confidence": 1}', ReadAnswer("Food, Drink", 1.0)),
        ('{"topic": "The \\"Arts\\"", "confidence": 0}', ReadAnswer('The "Arts"', 0.0)),
        ('```json\n{"topic": "Sports", "confidence": 0.5}\n```', ReadAnswer("Sports", 0.5)),
        ('```\n{"topic": "Sports", "confidence": 0.5}\n```\n', ReadAnswer("Sports", 0.5)),
        ('<think>{"topic": "Twin"}?</think>\n{"topic": "Sports", "confidence": 0.5}', ReadAnswer("Sports", 0.5)),
        ('{"topic": "  sports ", "confidence": 0.5}', ReadAnswer("Sports", 0.5)),
        ('{"topic": "food,   drink", "confidence": 0.5}', ReadAnswer("Food, Drink", 0.5)),
        ('{"topic": "finance", "confidence": 0.5}', ReadAnswer("ﬁnance", 0.5)),  # the list has the ligature
        ('{"topic": "STRASSE", "confidence": 0.5}', ReadAnswer("Straße", 0.5)),
        ('{"topic": "Twin", "confidence": 0.5}', ReadAnswer("Twin", 0.5)),
        ('{"topic": "Sports"}', ReadAnswer("Sports", None)),
        ('{"topic": "Sports", "confidence": 1.5}', ReadAnswer("Sports", None)),
        ('{"topic": "Sports", "confidence": "high"}', ReadAnswer("Sports", None)),
        ('{"topic": "Sports", "confidence": true}', ReadAnswer("Sports", None)),
    ],
)
def test_a_topic_is_found(text: str, expected: ReadAnswer) -> None:
    assert read(text, TOPICS) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "the answer is empty"),
        (" \n", "the answer is empty"),
        ('{"topic": "Spo', "the answer is not JSON"),
        ("Sports", "the answer is not JSON"),
        ('Sure: {"topic": "Sports"}', "the answer is not JSON"),
        ('{"topic": "Sports", "confidence": NaN}', "the answer is not JSON"),
        ("[" * 100_000, "the answer is not JSON"),
        ('"Sports"', "the answer has no topic"),
        ('{"label": "Sports"}', "the answer has no topic"),
        ('{"topic": ["Sports"]}', "the answer has no topic"),
        ('{"topic": "Alchemy"}', "the answer is not a topic on the list: Alchemy"),
        ('{"topic": "twin"}', "the answer is not a topic on the list: twin"),  # two are alike: it cannot be said which
        ('{"topic": "Sport"}', "the answer is not a topic on the list: Sport"),
    ],
)
def test_anything_else_has_a_reason(text: str | None, reason: str) -> None:
    found = read(text, TOPICS)
    assert isinstance(found, Problem)
    assert found.reason.startswith(reason)


def test_refusals_and_stops_come_before_the_text() -> None:
    good = '{"topic": "Sports", "confidence": 0.5}'
    assert read(good, TOPICS, refusal="I will not.") == Problem("the model refused: I will not.")
    assert read(good, TOPICS, finish="length") == Problem("the answer was cut off at its length limit")
    assert read(good, TOPICS, finish="content_filter") == Problem("the server's content filter stopped the answer")
    assert read(good, TOPICS, finish="stop") == ReadAnswer("Sports", 0.5)
