"""A cosine as a sum: what is said of it, and parts that were planted."""

import numpy as np
import pytest

from core.analysis.embedding_parts import measure, part_figures, random_pairs, with_sums
from core.analysis.explained import (
    Baseline,
    TermGrid,
    against_random,
    by_kind,
    from_stored,
    rounded_to_sum,
    signed,
    stored_summary,
    summary,
    term_name,
)
from core.model.ledger import Explanation, Ledger, Term, explain

TERMS = (
    Term("embedding"),
    *(Term("head", layer, head) for layer in (1, 2) for head in (1, 2)),
    Term("mlp", 1),
    Term("mlp", 2),
    Term("bias", 1),
    Term("bias"),
)
VALUES = np.array([0.05, 0.01, 0.02, 0.2, 0.11, 0.06, 0.03, 0.004, 0.006])
FOUND = Explanation(0.49, TERMS, VALUES)


def test_the_sentence_names_kinds_and_the_heads_that_add_most() -> None:
    assert summary(FOUND) == (
        "0.49, of which 0.34 from heads, most from layer 2 head 1 (0.20) and layer 2 head 2 (0.11); 0.09 from "
        "feed-forward blocks; 0.05 from embeddings; 0.01 from biases."
    )


def test_a_negative_cosine_names_no_head_that_adds_nothing() -> None:
    found = Explanation(-0.12, (Term("embedding"), Term("head", 1, 1)), np.array([-0.02, -0.1]))
    assert summary(found) == "−0.12, of which −0.10 from heads; −0.02 from embeddings."


def baseline_row(kind: str, layer: int | None, head: int | None, mean: float) -> dict[str, object]:
    place = {"kind": kind, "layer": layer, "head": head}
    return {**place, "mean": mean, "low": mean - 0.05, "high": mean + 0.05, "pairs": 7}


def test_what_random_pairs_have_too_is_not_a_reason() -> None:
    mean = np.zeros(len(TERMS))
    mean[3] = 0.19  # the largest head is as large for any two documents
    rows = [baseline_row(term.kind, term.layer, term.head, value) for term, value in zip(TERMS, mean, strict=True)]
    rows.append({**baseline_row("total", None, None, 0.19), "low": 0.02, "high": 0.4})
    baseline = Baseline.of(rows, TERMS)
    assert baseline is not None
    assert against_random(FOUND, baseline) == (
        "Two random documents of this corpus have 0.19 on average (95 % of pairs: 0.02 to 0.40). Of the difference of "
        "+0.30, most comes from layer 2 head 2 (+0.11) and layer 1 feed-forward block (+0.06). 1 of 4 heads add more "
        "than in 97.5 % of random pairs; of a random pair, 0 would."
    )
    assert Baseline.of(rows[1:], TERMS) is None  # another model's


def test_the_grid_has_every_term_once() -> None:
    grid = TermGrid.of(TERMS, VALUES)
    assert grid.heads.tolist() == [[0.01, 0.02], [0.2, 0.11]]
    assert (grid.blocks.tolist(), grid.biases.tolist()) == ([0.06, 0.03], [0.004, 0])
    assert (grid.embedding, grid.final_bias) == (0.05, 0.006)
    assert grid.layers.sum() + grid.embedding + grid.final_bias == pytest.approx(0.49)
    assert by_kind(TERMS, VALUES) == pytest.approx({"head": 0.34, "mlp": 0.09, "embedding": 0.05, "bias": 0.01})


def test_rounded_numbers_add_up_to_the_rounded_sum() -> None:
    third = [1 / 3, 1 / 3, 1 / 3]
    assert rounded_to_sum(third, 1.0, 2).tolist() == [0.34, 0.33, 0.33]
    chance = np.random.default_rng(0)
    for _ in range(50):
        values = chance.normal(size=97) / 50
        shown = rounded_to_sum(values, values.sum() + 1e-7)
        assert round(shown.sum(), 9) == round(values.sum() + 1e-7, 4)
        assert np.abs(shown - values).max() < 1e-4


@pytest.mark.parametrize(
    ("value", "plus", "text"),
    [(-0.004, False, "0.00"), (-0.12, False, "−0.12"), (0.0, True, "0.00"), (0.2, True, "+0.20")],
)
def test_numbers_have_a_real_minus_and_zero_has_none(value: float, plus: bool, text: str) -> None:
    assert signed(value, plus=plus) == text


