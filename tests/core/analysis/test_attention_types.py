"""Types of attention: planted heads get just the types that were planted, noise gets none of the particular ones."""

from __future__ import annotations

import numpy as np
import pytest

from core.analysis.attention_measures import ENDS, MEASURES, measured, measures
from core.analysis.attention_types import (
    FAMILY_OF,
    MIXED,
    RULES,
    TYPES,
    AttentionEvidence,
    because,
    sentence,
    type_of,
)
from core.analysis.type_claims import RELATIONS_OF, SEEN_AGAIN, SIMILAR, TypeClaim
from core.analysis.wording import percent
from core.runs.vocabulary import ATTENTION_TYPES
from tests.core.analysis.test_attention_measures import random_weights

TOKENS, DOCUMENTS = 64, 12
SHOWN = {*RELATIONS_OF, *SEEN_AGAIN, SIMILAR}
"""Types that experiments show: see test_type_claims.py."""


def heads_of(weights: np.ndarray, seed: int = 0) -> list[AttentionEvidence]:
    """The evidence on each head, from ``weights[doc, head, from, to]``; every eighth token is a delimiter."""
    delimiter, rare = np.arange(TOKENS) % 8 == 5, np.arange(TOKENS) % 4 == 2
    parts = [measured(one, delimiter, rare) for one in weights]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    found = measures(np.stack([p.value for p in parts]), total.shuffled, np.stack([p.weight for p in parts]), seed)
    columns = (found.value.value, found.value.low, found.value.high, found.shuffled)
    return [
        AttentionEvidence.of(
            {
                name + end: float(values[head, number])
                for number, name in enumerate(MEASURES)
                for end, values in zip(ENDS, columns, strict=True)
            }
        )
        for head in range(weights.shape[1])
    ]


def planted(kind: str, causal: bool, seed: int) -> np.ndarray:
    """``[from, to]`` of a head of that kind, with a little noise."""
    chance = np.random.default_rng(seed)
    here = np.arange(TOKENS)
    apart = here[None] - here[:, None]
    scores = chance.normal(scale=0.3, size=(TOKENS, TOKENS))
    bonus = {
        "previous token": 6.0 * (apart == -1),
        "next token": 6.0 * (apart == 1),
        "sink": 8.0 * (here[None] == 0) + 0 * apart,
        "delimiter": 4.5 * (here[None] % 8 == 5) + 0 * apart,
        "rare token": 1.5 * (here[None] % 4 == 2) + 0 * apart,
        "local": 4.0 * (np.abs(apart) <= 4),
        "long-range": 0.12 * np.abs(apart),
        "broad": 0.0 * apart,
        MIXED: 2.4 * (here[None] == 0) + 3.0 * (apart == -1) + 2.0 * chance.normal(size=(TOKENS, TOKENS)),
    }[kind]
    scores = scores + bonus
    if causal:
        scores = np.where(apart <= 0, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    found: np.ndarray = weights / weights.sum(axis=1, keepdims=True)
    return found


@pytest.mark.parametrize("causal", [False, True])
def test_planted_heads_get_exactly_their_types(causal: bool) -> None:
    names = [name for name in TYPES if name not in SHOWN and not (causal and name == "next token")]
    weights = np.stack(
        [np.stack([planted(name, causal, 100 * doc + n) for n, name in enumerate(names)]) for doc in range(DOCUMENTS)]
    )
    assert [(type_of(one).name or MIXED) for one in heads_of(weights)] == names


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0, 4.0])
def test_noise_is_broad_or_mixed_and_nothing_else(causal: bool, scale: float) -> None:
    weights = np.stack([random_weights(TOKENS, 24, causal, seed, scale) for seed in range(DOCUMENTS)])
    found = {(type_of(one).name or MIXED) for one in heads_of(weights)}
    assert found == ({"broad"} if scale < 2 else {MIXED})


def test_a_verdict_says_what_decided_and_what_else_holds() -> None:
    evidence = heads_of(np.stack([planted("previous token", False, doc)[None] for doc in range(4)]))[0]
    found = type_of(evidence)
    assert (found.name, found.names) == ("previous token", ("previous token", "local"))
    assert found.because.startswith(f"{percent(evidence('previous'))} of its attention is on the token before")
    assert "shuffled 1.6\u00a0%" in found.because  # one of 64 tokens
    assert all(sentence(name) for name in TYPES)
    assert set(RULES) == set(TYPES) - {MIXED}


def test_without_any_figures_nothing_holds() -> None:
    empty = AttentionEvidence.of({"previous": None})
    assert type_of(empty).name is None
    assert "no rule holds" in because(empty, MIXED)


def test_what_experiments_show_comes_before_a_sink_and_the_strongest_is_the_type() -> None:
    sink = heads_of(np.stack([planted("sink", True, doc)[None] for doc in range(4)]))[0]
    assert type_of(sink).name == "sink"
    shown = {"modifier": TypeClaim(0.1, "by a tenth"), "induction": TypeClaim(0.7, "seen again")}
    found = type_of(AttentionEvidence(sink.figures, shown))
    assert found.names[:3] == ("induction", "modifier", "sink")
    assert found.because.startswith("seen again; by a tenth; ")


def test_the_token_before_competes_with_what_experiments_show() -> None:
    evidence = heads_of(np.stack([planted("previous token", False, doc)[None] for doc in range(4)]))[0]
    ahead = evidence("previous") - evidence("previous_shuffled")
    for strength, first in ((ahead - 0.05, "previous token"), (ahead + 0.05, "modifier")):
        claims = {"modifier": TypeClaim(strength, "so")}
        assert type_of(AttentionEvidence(evidence.figures, claims)).name == first


def test_a_sink_says_from_what_share_of_the_text_it_rests() -> None:
    weights = np.stack([planted("sink", True, doc)[None] for doc in range(4)])
    figures = heads_of(weights)[0].figures
    assert "tokens" not in because(AttentionEvidence(figures), "sink")
    said = because(AttentionEvidence({**figures, "rests": 0.87}), "sink")
    assert said.endswith("; more than half of it from 87\u00a0% of their tokens")


def test_every_type_has_a_family_and_storage_knows_its_name() -> None:
    assert set(FAMILY_OF) == set(TYPES)
    assert set(ATTENTION_TYPES) == set(TYPES)
