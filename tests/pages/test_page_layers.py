"""The Layers page without a browser."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from streamlit.testing.v1 import AppTest

from core.runs.labels import CIRCULAR_NOTE
from core.runs.parts import write_table
from core.runs.results import read_analysis
from core.runs.run import Run
from pages.shared.text import plain
from pages.understand.layers.figures import shared_numbers
from precompute.steps.layers import step as layers
from precompute.steps.layers.step import LayersConfig
from tests.precompute.test_layers import MODEL, SHAPE, last_layer, made, rows  # noqa: F401 (a fixture)
from tests.support.apps import figures_of, page_at
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
    assert measure in ("topic_match", "probe"), "the others are not in percent"
    return f"{100 * row['value']:.1f}\u00a0%"


def test_the_page_says_where_topics_are_and_shows_the_last_layer(
    made: Run,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = page_at(made.cache, PAGE, monkeypatch)
    assert "heads specialise at layer 2 by topic names" in said(app)
    assert "topic structure at stage 1 peaks at layer 2 of 4" in said(app)
    assert "older version" not in said(app)
    assert [heading.value for heading in app.subheader] == [
        "Topic match over depth",
        "Where in depth do heads specialise?",
        "Layers × heads",
        "Layer 4, full embedding, at stage 1",
        "What the embedding is made of",
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
    assert "Layer 2, head 3, at stage 3" in [heading.value for heading in app.subheader]
    kept = {name: value[0] if isinstance(value, list) else value for name, value in app.query_params.items()}
    assert kept == {"layer": "2", "head": "3", "measure": "groups", "stage": "3"}


def test_a_head_beyond_random_slices_is_numbered_and_said_to_be(
    made: Run,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = page_at(made.cache, PAGE, monkeypatch, layer="2", head="3")
    heads, spread = (chart.json["data"] for chart in figures_of(app)[:2])
    beyond = next(trace for trace in heads if trace.get("name") == "heads beyond")
    assert (2, "3") in zip(beyond["x"], beyond["text"], strict=True)
    marks = next(trace for trace in spread if trace.get("name") == "heads")["marker"]["symbol"]
    assert marks == ["circle-open", "circle", "circle-open", "circle-open"]
    (row,) = rows(made, "layer_null_summary", layer=2, stage=1, measure="names")
    ends = f"random slices {100 * row['slices_low']:.1f}\u00a0% to {100 * row['slices_high']:.1f}\u00a0%: above"
    assert plain(ends) in said(app)


def test_topics_by_examples_are_in_the_address_and_in_every_part(
    made: Run,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = page_at(made.cache, PAGE, monkeypatch, reference="examples", layer="2", head="3")
    assert "by the mean of each topic's other documents" in said(app)
    assert "Topic match by examples at stage 1. Click a cell" in said(app)
    (row,) = rows(made, "layer_null", layer=2, stage=1, head=3, measure="examples")
    assert figures(app)["Topic match by examples"] == f"{100 * row['value']:.1f}\u00a0%"
    heads = figures_of(app)[0].json["data"]
    drawn = [value for trace in heads if trace.get("name", "").startswith("heads") for value in trace["y"]]
    assert sorted(drawn) == pytest.approx(
        sorted(100 * row["value"] for row in rows(made, "layer_null", stage=1, measure="examples"))
    )


def test_a_run_of_an_older_version_has_its_curves_and_the_command_for_the_rest(
    made: Run,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copytree(made.folder, tmp_path / made.name)
    for table in ("layer_null", "layer_null_summary"):
        Run(tmp_path, made.name).analysis_path(table).unlink()
    app = page_at(tmp_path, PAGE, monkeypatch)
    assert not app.error
    assert "heads are not compared with random slices" in app.info[0].value
    assert "python -m precompute layers planted" in app.info[0].value
    assert [heading.value for heading in app.subheader][:2] == ["Topic match over depth", "Layers × heads"]
    assert "A single head finds the topic more often than a random slice of the same size" in said(app)


def test_numbers_that_would_overlap_share_a_place() -> None:
    """Of values up to 1, those less than 0.05 apart share one, at the middle head."""
    values = [(1, 4, 0.50), (1, 2, 0.53), (1, 9, 0.56), (1, 1, 0.70), (2, 3, 0.71), (2, 5, 1.0)]
    found = shared_numbers([{"layer": layer, "head": head, "value": value} for layer, head, value in values])
    assert found == {(1, 2): "2, 4, 9", (1, 1): "1", (2, 3): "3", (2, 5): "5"}


@pytest.mark.parametrize("address", [{"layer": "9"}, {"head": "<b>"}, {"measure": "beauty"}])
def test_a_hostile_address_falls_back(
    made: Run,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    address: dict[str, str],
) -> None:
    app = page_at(made.cache, PAGE, monkeypatch, **address)
    assert app.subheader[-2].value == "Layer 4, full embedding, at stage 1"
    assert "unknown value for" in app.toast[0].value


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
    assert app.subheader[-2].value == "Layer 4, full embedding, at stage 1"


def test_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "There are no runs yet" in said(page_at(tmp_path, PAGE, monkeypatch))


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


def test_the_probe_says_what_pairs_show_and_what_an_older_run_is_missing(
    made: Run,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "Heads are more distinguishable than random slices at " in said(
        page_at(made.cache, PAGE, monkeypatch, measure="probe")
    )
    shutil.copytree(made.folder, tmp_path / made.name)
    older = Run(tmp_path, made.name)
    table = read_analysis(older, "layer_curves")
    write_table(older.analysis_path("layer_curves"), table.filter(pc.not_equal(table["series"], "difference")), "x")
    text = said(page_at(tmp_path, PAGE, monkeypatch, measure="probe"))
    assert "heads and random slices are not compared on the same splits" in text
    assert "more distinguishable" not in text
