"""Stored shares: added up in the embedding's space, and cut at random before the projection."""

from __future__ import annotations

import numpy as np
import pytest

from core.model.share_space import ShareSpace
from core.model.shares import full_shares, resliced
from core.model.stages import HEADS, RANDOM, cut, permutation

HEADS_, HIDDEN, DIM = 3, 7, 2


def some_space(hidden: int = HIDDEN, width: int = DIM) -> tuple[ShareSpace, np.ndarray]:
    """A space, and ``A`` itself: ``[head, hidden, width]``."""
    maps = np.random.default_rng(5).normal(size=(HEADS_, hidden, width))
    directions, triangle = np.linalg.qr(maps)
    return ShareSpace(directions, triangle), maps


def test_by_hand() -> None:
    """Two heads of one number each in a plane: 3 along x and 4 along y add up to a vector of length 5."""
    space = ShareSpace(np.array([[[1.0], [0.0]], [[0.0], [1.0]]]), np.array([[[2.0]], [[0.5]]]))
    assert space.full(np.array([[3.0, 4.0]])).tolist() == [[3.0, 4.0]]
    assert space.weighted(np.array([[3.0, 4.0]]), np.array([1.0, 0.5])).tolist() == [[3.0, 2.0]]
    assert space.outputs(np.array([[3.0, 4.0]])) == pytest.approx(np.array([[1.5, 8.0]]))
    assert space.coordinates(np.array([6.0, 7.0])).tolist() == [[6.0], [7.0]]
    turned = space.resliced(np.array([[3.0, 4.0]]), np.array([1, 0]))
    assert turned == pytest.approx(np.array([[[4.0], [3.0]]])), "the second head's output is the first slice"


def test_the_sum_is_that_of_the_shares() -> None:
    space, _ = some_space()
    rows = np.random.default_rng(1).normal(size=(5, HEADS_ * DIM)).astype(np.float32)
    assert space.full(rows) == pytest.approx(full_shares(rows, space.directions).sum(axis=1), abs=1e-5)


@pytest.mark.parametrize("width", [DIM, 4])
def test_random_slices_have_the_lengths_and_angles_of_their_shares(width: int) -> None:
    """``width`` 4 in a space of 3: a slice has more outputs than its shares have dimensions."""
    hidden = HIDDEN if width == DIM else 3
    space, maps = some_space(hidden, width)
    chance = np.random.default_rng(2)
    outputs = chance.normal(size=(6, HEADS_ * width))
    order = chance.permutation(HEADS_ * width)
    rows = np.einsum("hkw,nhw->nhk", space.triangle, outputs.reshape(6, HEADS_, width)).reshape(6, -1)
    columns = maps.transpose(0, 2, 1).reshape(HEADS_ * width, hidden)
    # Only what the coordinates tell of the outputs: with more outputs than dimensions several have the same shares.
    outputs = space.outputs(rows)
    for slice_ in range(HEADS_):
        own = order[slice_ * width : (slice_ + 1) * width]
        wanted = outputs[:, own] @ columns[own]  # [doc, hidden]
        found = space.resliced(rows, order)[:, slice_]
        assert found @ found.T == pytest.approx(wanted @ wanted.T, abs=1e-4)


def test_it_agrees_with_the_slicing_of_the_model_s_room() -> None:
    space, _ = some_space()
    rows = np.random.default_rng(3).normal(size=(6, HEADS_ * DIM))
    order = np.random.default_rng(4).permutation(HEADS_ * DIM)
    other = resliced(rows, space.directions, space.triangle, order).reshape(6, HEADS_, DIM)
    found = space.resliced(rows, order)
    for slice_ in range(HEADS_):
        mine, theirs = found[:, slice_], other[:, slice_]
        assert mine @ mine.T == pytest.approx(theirs @ theirs.T, abs=1e-4)


def test_the_heads_themselves_are_cut_as_everywhere_and_the_control_in_the_space() -> None:
    space, _ = some_space()
    rows = np.random.default_rng(3).normal(size=(6, HEADS_ * DIM)).astype(np.float32)
    assert cut(rows, HEADS_, HEADS, space) == pytest.approx(rows.reshape(6, HEADS_, DIM))
    wanted = space.resliced(rows, permutation(HEADS_ * DIM, RANDOM))
    assert cut(rows, HEADS_, RANDOM, space) == pytest.approx(wanted)
    assert np.abs(cut(rows, HEADS_, RANDOM) - wanted).max() > 0.1
