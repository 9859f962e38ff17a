"""Types that experiments show: claimed beyond their baselines and only there."""

from __future__ import annotations

from typing import Any

import pytest

from core.analysis.treebank import RELATIONS, REVERSED
from core.analysis.type_claims import TYPE_OF, type_claims
from core.runs.vocabulary import ATTENTION_RELATIONS

SCORES: dict[str, Any] = {
    "induction": 0.9,
    "induction_low": 0.88,
    "induction_high": 0.92,
    "induction_unrepeated": 0.004,
    "duplicate": 0.15,
    "duplicate_low": 0.14,
    "duplicate_high": 0.16,
    "duplicate_unrepeated": 0.001,
    "elsewhere": 0.002,
    "similarity": 0.3,
    "similarity_low": 0.28,
    "similarity_high": 0.32,
    "similarity_exchanged": -0.01,
    "similarity_p": 1e-6,
}


def relation(
    name: str, score: float, offset: float = 0.4, shuffled: float = 0.1, beyond: bool = True
) -> dict[str, Any]:
    figures = {"pairs": 100, "low": score - 0.05, "high": score + 0.05, "fixed_offset": -2}
    return {
        **figures,
        "relation": name,
        "score": score,
        "offset_score": offset,
        "shuffled": shuffled,
        "beyond": beyond,
    }


def test_every_relation_belongs_to_a_type_and_storage_knows_it() -> None:
    assert set(TYPE_OF) == {*RELATIONS, *REVERSED.values()}
    assert set(ATTENTION_RELATIONS) == set(TYPE_OF)
    assert list(REVERSED) == list(RELATIONS)


def test_relations_are_claimed_beyond_their_baselines_the_strongest_first() -> None:
    rows = [
        relation("determiner → noun", 0.5),
        relation("object → its preposition", 0.9, shuffled=0.6),
        relation("verb → subject", 0.95, beyond=False),
    ]
    found = type_claims({}, rows)
    assert list(found) == ["modifier"]
    assert found["modifier"].strength == pytest.approx(0.3)  # 0.9 − 0.6, more than 0.5 − 0.4
    assert found["modifier"].because == (
        "object → its preposition: the right word gets most of its attention in 90\u00a0% of 100 held-out pairs "
        "(85\u00a0% to "
        "95\u00a0%); fixed offset −2 40\u00a0%, shuffled sentences 60\u00a0%; also determiner → noun 50\u00a0%"
    )


def test_repeated_tokens_and_similar_words() -> None:
    found = type_claims(SCORES, [])
    assert set(found) == {"induction", "semantic similarity"}
    assert found["induction"].strength == pytest.approx(0.896)
    assert found["semantic similarity"].strength == pytest.approx(0.3)
    assert "at this distance without repetition 0.4\u00a0%" in found["induction"].because


@pytest.mark.parametrize(
    "change",
    [
        {"induction": 0.19, "induction_low": 0.18},
        {"induction_low": 0.09},
        {"induction_unrepeated": 0.1},  # a head that looks so far back whatever is there
        {"elsewhere": 0.1},
        {"induction": None},
    ],
)
def test_induction_needs_all_of_its_rule(change: dict[str, Any]) -> None:
    assert "induction" not in type_claims({**SCORES, **change}, [])


@pytest.mark.parametrize("change", [{"similarity": 0.19}, {"similarity_low": 0.1}, {"similarity_p": 0.06}])
def test_similarity_needs_all_of_its_rule(change: dict[str, Any]) -> None:
    assert "semantic similarity" not in type_claims({**SCORES, **change}, [])


def test_nothing_is_claimed_of_nothing() -> None:
    assert type_claims({}, []) == {}
