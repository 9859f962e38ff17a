"""The Layers page without a browser."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.runs.labels import CIRCULAR_NOTE
from core.runs.run import Run
from pages.shared.text import plain
from precompute.steps.layers import step as layers
from precompute.steps.layers.step import LayersConfig
from tests.conftest import page_at
from tests.precompute.test_layers import MODEL, SHAPE, last_layer, made, rows  # noqa: F401 (a fixture)
from tests.support.hostile import TEXTS
from tests.support.synthetic import write_run

PAGE = "pages/understand/layers/page.py"


def said(app: AppTest) -> str:
    kinds = ("title", "subheader", "markdown", "caption", "info", "warning", "error", "code")
    parts = [str(element.value) for kind in kinds for element in app.get(kind)]
    return "\n".join([*parts, *(element.proto.body for element in app.get("html"))])


def figures(app: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in app.metric}


def cell(run: Run, measure: str, **place: Any) -> str:
    (row,) = rows(run, "layers", measure=measure, **place)
    return f"{row['value']:.2f}".replace("-", "−")


def test_the_page_says_where_topics_are_and_shows_the_last_layer(
    made: Run,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = page_at(made.cache, PAGE, monkeypatch)
    assert "Topic structure at stage 1 peaks at layer 2 of 4" in said(app)
    assert [heading.value for heading in app.subheader] == [
        "Topic match over depth",
        "Layers × heads",
        "Layer 4, full embedding, at stage 1",
    ]
    assert figures(app)["Topic match"] == cell(made, "topic_match", layer=4, stage=1, head=0)
    assert plain("All 60 documents.") in said(app)


def test_another_measure_stage_and_cell_are_shown_and_are_in_the_address(
    made: Run,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = page_at(made.cache, PAGE, monkeypatch, layer="2", head="3")
    assert figures(app)["Topic match"] == cell(made, "topic_match", layer=2, stage=1, head=3)
    (row,) = rows(made, "layer_profiles", layer=2, stage=1, head=3)
    assert row["because"].split(":")[0].split(" ")[0] in said(app)
    app.selectbox(key="measure").select("groups")
    app.segmented_control(key="stage").set_value(3)
    app.run()
    assert not app.exception
    assert app.subheader[0].value == "Key/value groups (CKA) over depth"
    assert "without the model's final norm" in said(app)
    assert "Heads that share a key/value head are more alike than others at" in said(app)
    assert app.subheader[-1].value == "Layer 2, head 3, at stage 3"
    kept = {name: value[0] if isinstance(value, list) else value for name, value in app.query_params.items()}
    assert kept == {"layer": "2", "head": "3", "measure": "groups", "stage": "3"}


@pytest.mark.parametrize("address", [{"layer": "9"}, {"head": "<b>"}, {"measure": "beauty"}])
def test_a_hostile_address_falls_back(
    made: Run,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    address: dict[str, str],
) -> None:
    app = page_at(made.cache, PAGE, monkeypatch, **address)
    assert app.subheader[-1].value == "Layer 4, full embedding, at stage 1"
    assert "not here" in app.toast[0].value


def test_a_run_without_labels_has_the_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(tmp_path, "bare", SHAPE, last_layer, [None] * 60)
    app = page_at(tmp_path, PAGE, monkeypatch)
    assert "python -m precompute layers bare" in said(app)  # the step is not done yet
    assert not app.subheader
    layers.run(LayersConfig(tmp_path, "bare", model=MODEL))
    app.run()
    assert not app.exception
    assert "Topic match and topic selectivity needs documents with a topic" in said(app)
    assert app.selectbox(key="measure").options == ["Probe accuracy", "Key/value groups (CKA)", "Activation"]
    assert app.subheader[-1].value == "Layer 4, full embedding, at stage 1"


def test_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "There is nothing to look at yet" in said(page_at(tmp_path, PAGE, monkeypatch))


def test_labels_that_the_embedding_made_are_called_circular(
    made: Run,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copytree(made.folder, tmp_path / made.name)
    path = tmp_path / made.name / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["steps"]["layers"]["options"]["label_source"] = "zero-shot"
    path.write_text(json.dumps(manifest))
    assert CIRCULAR_NOTE in said(page_at(tmp_path, PAGE, monkeypatch))
    assert CIRCULAR_NOTE not in said(page_at(made.cache, PAGE, monkeypatch))


def test_a_damaged_file_is_told(
    made: Run,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copytree(made.folder, tmp_path / made.name)
    Run(tmp_path, made.name).analysis_path("layers").write_bytes(b"PAR1")
    app = page_at(tmp_path, PAGE, monkeypatch)
    assert plain("python -m precompute layers planted --again") in app.error[0].value


def test_hostile_topics_are_shown_as_text(hostile_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at(hostile_cache, PAGE, monkeypatch)
    assert not app.error
    assert TEXTS[0] not in said(app)  # an image that loads a script
    assert "&lt;img src=x" in said(app)
