"""One text without one head: against a model whose weights were edited by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from core.errors import Mistake
from core.model.embedder import Embedder, EmbedderConfig
from core.model.one_head_off import degrees_between, one_head_off

pytestmark = pytest.mark.usefixtures("one_thread")
TEXT = "The ferry left the harbour an hour late"


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> Embedder:
    return Embedder.load(EmbedderConfig(model=str(tiny_model)))


def test_the_embedding_without_the_head_is_that_of_a_model_whose_columns_are_zero(
    model: Embedder, tiny_model: Path
) -> None:
    found = one_head_off(model, TEXT, 1, 3)
    assert found.plain == pytest.approx(model.embed([TEXT]).stage(3)[0], abs=1e-5)
    edited = Embedder.load(EmbedderConfig(model=str(tiny_model)))
    dim = model.info.shape.head_dim
    projection = edited.extractor.model.get_submodule(edited.extractor.family.projection.format(0))
    with torch.no_grad():
        projection.weight[:, 2 * dim : 3 * dim] = 0.0  # type: ignore[index,operator]
    wanted = edited.embed([TEXT]).stage(3)[0]
    assert found.without == pytest.approx(wanted, abs=1e-5)
    cosine = wanted @ found.plain / np.linalg.norm(wanted) / np.linalg.norm(found.plain)
    assert found.angle == pytest.approx(np.degrees(np.arccos(cosine)), abs=0.02)
    assert found.angle > 0.1


def test_random_directions_are_as_many_as_asked_for_and_the_same_every_time(model: Embedder) -> None:
    one, again = (one_head_off(model, TEXT, 2, 1, directions=5) for _ in range(2))
    assert one.random.shape == (5,)
    assert (one.random > 0).all()
    assert one.random.tolist() == again.random.tolist()
    assert len(set(one.random.tolist())) == 5


def test_a_head_that_does_not_exist_is_refused(model: Embedder) -> None:
    with pytest.raises(Mistake, match="Head 5 does not exist"):
        one_head_off(model, TEXT, 1, 5)
    with pytest.raises(Mistake, match="Layer 9 does not exist"):
        one_head_off(model, TEXT, 9, 1)


def test_degrees_by_hand() -> None:
    others = np.array([[2.0, 0.0], [0.0, 3.0], [-1.0, 0.0], [1.0, 1.0]])
    assert degrees_between(np.array([1.0, 0.0]), others) == pytest.approx([0, 90, 180, 45])
    assert degrees_between(np.array([1.0, 0.0]), np.array([[1.0, 1e-8]])) == pytest.approx([np.degrees(1e-8)])