def test_terms_have_names() -> None:
    assert [term_name(TERMS[at]) for at in (0, 2, 5, 7, 8)] == [
        "embeddings", "layer 1 head 2", "layer 1 feed-forward block", "layer 1 biases", "final bias",
    ]  # fmt: skip


def test_stored_shares_give_the_heads_and_the_rest_without_the_model() -> None:
    # Two heads of one dimension in a plane, along (1, 0) and (0, 1); what they leave is the rest.
    outputs = (np.array([3.0, 4.0]), np.array([4.0, 3.0]))
    found = from_stored(
        (np.array([[2.0], [1.0]]), np.array([[4.0], [0.0]])), outputs, (outputs[0][:, None], outputs[1][:, None]), 6
    )
    assert found.cosine == pytest.approx(24 / 25)
    assert found.values == pytest.approx([(2 * 4 + 4 * 3) / 50, (1 * 3 + 0) / 50, 0.96 - 0.46])
    assert stored_summary(found) == (
        "0.96, of which 0.46 from the heads of layer 6, most from layer 6 head 1 (0.40) and layer 6 head 2 (0.06); "
        "0.50 from all other terms."
    )
    assert [term_name(term) for term in found.terms][-1] == "all other terms"


# Parts of the embedding's length


def ledger(*vectors: tuple[float, float]) -> Ledger:
    terms = (Term("embedding"), Term("head", 1, 1), Term("head", 1, 2))
    return Ledger(terms, np.array(vectors), np.array(vectors).sum(axis=0))


LEDGERS = [
    ledger((1, 0), (3, 0), (0, 3)),  # (4, 3): 4/25, 12/25, 9/25 of its length
    ledger((0, 1), (0, -1), (2, 0)),  # (2, 0): 0, 0, 1
    ledger((1, 1), (1, 0), (0, 0)),  # (2, 1)
]


def test_parts_and_pairs_equal_those_of_the_ledgers_one_by_one() -> None:
    pairs = np.array([[0, 1], [1, 2], [0, 2]])
    outputs = np.stack([one.output for one in LEDGERS])
    found = measure(((at, LEDGERS[at]) for at in (2, 0, 1)), outputs, pairs)
    assert found.parts[0].tolist() == pytest.approx([4 / 25, 12 / 25, 9 / 25])
    assert found.parts[1].tolist() == pytest.approx([0, 0, 1])
    for row, (one, other) in zip(found.pairs, pairs, strict=True):
        assert row == pytest.approx(explain(LEDGERS[one], LEDGERS[other]).values)
    assert found.residual < 1e-15


def test_sums_are_by_layer_by_kind_and_of_all() -> None:
    parts, values = with_sums(LEDGERS[0].terms, np.array([[0.16, 0.48, 0.36]]))
    named = {(part.kind, part.layer, part.head): value for part, value in zip(parts, values[0].tolist(), strict=True)}
    assert named["heads", 1, None] == named["heads", None, None] == pytest.approx(0.84)
    assert (named["mlps", None, None], named["biases", None, None]) == (0, 0)
    assert named["total", None, None] == pytest.approx(1)


def test_pairs_are_different_and_of_two_documents() -> None:
    assert sorted(map(tuple, random_pairs(4))) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    many = random_pairs(300, 1_000)
    assert len({tuple(pair) for pair in many.tolist()}) == 1_000
    assert (many[:, 0] != many[:, 1]).all()
    assert random_pairs(1).shape == (0, 2)


def test_a_head_whose_part_follows_the_topic_is_told_from_noise() -> None:
    chance = np.random.default_rng(0)
    labels = np.repeat([0, 1, -1], 40)
    values = chance.normal(size=(120, 2))
    values[:40, 0] += 2
    found = part_figures(values, labels)
    assert found.explained[0] > 0.4 > found.explained_by_chance[0]
    assert found.explained[1] < 0.1
    assert found.spread == pytest.approx(values.std(axis=0, ddof=1))
    assert np.isnan(part_figures(values, np.full(120, -1)).explained).all()
