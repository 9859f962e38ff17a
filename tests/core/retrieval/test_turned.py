"""Heads turned up and down in the model's own embedding."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from core.model.share_space import ShareSpace
from core.retrieval.apply import Kept, prune, read_kept, turn
from core.retrieval.turned import ShareRows, TurnedHeads

HEADS, HIDDEN, DIM, DOCS = 4, 16, 3, 30


@pytest.fixture
def space() -> ShareSpace:
    return ShareSpace(*np.linalg.qr(np.random.default_rng(0).normal(size=(HEADS, HIDDEN, DIM))))


@pytest.fixture
def docs() -> ShareRows:
    chance = np.random.default_rng(1)
    return ShareRows(
        chance.normal(size=(DOCS, HEADS, DIM)).astype(np.float16), chance.normal(size=(DOCS, HIDDEN)).astype(np.float16)
    )


def by_definition(space: ShareSpace, rows: ShareRows, weights: np.ndarray, rest: bool) -> np.ndarray:
    """``rest + Σ weight · share``, head by head in float64, of length 1."""
    shares = np.stack([rows.shares[:, head].astype(float) @ space.directions[head].T for head in range(HEADS)])
    assert rows.outputs is not None
    left = rows.outputs.astype(float) - shares.sum(axis=0)
    turned = np.tensordot(weights, shares, axes=1) + (left if rest else 0)
    return turned / np.linalg.norm(turned, axis=1, keepdims=True)


def test_all_weights_one_and_the_rest_are_stage_3(space: ShareSpace, docs: ShareRows) -> None:
    assert docs.outputs is not None
    found = TurnedHeads(space, np.ones(HEADS), rest=True).vectors(docs)
    assert np.array_equal(found, docs.outputs.astype(np.float32)), "to the last bit"


@pytest.mark.parametrize("rest", [True, False])
def test_it_is_what_the_formula_says_and_what_apply_makes(space: ShareSpace, docs: ShareRows, rest: bool) -> None:
    weights = np.array([0.0, 2.0, 1.0, 0.25])
    wanted = by_definition(space, docs, weights, rest)
    turned = TurnedHeads(space, weights, rest)
    query = docs.some(np.array([3]))
    assert turned.scores(query, docs)[0] == pytest.approx(wanted @ wanted[3], abs=1e-5)
    kept = Kept("m", 4, HEADS, {2: 2.0, 3: 1.0, 4: 0.25}, "embedding", rest)
    elsewhere = turn(docs.shares.reshape(DOCS, -1), kept, space.directions, docs.outputs if rest else None)
    assert elsewhere == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("rest", [True, False])
def test_what_heads_and_rest_give_adds_up_to_the_cosine(space: ShareSpace, docs: ShareRows, rest: bool) -> None:
    turned = TurnedHeads(space, np.array([0.0, 2.0, 1.0, 0.25]), rest)
    found = turned.rank(docs.some(np.array([3])), docs, 5, own=3)
    assert 3 not in found.docs
    assert found.scores.tolist() == sorted(found.scores.tolist(), reverse=True)
    assert found.by_head.sum(axis=1) + found.rest == pytest.approx(found.scores, abs=1e-6)
    assert np.abs(found.by_head[:, 0]).max() == 0, "a head that is off gives nothing"
    if not rest:
        assert found.rest == pytest.approx(np.zeros(5), abs=1e-6)
    many = turned.ranked(docs.some(np.array([3, 4])), docs, np.array([3, -1]), 5)
    assert many[0].tolist() == found.docs.tolist()
    assert many[1][0] == 4, "a query that is no document finds itself"


def test_the_file_says_what_it_means(tmp_path: Path) -> None:
    kept = Kept("a model", 4, HEADS, {1: 1.0, 3: 0.5}, "embedding", rest=False)
    (tmp_path / "heads.json").write_text(kept.to_json(), encoding="utf-8")
    assert read_kept(tmp_path / "heads.json") == kept
    told = json.loads(kept.to_json())
    assert (told["stage"], told["way"], told["rest"]) == (4, "embedding", False)
    assert told["meaning"] == "sum over heads of weight times share, then length 1"
    assert "rest" not in json.loads(Kept("m", 1, 2, {1: 1.0}).to_json()), "files of other stages are as they were"


def test_what_cannot_be_turned(space: ShareSpace, docs: ShareRows) -> None:
    flat = docs.shares.reshape(DOCS, -1)
    with pytest.raises(ValueError, match=r"embeddings \(stage 3\) are needed too"):
        turn(flat, Kept("m", 4, HEADS, {1: 1.0}, "embedding"), space.directions)
    with pytest.raises(ValueError, match="Give shares of m at stage 4"):
        turn(flat[:, :4], Kept("m", 4, HEADS, {1: 1.0}, "embedding"), space.directions, docs.outputs)
    with pytest.raises(ValueError, match="Use turn, not prune"):
        prune(flat, Kept("m", 4, HEADS, {1: 1.0}, "embedding"))
