"""Every page on a slim run: nothing breaks, and what it cannot show is said.

One keeps stage 3 alone, as int8; the other keeps the vectors of some documents.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.model.embedder import EmbedderConfig
from core.retrieval.nearest import nearest
from core.runs.run import Run
from pages.shared import embedding
from precompute.job.storage import Storage
from precompute.job.topic_vectors import TopicModel
from precompute.steps.analyse import step as analyse
from precompute.steps.analyse.step import AnalyseConfig
from precompute.steps.aspects import step as aspects
from precompute.steps.aspects.step import AspectsConfig
from precompute.steps.attention import step as attention
from precompute.steps.attention.config import AttentionConfig
from precompute.steps.embed.step import EmbedConfig, run
from precompute.steps.layers import step as layers
from precompute.steps.layers.step import LayersConfig
from precompute.steps.project import step as project
from precompute.steps.project.config import ProjectConfig
from precompute.steps.retrieve import step as retrieve
from precompute.steps.retrieve.step import RetrieveConfig
from precompute.steps.slim import step
from precompute.steps.slim.step import SlimConfig
from tests.support.apps import page_at

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("pages/*/*/page.py"))
PATIENCE = 90
COMMAND = "python -m precompute all slim --source … --model … --store-dtype int8 --replace"

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]


@pytest.fixture(scope="module")
def cache(
    tmp_path_factory: pytest.TempPathFactory, tiny_model: Path, some_rows: Callable[..., list[dict[str, Any]]]
) -> Path:
    """The run 'slim' with everything that the job makes, 'whole' with all stages, and 'few' with 12 vectors."""
    folder = tmp_path_factory.mktemp("slim")
    topics = ("rivers", "engines", "gardens")
    rows = [row | {"title": f"Title {at}", "topic": topics[at % 3]} for at, row in enumerate(some_rows(45))]
    source = folder / "corpus.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    cache, how = folder / "cache", TopicModel(str(tiny_model))
    for name, storage in (("slim", Storage((3,), "int8")), ("whole", Storage())):
        run(EmbedConfig(cache, name, str(source), EmbedderConfig(model=str(tiny_model)), storage=storage))
        analyse.run(AnalyseConfig(cache, name, model=how))
    shutil.copytree(cache / "whole", cache / "few")
    for name in ("slim", "few"):
        project.run(ProjectConfig(cache, name, iterations=30, threads=1))
        retrieve.run(RetrieveConfig(cache, name, limit=12, model=how))
    step.run(SlimConfig(cache, "few", 12))
    aspects.run(AspectsConfig(cache, "slim"))
    layers.run(LayersConfig(cache, "slim", documents=30, model=how))
    attention.run(AttentionConfig(cache, "slim", documents=6, model=how))
    return cache


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch, tiny_model: Path, cache: Path) -> Iterator[Callable[..., AppTest]]:
    embedding.model_pool().models.clear()
    monkeypatch.setenv("HEADSCOPE_MODELS", str(tiny_model.parent))
    yield lambda page, **address: page_at(cache, page, monkeypatch, PATIENCE, **address)
    embedding.model_pool().models.clear()


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
    # Your document asks once there is one; ablation measures the model's own embedding.
    without = ("pages/use/your_document/page.py", "pages/understand/ablation/page.py")
    assert len(choices) == (page not in without)
    for one in choices:
        assert [option.content for option in one.proto.options] == ["3 output"]
        assert "This run does not store stages 1 and 2" in text
        assert "The link has an unknown value for 'stage'" in text
        assert "stage" not in app.query_params


@pytest.mark.parametrize("page", ["pages/explore/overview/page.py", "pages/understand/stages/page.py"])
def test_the_note_says_what_a_slim_run_cannot_show_and_the_command_that_brings_it(
    open_page: Callable[..., AppTest], page: str
) -> None:
    text = said(open_page(page, run="slim"))
    assert "A slim run: it stores stage 3" in text
    assert "stage 1 attention: what each head read" in text
    assert COMMAND in text
    assert "A slim run" not in said(open_page(page, run="whole"))


def test_overview_says_how_vectors_are_kept_and_what_the_drawing_lacks(open_page: Callable[..., AppTest]) -> None:
    def tooltips(app: AppTest) -> str:
        return "\n".join(one.proto.help for one in app.markdown).replace("\\", "")  # as it is read

    app = open_page("pages/explore/overview/page.py", run="slim")
    assert "stage 3 as int8 (in each head's vector the largest number is 127 steps" in tooltips(app)
    assert said(app).count("(not stored in this run)") == 2
    assert "stages 1, 2 and 3 as float16" in tooltips(open_page("pages/explore/overview/page.py", run="whole"))


def test_a_head_beside_one_of_a_run_that_lacks_the_stage(open_page: Callable[..., AppTest]) -> None:
    text = said(open_page("pages/explore/head_profile/page.py", run="whole", stage="1", beside="slim"))
    assert "That run has no stage 1." in text


AMONG = "Looked for among the 12 of 45 documents whose vectors this run stores."


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_a_run_with_some_vectors_shows_a_document_that_has_none(
    open_page: Callable[..., AppTest], cache: Path, page: str
) -> None:
    """A document without vectors is asked for."""
    kept = set(Run(cache, "few").vector_docs().tolist())
    gone = next(doc for doc in range(45) if doc not in kept)
    app = open_page(page, run="few", doc=str(gone + 1), panel="1", head="2")
    text = said(app)
    assert not app.error, text
    if page == "pages/explore/overview/page.py":
        assert "A slim run: it stores the vectors of 12 of 45 documents" in text
        assert "python -m precompute all few --source … --model … --replace" in text
    missing = {
        "pages/explore/overview/page.py": "No vectors and no nearest documents",
        "pages/explore/heat_map/page.py": "No nearest documents",
    }
    if page in missing:
        said_of_it = f"this run stores the vectors of 12 of 45 documents, and document {gone + 1} is not among them"
        assert f"{missing[page]}: {said_of_it}" in text


@pytest.mark.parametrize(("stage", "head"), [(1, 2), (3, 4)])
def test_the_nearest_documents_are_the_nearest_of_those_that_are_kept(
    open_page: Callable[..., AppTest], cache: Path, stage: int, head: int
) -> None:
    whole, docs = Run(cache, "whole"), Run(cache, "few").vector_docs()
    doc = int(docs[5])
    vectors = whole.head_vectors(stage, head)
    found = nearest(vectors[docs], 5, 6)
    text = said(
        open_page("pages/explore/overview/page.py", run="few", doc=str(doc + 1), stage=str(stage), head=str(head))
    )
    assert AMONG in text
    listed = [int(number) for number in re.findall(r"Title (\d+)", text)]
    assert listed[:7] == [doc, *docs[found.docs]]  # its own card comes first


def test_the_lab_judges_and_finds_among_those_that_are_kept(open_page: Callable[..., AppTest], cache: Path) -> None:
    app = open_page("pages/use/retrieval_lab/page.py", run="few", stage="3")
    assert not app.error, said(app)
    assert AMONG in said(app)
    docs = Run(cache, "few").vector_docs()
    asked = next(box for box in app.selectbox if box.label == "or choose a document as the question")
    assert [int(option.split(" ")[0]) - 1 for option in asked.options] == docs.tolist()
    results = said(app).split("What the kept heads find")[1]
    assert {int(number) for number in re.findall(r"\d+\. (?:✓ )?Title (\d+)", results)} < set(docs.tolist())
    app = open_page("pages/use/retrieval_lab/page.py", run="few", tab="metrics")
    assert f"{AMONG} That is easier than searching all documents, as the figures below do." in said(app)


def test_a_new_document_is_held_against_those_that_are_kept(open_page: Callable[..., AppTest], cache: Path) -> None:
    app = _embedded(open_page("pages/use/your_document/page.py", run="few"))
    assert said(app).count(AMONG) == 3  # nearest documents, without a head, maps
    assert "Percentiles are among the 12 of 45 documents whose vectors this run stores." in said(app)
    docs = Run(cache, "few").vector_docs()
    near = said(app).split("Nearest documents of the corpus")[1]
    titles = [int(number) for number in re.findall(r"Title (\d+)", near)]
    assert titles
    assert set(titles) <= set(docs.tolist())


def test_a_new_document_is_embedded_and_placed_at_the_stage_there_is(open_page: Callable[..., AppTest]) -> None:
    app = _embedded(open_page("pages/use/your_document/page.py", run="slim"))
    assert "This run does not store stages 1 and 2" in said(app)


def _embedded(app: AppTest) -> AppTest:
    app.text_area[0].set_value("harbour violin enzyme")
    next(button for button in app.button if button.label == "Embed").click()
    app.run()
    for _ in range(PATIENCE * 5):
        assert not app.exception
        if "Export" in [heading.value for heading in app.subheader] and "the embedding turns by" in said(app):
            break
        time.sleep(0.2)
        app.run()
    assert "Export" in [heading.value for heading in app.subheader], said(app)
    assert not app.error
    return app
