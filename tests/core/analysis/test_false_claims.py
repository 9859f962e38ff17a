"""What is claimed over depth and of pruned sets must be in the labels: shuffled, at most one in twenty."""

from __future__ import annotations

import numpy as np
import pytest

from core.analysis import attention_types, roles
from core.analysis.bootstrap import means
from core.analysis.false_alarms import (
    ABOUT_HEADS,
    BEST,
    COUNTED,
    CUT,
    DEPTH,
    PEAK,
    PRUNED,
    ROLE,
    SHUFFLED,
    SLICES,
    SPECIALISE,
    TYPE,
    UNTRAINED,
    fires,
    markdown,
)
from core.analysis.layer_findings import beyond_guessing
from core.model.shape import ModelShape
from pages.shared.glossary import TERMS, why_rule
from precompute.steps.layers.rows import LayerRows
from tests.support import ROOT
from tests.support.false_claims import depth_claims, pruned_claims

pytestmark = pytest.mark.usefixtures("one_thread")

SHAPE = ModelShape(layers=2, heads=4, kv_heads=4, hidden=32, head_dim=8)
LABELS = np.arange(120) % 6
SHUFFLES = 10


def planted(strength: float = 1.5, noise: float = 1.0, seed: int = 0) -> np.ndarray:
    """``[document or topic, width]``: noise, and head 2 carries the topic, of which names are the pure direction."""
    chance = np.random.default_rng(seed)
    rows = chance.normal(size=(126, 4, 8))
    directions = strength * chance.normal(size=(6, 8))
    rows[:120, 1] = noise * rows[:120, 1] + directions[LABELS]
    rows[120:, 1] = directions
    return rows.reshape(126, 32).astype(np.float32)


def shuffled(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).permutation(LABELS)


@pytest.mark.slow
def test_a_pruned_set_is_claimed_for_the_head_that_carries_topics_and_not_for_shuffled_labels() -> None:
    rows = planted(3, 0.5)[:120]
    assert pruned_claims(rows, LABELS, SHAPE) == {CUT, ABOUT_HEADS}
    claims = [pruned_claims(rows, shuffled(seed), SHAPE) for seed in range(2 * SHUFFLES)]
    assert sum(bool(found) for found in claims) <= 0.05 * 2 * SHUFFLES


def test_depth_is_claimed_where_a_layer_carries_topics_and_not_for_shuffled_labels() -> None:
    noise = np.random.default_rng(1).normal(size=(126, 32)).astype(np.float32)
    rows = LayerRows({1: np.stack([noise, planted()])})
    assert depth_claims(rows, LABELS, SHAPE, 1, slicings=100) == {PEAK, SPECIALISE, BEST}
    claims = [depth_claims(rows, shuffled(seed), SHAPE, 1, slicings=20) for seed in range(SHUFFLES)]
    assert sum(len(found & {SPECIALISE, BEST}) for found in claims) <= 0.05 * 2 * SHUFFLES
    assert sum(PEAK in found for found in claims) <= 1  # of ten; the next test counts more


def test_topics_over_depth_are_beyond_guessing_for_at_most_one_in_twenty_shuffles() -> None:
    """Six layers of the same noise as in the demo's numbers: 300 documents, 25 topics, the nearest name by chance."""
    chance, alarms = np.random.default_rng(5), 0
    for _ in range(200):
        hits = chance.uniform(size=(300, 6)) < 1 / 25
        found = means(hits.astype(np.float32))
        curves = [
            {"stage": 1, "layer": at + 1, "measure": "topic_match", "series": "full", "value": found.value[at],
             "low": found.low[at], "high": found.high[at], "chance": 1 / 25, "majority": 1 / 25}
            for at in range(6)
        ]  # fmt: skip
        alarms += beyond_guessing(curves, 1)
    assert alarms <= 0.05 * 200


# The table of what was measured on the demo


def test_every_rule_was_counted() -> None:
    assert set(COUNTED[ROLE].rates) == set(roles.RULES)
    assert set(COUNTED[TYPE].rates) == set(attention_types.RULES)
    assert set(COUNTED[DEPTH].rates) == {PEAK, SPECIALISE, BEST}
    assert set(COUNTED[PRUNED].rates) == {CUT, ABOUT_HEADS}
    every = {rule: set(rates) for kind in (ROLE, PRUNED, DEPTH) for rule, rates in COUNTED[kind].rates.items()}
    assert every.pop(PEAK) == {SHUFFLED, UNTRAINED}, "slicing changes no full embedding"
    assert all(controls == {SHUFFLED, SLICES, UNTRAINED} for controls in every.values())


def test_rules_fire_for_at_most_one_in_twenty_with_shuffled_labels_and_what_is_about_heads_anywhere() -> None:
    """Not for slices alone: that some slices can go is true of them. Nor 'broad': untrained heads are."""
    about_heads = {*COUNTED[ROLE].rates, *COUNTED[TYPE].rates, *COUNTED[DEPTH].rates, ABOUT_HEADS}
    for counted in COUNTED.values():
        for rule, rates in counted.rates.items():
            wanted = rates.keys() if rule in about_heads and rule != "broad" else rates.keys() & {SHUFFLED}
            for control in wanted:
                assert rates[control].times <= 0.05 * rates[control].of, (rule, control)


def test_a_rule_s_tooltip_says_how_often_it_fires() -> None:
    said = (
        "Where there is nothing to find, on the demo, it fires for 1 of 40 sets with shuffled labels, 24 of 30 with "
        "random slices in place of heads and 0 of 4 with random weights."
    )
    assert fires(PRUNED, CUT) == said
    assert said in TERMS["pruned set"]
    assert fires(DEPTH, SPECIALISE) in TERMS["specialising"]
    assert why_rule("attention type", "sink").endswith(
        "**sink** – Where there is nothing to find, on the demo, it fires for 0 of 360 heads with random weights."
    )
    assert why_rule("role", None) == f"**role** – {TERMS['role']}"
    assert fires(TYPE, "mixed") == ""


def test_the_documentation_has_the_same_table() -> None:
    assert f"\n\n{markdown()}\n\n" in (ROOT / "docs/methods.md").read_text(encoding="utf-8")
