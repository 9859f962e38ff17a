"""Every page that shows topic match says when the embedding has labelled its own test, and only then."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.model.shape import ModelShape
from core.runs.labels import CIRCULAR_NOTE
from core.runs.run import Run
from pages.shared.text import plain
from precompute.steps.analyse import step as analyse
from precompute.steps.analyse.step import AnalyseConfig
from precompute.steps.label import step as label
from precompute.steps.label.config import LabelConfig
from tests.conftest import app_at
from tests.support.synthetic import PlantedTopics, write_run

SHAPE = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)
TOPICS = ("rivers", "engines", "poems")
DOCS = 48
PLANTED = {
    stage: dict(zip(TOPICS, np.random.default_rng(stage).normal(size=(3, 32)).astype(np.float32), strict=True))
    for stage in (1, 2, 3)
}
PAGES = {
    "Overview": "pages/explore/overview/page.py",
    "Head profile": "pages/explore/head_profile/page.py",
    "Topics": "pages/understand/topics/page.py",
}


def vectors(stage: int, first: int, count: int) -> np.ndarray:
    rows = np.random.default_rng(stage).normal(size=(DOCS, 32)) * 0.4
    rows += np.stack([PLANTED[stage][TOPICS[doc % 3]] for doc in range(DOCS)])
    return rows[first : first + count]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same documents labelled by their corpus, and by the embedding."""
    cache, model = tmp_path_factory.mktemp("circular"), PlantedTopics(SHAPE, PLANTED)
    topics = cache / "topics.txt"
    topics.write_text("\n".join(TOPICS))
    for source in ("column", "zero-shot"):
        run: Run = write_run(cache, source, SHAPE, vectors, [TOPICS[doc % 3] for doc in range(DOCS)])
        label.run(LabelConfig(cache, run.name, source, topics=str(topics), model=model))
        analyse.run(AnalyseConfig(cache, run.name, model=model))
    return cache


def opened(cache: Path, page: str, run: str, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    monkeypatch.setenv("HEADSCOPE_CACHE", str(cache))
    app = app_at(PAGES[page])
    app.query_params["run"] = run
    app.run()
    assert not app.exception
    return app


def said(app: AppTest) -> str:
    kinds = ("subheader", "markdown", "caption", "warning")
    parts = [str(element.value) for kind in kinds for element in app.get(kind)]
    parts += [metric.label for metric in app.metric]
    return "\n".join([*parts, *(element.proto.body for element in app.get("html"))])


@pytest.mark.parametrize("page", PAGES)
def test_circular_labels_are_called_so_beside_topic_match(
    cache: Path, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = opened(cache, page, "zero-shot", monkeypatch)
    assert [warning.value for warning in app.warning] == [plain(CIRCULAR_NOTE)]
    if page == "Head profile":
        assert "Topic match, top 1 (circular)" in [metric.label for metric in app.metric]
        assert "Topic match, top 1 (circular)</th>" in said(app)
    if page == "Overview":
        assert "**Is the labelled topic the nearest?** (circular)" in said(app)
        assert r"labels: zero\-shot\: the nearest topic embedding" in said(app)


@pytest.mark.parametrize("page", PAGES)
def test_other_labels_are_not(cache: Path, page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened(cache, page, "column", monkeypatch)
    assert not app.warning
    assert "ircular" not in said(app)
    if page == "Overview":
        assert r"labels: column\: the corpus's own topics" in said(app)
