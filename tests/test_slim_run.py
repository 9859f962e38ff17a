"""Every page on a run that keeps stage 3 alone, as int8: nothing breaks, and what it cannot show is said."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import page_at
from streamlit.testing.v1 import AppTest

from core.embedder import EmbedderConfig
from pages.shared import embedding
from precompute import analyse, attention, layers, project, retrieve
from precompute.analyse import AnalyseConfig
from precompute.attention_config import AttentionConfig
from precompute.embed import EmbedConfig, run
from precompute.layers import LayersConfig
from precompute.project_config import ProjectConfig
from precompute.retrieve import RetrieveConfig
from precompute.storage import Storage
from precompute.topic_vectors import TopicModel

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(re.findall(r'"(pages/\w+/\w+\.py)"', (ROOT / "app.py").read_text()))
PATIENCE = 90
COMMAND = "python -m precompute all slim --source … --model … --store-dtype int8 --replace"

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def cache(
    tmp_path_factory: pytest.TempPathFactory, tiny_model: Path, some_rows: Callable[..., list[dict[str, Any]]]
) -> Path:
    """The run 'slim' with everything that the job makes, and the run 'whole' with figures of all stages."""
    folder = tmp_path_factory.mktemp("slim")
    topics = ("rivers", "engines", "gardens")
    rows = [row | {"title": f"Title {at}", "topic": topics[at % 3]} for at, row in enumerate(some_rows(45))]
    source = folder / "corpus.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    cache, how = folder / "cache", TopicModel(str(tiny_model))
    for name, storage in (("slim", Storage((3,), "int8")), ("whole", Storage())):
        run(EmbedConfig(cache, name, str(source), EmbedderConfig(model=str(tiny_model)), storage=storage))
        analyse.run(AnalyseConfig(cache, name, model=how))
    project.run(ProjectConfig(cache, "slim", iterations=30, threads=1))
    retrieve.run(RetrieveConfig(cache, "slim", limit=12, model=how))
    layers.run(LayersConfig(cache, "slim", documents=30, model=how))
    attention.run(AttentionConfig(cache, "slim", documents=6, model=how))
    return cache


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch, tiny_model: Path, cache: Path) -> Iterator[Callable[..., AppTest]]:
    embedding.office().models.clear()
    monkeypatch.setenv("HEADSCOPE_MODELS", str(tiny_model.parent))
    yield lambda page, **address: page_at(cache, page, monkeypatch, PATIENCE, **address)
    embedding.office().models.clear()


def said(app: AppTest) -> str:
    kinds = ("title", "subheader", "markdown", "caption", "info", "warning", "error", "code", "toast")
    parts = [re.sub(r"\\(\W)", r"\1", str(element.value)) for kind in kinds for element in app.get(kind)]
    return "\n".join([*parts, *(element.proto.body for element in app.get("html"))])


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_the_stage_there_is_and_names_those_that_are_not(
    open_page: Callable[..., AppTest], page: str
) -> None:
    app = open_page(page, run="slim", stage="1", doc="3", head="2", stages="1", beside="whole")
    text = said(app)
    assert not app.error, text
    choices = [one for one in app.get("button_group") if one.label == "Stage"]
    assert len(choices) == (page != "pages/use/your_document.py"), "Your document asks once there is one"
    for one in choices:
        assert [option.content for option in one.proto.options] == ["3 output"]
        assert "This run does not keep stages 1 and 2" in text
        assert "The link names a stage that is not here" in text
        assert "stage" not in app.query_params


@pytest.mark.parametrize("page", ["pages/explore/overview.py", "pages/understand/stages.py"])
def test_the_note_says_what_a_slim_run_cannot_show_and_the_command_that_brings_it(
    open_page: Callable[..., AppTest], page: str
) -> None:
    text = said(open_page(page, run="slim"))
    assert "A slim run: it keeps stage 3" in text
    assert "stage 1 attention: what each head read" in text
    assert COMMAND in text
    assert "A slim run" not in said(open_page(page, run="whole"))


def test_overview_says_how_vectors_are_kept_and_what_the_drawing_lacks(open_page: Callable[..., AppTest]) -> None:
    text = said(open_page("pages/explore/overview.py", run="slim", beside="whole"))
    assert "Vectors: stage 3 as int8 (of each head's vector the largest number is 127 steps" in text
    assert text.count("(not kept in this run)") == 2
    # Side by side: the stages that only the other has are dashes here.
    assert re.search(r"Probe by document · 1 attention.*?<td[^>]*>–", text, re.DOTALL)
    assert "Vectors: stages 1, 2 and 3 as float16" in said(open_page("pages/explore/overview.py", run="whole"))


def test_a_head_beside_one_of_a_run_that_lacks_the_stage(open_page: Callable[..., AppTest]) -> None:
    text = said(open_page("pages/explore/head_profile.py", run="whole", stage="1", beside="slim"))
    assert "That run has no stage 1." in text


def test_a_new_document_is_embedded_and_placed_at_the_stage_there_is(open_page: Callable[..., AppTest]) -> None:
    app = open_page("pages/use/your_document.py", run="slim")
    app.text_area[0].set_value("harbour violin enzyme")
    next(button for button in app.button if button.label == "Embed").click()
    app.run()
    for _ in range(PATIENCE * 5):
        assert not app.exception
        if "Take it with you" in [heading.value for heading in app.subheader]:
            break
        time.sleep(0.2)
        app.run()
    assert "Take it with you" in [heading.value for heading in app.subheader], said(app)
    assert not app.error
    assert "This run does not keep stages 1 and 2" in said(app)
