"""Following or ignoring an aspect in the Retrieval lab, without a browser."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.model.shape import ModelShape
from core.retrieval.aspect_judge import head_cosines
from core.retrieval.aspect_switch import FOLLOW, IGNORE, learn_weights
from core.runs.aspects import aspects_of
from core.runs.run import Run
from pages.shared.heads_in_address import format_weights
from tests.support.apps import page_at
from tests.support.synthetic import write_run

PAGE = "pages/use/retrieval_lab/page.py"
TITLE = "Follow or ignore an aspect"


@pytest.fixture(scope="module")
def crossed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """80 documents, 4 heads of 4 numbers: head 1 carries the genre, head 2 the topic, the others nothing."""
    cache = tmp_path_factory.mktemp("crossed")
    genres, topics = np.arange(80) % 4, np.arange(80) // 4 % 4

    def vectors(stage: int, first: int, count: int) -> np.ndarray:
        found = np.random.default_rng([stage, first]).standard_normal((count, 4, 4))
        found[:, 0] += 3 * np.eye(4)[genres[first : first + count]]
        found[:, 1] += 3 * np.eye(4)[topics[first : first + count]]
        return found.reshape(count, 16)

    write_run(
        cache,
        "crossed",
        ModelShape(layers=1, heads=4, kv_heads=4, hidden=16, head_dim=4),
        vectors,
        [f"topic {each}" for each in topics],
        extra={"genre": ("string", [f"genre {each}" for each in genres])},
    )
    return cache


def shown(app: AppTest) -> str:
    kinds = ("markdown", "caption", "info", "error")
    parts = [str(element.value) for kind in kinds for element in app.get(kind)]
    parts += [expander.label for expander in app.expander]
    return "\n".join([*parts, *(element.proto.body for element in app.get("html"))])


def learned(cache: Path, positions: dict[str, str], stage: int = 1) -> str:
    """The address's weights, worked out anew from the files."""
    run = Run(cache, "crossed")
    vectors = np.concatenate(list(run.vectors(stage))).reshape(80, 4, 4)
    labels = {aspect.name: aspect.codes for aspect in aspects_of(run)}
    return format_weights(learn_weights(head_cosines(vectors), labels, positions))


def test_a_switch_sets_the_weights_and_tells_what_it_does(crossed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at(crossed, PAGE, monkeypatch, 120, stage="1")
    assert TITLE in shown(app)
    assert "mix" not in app.query_params
    app.segmented_control(key="aspect.genre").set_value(FOLLOW)
    app.segmented_control(key="aspect.topic").set_value(IGNORE)
    app.run()
    assert not app.exception
    positions = {"genre": FOLLOW, "topic": IGNORE}
    assert app.query_params["mix"] == learned(crossed, positions)
    assert app.query_params["way"] == "weighted"
    assert app.selectbox(key="way").value == "weighted"
    assert [app.query_params[f"aspect.{name}"] for name in positions] == [FOLLOW, IGNORE]
    said = shown(app)
    assert re.search(r"Follow genre.*the share of .* rises from", said)
    assert re.search(r"Ignore topic.*the share of .* falls from", said)
    for words in ("learned head weights", "LEACE", "random slices", "random dimensions", "model&#x27;s own embedding"):
        assert words in said
    app.segmented_control(key="aspect.genre").set_value("neutral")
    app.segmented_control(key="aspect.topic").set_value("neutral")
    app.run()
    assert "mix" not in app.query_params
    assert app.selectbox(key="way").value == "full"
    assert "Follow genre" not in shown(app)


def test_a_link_with_positions_alone_sets_the_weights(crossed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at(crossed, PAGE, monkeypatch, 120, stage="2", **{"aspect.topic": FOLLOW})
    assert app.query_params["mix"] == learned(crossed, {"topic": FOLLOW}, 2)
    assert app.segmented_control(key="aspect.topic").value == FOLLOW
    app.segmented_control(key="stage").set_value(3).run()
    assert app.query_params["mix"] == learned(crossed, {"topic": FOLLOW}, 3)


def test_weights_of_a_link_are_not_overruled_but_can_be(crossed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at(crossed, PAGE, monkeypatch, 120, mix="3", **{"aspect.genre": FOLLOW})
    assert app.query_params["mix"] == "3"
    assert "not those learned for these switches" in shown(app)
    app.button(key="aspect weights").click().run()
    assert app.query_params["mix"] == learned(crossed, {"genre": FOLLOW}, 3)
    assert "not those learned for these switches" not in shown(app)


def test_a_run_without_aspects_has_no_switches(planted_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert TITLE not in shown(page_at(planted_cache, PAGE, monkeypatch, 120))


def test_a_position_that_is_none_is_neutral(crossed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at(crossed, PAGE, monkeypatch, 120, **{"aspect.genre": "<b>off</b>"})
    assert app.segmented_control(key="aspect.genre").value == "neutral"
    assert "mix" not in app.query_params
