"""The page Aspects, and what heads carry on the Head profile, without a browser."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.analysis.wording import percent
from core.runs.aspects import Aspect
from core.runs.parts import write_table
from core.runs.results import read_analysis, read_aspects
from core.runs.run import Run
from core.runs.schema import ANALYSIS
from pages.shared.aspect_guess import value_examples
from pages.understand.aspects.figures import Slices, confusion_figure, matrix_grid, pair_alt, pair_figure, shares
from precompute.job.step import Rows, StepRecord, add, as_table
from precompute.steps.analyse import step as analyse
from precompute.steps.aspects import step as aspects
from precompute.steps.aspects.step import AspectsConfig
from tests.precompute.test_aspects_step import SHAPE, planted_run
from tests.support.apps import page_at
from tests.support.synthetic import PlantedTopics

PAGE = "pages/understand/aspects/page.py"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cache = tmp_path_factory.mktemp("aspects")
    planted_run(cache)
    analyse.run(analyse.AnalyseConfig(cache, "planted", model=PlantedTopics(SHAPE, {})))
    aspects.run(AspectsConfig(cache, "planted"))
    return cache


def said(app: AppTest) -> str:
    kinds = ("title", "subheader", "markdown", "caption", "info", "warning", "error", "code", "metric")
    parts = [str(element.value) for kind in kinds for element in app.get(kind)]
    return "\n".join([*parts, *(element.proto.body for element in app.get("html"))]).replace("\\", "")


def test_the_page_says_what_each_head_carries(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at(cache, PAGE, monkeypatch)
    text = said(app)
    assert "**head 1**: topic, not genre; **head 2**: genre, not topic." in text
    assert "120 documents, each left out once" in text
    row = next(
        row
        for row in read_aspects(Run(cache, "planted"))["aspects"]
        if (row["stage"], row["aspect"], row["measure"], row["head"]) == (1, "topic", "accuracy", 1)
    )
    assert percent(row["value"], 1) in text
    assert "above random slices" in text


def test_another_aspect_head_and_measure_by_widgets_and_address(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at(cache, PAGE, monkeypatch, aspect="genre", head="2", by="balanced", value="1")
    assert app.selectbox(key="aspect").value == "genre"
    assert "chance 25.0\u00a0%" in said(app)
    table = read_analysis(Run(cache, "planted"), "aspect_documents").to_pylist()
    mine = [row for row in table if (row["stage"], row["aspect"], row["code"]) == (1, "genre", 1)]
    right = sum(row["predicted"][2] == 1 for row in mine)
    assert f"**Read correctly** · {right} of {len(mine)}" in said(app)
    app.selectbox(key="head").set_value(1)
    app.selectbox(key="aspect").set_value("topic")
    app.run()
    assert not app.exception
    assert dict(app.query_params) == {"by": "balanced", "value": "1"}


def test_a_run_without_the_step_says_which_command_brings_it(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted_run(tmp_path)
    app = page_at(tmp_path, PAGE, monkeypatch)
    assert "python -m precompute aspects planted" in said(app)


def test_a_run_without_aspects_says_so(bare_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(bare_cache / "bare", tmp_path / "bare")
    aspects.run(AspectsConfig(tmp_path, "bare"))
    assert "No aspect of this run has two values" in said(page_at(tmp_path, PAGE, monkeypatch))


def test_a_heads_profile_and_the_gallery_say_what_it_carries(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = "pages/explore/head_profile/page.py"
    assert "**Carries: genre, not topic**" in said(page_at(cache, profile, monkeypatch, head="2"))
    assert "**Carries: no aspect beyond random slices**" in said(page_at(cache, profile, monkeypatch, head="4"))
    assert ":material/label: topic, not genre" in said(page_at(cache, profile, monkeypatch, view="gallery"))


def rows(*values: tuple[float, str | None]) -> list[dict[str, object]]:
    return [
        {"head": head, "value": value, "low": value, "high": value, "verdict": verdict, "p_adjusted": 0.01}
        for head, (value, verdict) in enumerate(values)
    ]


def test_a_cell_is_the_share_of_the_way_from_chance_to_the_best() -> None:
    mine = rows((0.6, None), (0.35, "above"), (0.05, "below"))
    np.testing.assert_allclose(shares(mine, 0.1), [1, 0.5, 0])
    grid = matrix_grid(["<b>x"], {"<b>x": mine}, {"<b>x": {"chance": 0.1}}, "light")
    assert [cell.text for cell in grid.cells[0] if cell] == ["100", "50▲", "0▼"]
    assert grid.columns == ["all", "1", "2"]


def test_the_figure_parts_heads_by_what_they_carry_and_escapes_names() -> None:
    both = (rows((0.6, None), (0.5, "above"), (0.2, "within")), rows((0.6, None), (0.3, "within"), (0.5, "above")))
    figure = pair_figure(("<b>topic", "genre"), both, Slices((0.3, 0.3), (0.05, 0.02), 0.0), "accuracy", "light")
    ellipse, across, up = figure.data
    assert max(ellipse.x) == pytest.approx(30 + 5 * np.sqrt(5.991))
    assert max(ellipse.y) == pytest.approx(30 + 2 * np.sqrt(5.991), abs=0.1)
    assert (across.name, across.text, up.name, up.text) == ("&lt;b&gt;topic", ("1",), "genre", ("2",))
    assert (list(across.x), list(across.y)) == ([50], [30])
    assert figure.layout.xaxis.ticksuffix == figure.layout.yaxis.ticksuffix == "\u00a0%"
    assert "genre: heads 2" in pair_alt(("topic", "genre"), both)
    counts = np.array([[3, 1], [0, 4]])
    assert confusion_figure(counts, ["a", "b"], "dark").data[0].z.tolist() == [[75, 25], [0, 100]]


def test_a_text_gets_the_value_of_the_nearest_examples_in_each_head() -> None:
    """Head 1 knows the genre, head 2 is the same for all."""
    aspect = Aspect("genre", "column", ("blog", "news"), np.arange(12) % 2)
    vectors = np.zeros((12, 2, 3), dtype=np.float16)
    vectors[:, 0, 0] = np.where(np.arange(12) % 2, 5, 1)
    vectors[:, 1] = 1 + 0.01 * np.arange(12)[:, None]
    found = value_examples(aspect, vectors, aspect.codes)
    np.testing.assert_allclose(found.mean[0], [3, 0, 0])
    assert found.guesses(np.array([[4.0, 0, 0], [1, 1, 1]]))[:2] == ["news", "news"]
    assert found.guesses(np.array([[2.0, 0, 0], [1, 1, 1]]))[:2] == ["blog", "blog"]


def planted_layers(run: Run) -> None:
    """At layer 1 head 3 carries the genre, and nothing else is above random slices."""
    columns: Rows = {}
    for aspect, head in itertools.product(("topic", "genre"), range(5)):
        above = (aspect, head) == ("genre", 3)
        add(
            columns,
            layer=1,
            stage=1,
            aspect=aspect,
            head=head,
            value=0.8 if above else 0.4,
            low=0.3,
            high=0.9,
            p_adjusted=0.01 if head else None,
            verdict=("above" if above else "within") if head else None,
            documents=60,
            chance=0.25,
            slicings=40,
            slices=0.4,
            slices_sd=0.05,
        )
    record = StepRecord(run, "layers", run.manifest(), "planted", {"documents": 60})
    write_table(run.analysis_path("layer_aspects"), as_table(columns, ANALYSIS["layer_aspects"]), "planted")
    record.finish({"documents": 60, "layers": 2, "topics": 3, "labelled": 60, "unlabelled": 0})


def test_another_layer_shows_what_its_heads_carry(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(cache / "planted", tmp_path / "planted")
    planted_layers(Run(tmp_path, "planted"))
    text = said(page_at(tmp_path, PAGE, monkeypatch, layer="1"))
    assert "**genre**: head 3." in text
    assert "60 of 120 documents, sampled by topic, each left out once" in text
    assert "40 random slicings" in text
    assert "One aspect in one head" not in text  # documents are stored for the run's own layer alone
    own = said(page_at(tmp_path, PAGE, monkeypatch))
    assert "**head 1**: topic, not genre" in own
    assert "One aspect in one head" in own


def test_without_layers_the_page_names_the_command(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "For aspects at other layers, run `python -m precompute layers planted`" in said(
        page_at(cache, PAGE, monkeypatch)
    )


def test_a_clicked_head_has_a_link_to_its_profile_and_the_ellipse_has_none(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page_at(cache, PAGE, monkeypatch)
    assert "Open head" not in str([link.proto.label for link in app.get("page_link")])
    app.session_state["two aspects"] = {"picked": {"data": [3, "within", "within"], "at": 1}}
    app.run()
    assert not app.exception
    assert "Open head 3's profile" in [link.proto.label for link in app.get("page_link")]
    app.session_state["two aspects"] = {"picked": {"data": None, "at": 2}}  # the ellipse
    app.run()
    assert "Open head" not in str([link.proto.label for link in app.get("page_link")])
