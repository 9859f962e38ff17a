"""The Ablation page without a browser: planted heads are named, a click is a link, and what is missing is said."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from streamlit.testing.v1 import AppTest

from core.model.shape import ModelShape
from core.runs.parts import write_table
from core.runs.run import Run
from core.runs.schema import ANALYSIS
from pages.understand.ablation.figures import SLICE, Reading, compared, effect_grid, scatter_figure
from precompute.job.step import Rows, StepRecord, add, as_table
from tests.support.apps import page_at
from tests.support.planted_ablation import planted_ablation

PAGE = "pages/understand/ablation/page.py"


@pytest.fixture(scope="module")
def cache(analysed_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ablation")
    shutil.copytree(analysed_cache / "demo", folder / "demo")
    planted_ablation(Run(folder, "demo"))
    return folder


def said(app: AppTest) -> str:
    kinds = ("title", "subheader", "markdown", "caption", "info", "warning", "error", "code")
    parts = [str(element.value) for kind in kinds for element in app.get(kind)]
    return "\n".join([*parts, *(element.proto.body for element in app.get("html"))]).replace("\\", "")


def test_the_planted_heads_are_named_and_the_first_one_is_looked_at(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page_at(cache, PAGE, monkeypatch)
    text = said(app)
    assert "Switching off layer 6 head 11 costs 10.0 points of topic match by names." in text
    assert "Switching off layer 2 head 3 improves it by 8.0 points." in text
    assert "● 2 of 72 heads are beyond the noise. A sample of 200 documents" in text
    assert [heading.value for heading in app.subheader] == [
        "Topic match by names without each head",
        "Layer 6, head 11",
        "Heads whose removal helps",
        "Does reading a head show that it matters?",
        "Documents that move most without layer 6, head 11",
        "How many heads can be removed?",
    ]
    assert "Layer 2 head 3: 8.0 points more in topic match by names without it (95 % CI" in text
    assert "Their attention types are not measured yet. Run `python -m precompute attention demo`." in text
    assert "50.0\u00a0%<small>−10.0 (−12.0 to −8.0)</small><small>below the noise</small>" in text
    assert "**Slice**: at stage 1 it finds the topic for 59\u00a0% of the documents, above random slices." in text
    assert "layer 6 head 11" in text.split("Reads the topic, and matters")[1].split(".")[0]
    assert "1 of its 2 nearest documents remain." in text
    assert "**2 of 72 heads** can be removed" in text
    assert "nDCG@10 0.698 against 0.700 with all heads (−0.2 points, 95 % CI −1.2 to +0.8)" in text
    assert "Random heads: −12.0 points (−14.0 to −10.0)" in text
    assert "python -m precompute export demo --heads heads.json --to" in text
    assert not app.query_params


def test_the_chosen_measure_speaks_first_and_the_others_on_request(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(cache / "demo", tmp_path / "demo")
    for name in ("ablation", "ablation_noise"):
        path = Run(tmp_path, "demo").analysis_path(name)
        table = pq.read_table(path)
        more = table.filter(pc.field("measure") == "names")
        for column, value in {"measure": "examples", "verdict": "within"}.items():
            if (at := more.column_names.index(column) if column in more.column_names else None) is not None:
                more = more.set_column(at, table.schema.field(column), pa.repeat(value, len(more)))
        pq.write_table(pa.concat_tables([table, more.cast(table.schema)]), path)
    app = page_at(tmp_path, PAGE, monkeypatch, effect="examples")
    assert "No single head changes topic match by examples more than random removals" in app.markdown[1].value
    (others,) = (found for found in app.expander if found.label.startswith("Other"))
    assert others.label == "Other measures (1)"
    assert "Switching off layer 6 head 11 costs 10.0 points" in others.get("html")[0].proto.body
    names = page_at(tmp_path, PAGE, monkeypatch)
    assert not [found for found in names.expander if found.label.startswith("Other")], "examples have no finding"
    assert "Switching off layer 6 head 11 costs 10.0 points" in said(names)


def test_the_overview_says_it_too(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at(cache, "pages/explore/overview/page.py", monkeypatch)
    assert "Switching off layer 6 head 11 costs 10.0 points of topic match by names." in said(app)


def test_another_head_document_and_measure_by_the_address(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at(cache, PAGE, monkeypatch, layer="2", head="3", effect="angle", moved="2")
    headings = [heading.value for heading in app.subheader]
    assert headings[:2] == ["Angle by which documents move without each head", "Layer 2, head 3"]
    assert "It moves by **18.0°**" in said(app)
    app.selectbox(key="moved").set_value(1).run()
    assert "It moves by **19.0°**" in said(app)
    assert dict(app.query_params) == {"layer": "2", "head": "3", "effect": "angle"}


def test_all_heads_of_a_layer_have_figures_but_no_documents(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at(cache, PAGE, monkeypatch, layer="3", head="0")
    assert "Layer 3, all heads" in [heading.value for heading in app.subheader]
    assert "not compared" in said(app)
    assert "Choose a single head in the grid" in said(app)


def test_a_run_without_the_step_says_which_command_brings_it(
    analysed_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = said(page_at(analysed_cache, PAGE, monkeypatch))
    assert "has vectors, but no ablation figures yet" in text
    assert "python -m precompute ablate demo" in text


def test_a_damaged_table_costs_its_section_alone(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(cache / "demo", tmp_path / "demo")
    Run(tmp_path, "demo").analysis_path("ablation_moved").write_bytes(b"not Parquet")
    text = said(page_at(tmp_path, PAGE, monkeypatch))
    assert "ablation_moved.parquet cannot be read" in text
    assert "Switching off layer 6 head 11 costs" in text


def test_red_is_a_loss_a_dot_is_beyond_the_noise_and_layers_that_were_not_swept_are_empty() -> None:
    row = {"measure": "names", "low": 0.0, "high": 0.0, "noise_low": None, "noise_high": None, "p_adjusted": None}
    cells = {
        (1, 1): {**row, "change": -0.2, "verdict": "below"},
        (1, 2): {**row, "change": 0.1, "verdict": "within"},
        (1, 0): {**row, "change": -0.6, "verdict": None},
    }
    grid = effect_grid(cells, "names", ModelShape(2, 2, 2, 8, 4), "light")
    assert grid.columns == ["all", "1", "2"]
    assert [cell is None for cell in grid.cells[1]] == [True] * 3
    everything, loss, gain = grid.cells[0]
    assert everything is not None
    assert loss is not None
    assert gain is not None
    assert everything.colour == loss.colour == "#B03A2E"  # the scale is that of single heads
    assert gain.colour == "#89AFD9"
    assert (loss.text, gain.text) == ("●", "")


def test_heads_that_disagree_are_named_in_the_scatter_plot() -> None:
    cells = {(1, head): {"change": -0.1 * head, "verdict": "below" if head == 1 else "within"} for head in (1, 2, 3)}
    slices = {(1, head): Reading(0.3, stands_out=head == 2) for head in (1, 2)}
    heads = compared(cells, slices)
    assert [(one.name, one.reads, one.matters) for one in heads] == [("1.1", False, True), ("1.2", True, False)]
    figure = scatter_figure(heads, SLICE, "names", (1, 1), "light")
    assert {trace.name: list(trace.text) for trace in figure.data} == {
        "reads the topic, but its removal stays within the noise": ["1.2"],
        "matters, but its slice does not show it": ["1.1"],
    }


def test_shares_are_compared_with_effects_where_the_layers_are_swept(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Head 11 of layer 6 has half of all that heads add, every other head the same; the mean is 0.6 / 72."""
    shutil.copytree(cache / "demo", tmp_path / "demo")
    run = Run(tmp_path, "demo")
    rows: Rows = {}
    for layer, head in itertools.product(range(1, 7), range(1, 13)):
        mean = 0.3 if (layer, head) == (6, 11) else 0.3 / 71
        add(
            rows, kind="head", layer=layer, head=head, mean=mean, low=mean - 0.001, high=mean + 0.001, spread=0.01,
            explained=0.5, explained_by_chance=0.1, documents=200,
        )  # fmt: skip
    record = StepRecord(run, "layers", run.manifest(), "planted", {"documents": 200})
    write_table(run.analysis_path("parts"), as_table(rows, ANALYSIS["parts"]), "planted")
    record.finish({"documents": 200, "layers": 6, "topics": 25, "labelled": 200, "unlabelled": 0})
    app = page_at(tmp_path, PAGE, monkeypatch)
    text = said(app)
    assert "**Direct share** of the embedding: 30.0\u00a0%." in text
    assert "Has a large share, and matters: layer 6 head 11." in text
    assert "Matters, but its share is small: layer 2 head 3." in text
    assert "Has a large share, but its removal" not in text
    app.segmented_control(key="reading").set_value("slice").run()
    assert "layer 6 head 11" in said(app).split("Reads the topic, and matters")[1].split(".")[0]
    assert dict(app.query_params) == {"reading": "slice"}
