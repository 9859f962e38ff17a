"""The app without a browser: what each page says in each of its states."""

from __future__ import annotations

import ast
import json
import re
import shutil
import signal
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from streamlit.testing.v1 import AppTest

from core.runs.run import Run
from pages.shared.build import Build, _builds, stop_builds
from tests.support.apps import page_at

ROOT = Path(__file__).resolve().parents[2]
NASTY = '<img src=x onerror="alert(1)"> **bold** [link](javascript:alert(1)) $x$'


@pytest.fixture
def open_app(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """The app on a cache, at an address."""

    def start(cache: Path, **address: str) -> AppTest:
        monkeypatch.setenv("HEADSCOPE_CACHE", str(cache))
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        for name, value in address.items():
            app.query_params[name] = value
        return app.run()

    return start


def said(app: AppTest) -> str:
    """All that stands on the page, HTML included."""
    kinds = ("title", "subheader", "markdown", "caption", "info", "warning", "error")
    parts = [str(element.value) for kind in kinds for element in app.get(kind)]
    return "\n".join([*parts, *(element.proto.body for element in app.get("html"))])


def nearest_titles(cache: Path, run: str, stage: int, head: int, doc: int) -> list[str]:
    """Worked out anew from the files: cosine within the head's slice, the document itself left out."""
    manifest = json.loads((cache / run / "manifest.json").read_text())
    table = pq.read_table(cache / run / "heads" / f"stage={stage}" / "part-00000.parquet")
    rows = np.array(table["vector"].to_pylist(), dtype=np.float64)
    width = rows.shape[1] // manifest["model"]["heads"]
    part = rows[:, (head - 1) * width : head * width] if head else rows
    part = part / np.linalg.norm(part, axis=1, keepdims=True)
    order = np.argsort(-(part @ part[doc]), kind="stable")
    titles = pq.read_table(cache / run / "documents.parquet")["title"].to_pylist()
    return [titles[other] for other in order if other != doc][:6]


def card_titles(app: AppTest) -> list[list[str]]:
    """The titles of each list of cards on the page."""
    import html

    lists = [element.proto.body for element in app.get("html") if "hs-cards" in element.proto.body.split("</style>")[1]]
    return [[html.unescape(title) for title in re.findall(r'hs-title">(.*?)</span>', body)] for body in lists]


def test_overview_shows_the_run_and_real_neighbours(open_app: Callable[..., AppTest], demo_cache: Path) -> None:
    app = open_app(demo_cache)
    assert not app.exception
    facts = "6 layers, 12 heads of width 32, mean pooling · 325 documents"
    assert facts in said(app)
    in_head, in_full = card_titles(app)
    short = lambda titles: [title[:40] for title in titles]  # noqa: E731
    assert short(in_head) == short(nearest_titles(demo_cache, "demo", 1, 1, 0))
    assert short(in_full) == short(nearest_titles(demo_cache, "demo", 1, 0, 0))


def test_the_sidebar_ends_with_the_version(open_app: Callable[..., AppTest], demo_cache: Path) -> None:
    """The one in pyproject.toml, which CITATION.cff names as well (tests/test_docs.py)."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert open_app(demo_cache).sidebar.caption[-1].value == f"Headscope {version}"


def test_another_head_stage_and_document(open_app: Callable[..., AppTest], demo_cache: Path) -> None:
    app = open_app(demo_cache)
    app.selectbox(key="head").select(5)
    app.selectbox(key="doc").select(18)
    app.segmented_control(key="stage").set_value(3)
    app.run()
    assert not app.exception
    assert "Nearest in head 5" in said(app)
    assert "not guaranteed to correspond to heads" in said(app)
    assert [title[:40] for title in card_titles(app)[0]] == [
        title[:40] for title in nearest_titles(demo_cache, "demo", 3, 5, 17)
    ]
    assert dict(app.query_params) == {"stage": "3", "head": "5", "doc": "18"}


def test_a_link_opens_its_view(open_app: Callable[..., AppTest], demo_cache: Path) -> None:
    app = open_app(demo_cache, stage="2", head="7", doc="30")
    assert app.selectbox(key="head").value == 7
    assert app.selectbox(key="doc").value == 30
    assert "Nearest in head 7" in said(app)
    assert not app.toast


@pytest.mark.parametrize("name", ["run", "stage", "head", "doc"])
@pytest.mark.parametrize("value", ["../../etc", "99999", "-1", "<script>alert(1)</script>", ""])
def test_a_hostile_link_falls_back_with_a_notice(
    open_app: Callable[..., AppTest], demo_cache: Path, name: str, value: str
) -> None:
    app = open_app(demo_cache, **{name: value})
    assert not app.exception
    assert [toast.value for toast in app.toast] == [
        f"The link has an unknown value for '{name}'; the default is shown."
    ]
    assert "Nearest in head 1" in said(app)


def test_search_narrows_the_documents(open_app: Callable[..., AppTest], demo_cache: Path) -> None:
    app = open_app(demo_cache)
    titles = pq.read_table(demo_cache / "demo" / "documents.parquet", columns=["title", "text"]).to_pylist()
    wanted = [
        number
        for number, row in enumerate(titles, 1)
        if all(word in (row["title"] + "\n" + row["text"]).lower() for word in ("court", "paid"))
    ]
    assert 1 <= len(wanted) < 100
    app.text_input(key="find").input("COURT paid").run()
    assert [int(option.split(" · ")[0]) for option in app.selectbox(key="doc").options] == wanted
    app.text_input(key="find").input("no-such-word-anywhere").run()
    assert "No document has all of these words" in said(app)
    assert not app.exception


def test_an_empty_cache_explains_itself(open_app: Callable[..., AppTest], tmp_path: Path) -> None:
    app = open_app(tmp_path / "nothing")
    assert not app.exception
    assert "There are no runs yet" in said(app)
    assert [button.label for button in app.button] == ["Build the demo"]


def test_what_a_job_is_still_making_is_told_and_not_asked_for(
    planted_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(planted_cache / "planted", tmp_path / "planted")
    page = "pages/understand/layers/page.py"
    assert app_code(page_at(tmp_path, page, monkeypatch)) == ["python -m precompute layers planted"]
    with Run(tmp_path, "planted").lock():
        app = page_at(tmp_path, page, monkeypatch)
    assert "A job is still working on the run planted" in said(app)
    assert app_code(app) == []
    assert "Check again" in [button.label for button in app.button]


def app_code(app: AppTest) -> list[str]:
    return [block.value for block in app.code]


@pytest.mark.slow
def test_a_build_ends_with_the_server(tmp_path: Path) -> None:
    build = Build(tmp_path)
    assert build.running
    _builds()[tmp_path] = build
    stop_builds()
    assert build._process.wait(60) == -signal.SIGTERM
    build._reader.join(60)
    assert not build.running
    assert build.problem


def test_damaged_and_interrupted_runs_are_told_apart(
    open_app: Callable[..., AppTest], demo_cache: Path, tmp_path: Path
) -> None:
    manifest = json.loads((demo_cache / "demo" / "manifest.json").read_text())
    manifest["steps"]["embed"]["state"] = "running"
    for name, text in (("halfway", json.dumps(manifest)), ("torn", "{")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text(text)
    app = open_app(tmp_path, run="halfway")
    assert "was interrupted" in said(app)
    app = open_app(tmp_path, run="torn")
    assert "is damaged. Rebuild" in said(app).replace("\\", "")
    assert not app.exception
    assert dict(zip(app.dataframe[0].value["run"], app.dataframe[0].value["state"], strict=True)) == {
        "halfway": "interrupted",
        "torn": "damaged",
    }


def test_a_run_with_fewer_heads_does_not_inherit_a_head_that_it_has_not(
    open_app: Callable[..., AppTest],
    demo_cache: Path,
    tiny_model: Path,
    write_corpus: Callable[..., Path],
    tmp_path: Path,
) -> None:
    from core.model.embedder import EmbedderConfig
    from precompute.steps.embed.step import EmbedConfig, run

    cache = tmp_path / "cache"
    shutil.copytree(demo_cache / "demo", cache / "demo")
    source = write_corpus([{"text": f"harbour {number}"} for number in range(5)])
    run(EmbedConfig(cache, "four-heads", str(source), EmbedderConfig(model=str(tiny_model))))
    app = open_app(cache, head="12", doc="300", stage="2")
    app.selectbox(key="run").select("four-heads").run()
    assert not app.exception
    assert not app.toast
    assert (app.selectbox(key="head").value, app.selectbox(key="doc").value) == (1, 1)
    assert app.segmented_control(key="stage").value == 2  # this one both have
    assert dict(app.query_params) == {"run": "four-heads", "stage": "2"}


@pytest.mark.parametrize("file", ["documents.parquet", "heads/stage=1/part-00000.parquet"])
def test_a_missing_file_is_told_in_a_sentence(
    open_app: Callable[..., AppTest], demo_cache: Path, tmp_path: Path, file: str
) -> None:
    shutil.copytree(demo_cache / "demo", tmp_path / "demo")
    (tmp_path / "demo" / file).unlink()
    app = open_app(tmp_path)
    assert not app.exception
    assert "Rebuild it with" in said(app)


def test_a_run_of_one_nasty_document(
    open_app: Callable[..., AppTest], tiny_model: Path, write_corpus: Callable[..., Path], tmp_path: Path
) -> None:
    from core.model.embedder import EmbedderConfig
    from precompute.steps.embed.step import EmbedConfig, run

    source = write_corpus([{"title": NASTY, "text": NASTY, "topic": NASTY, "kind": NASTY[:20]}], f"{'x' * 20}.jsonl")
    run(EmbedConfig(tmp_path / "cache", "one", str(source), EmbedderConfig(model=str(tiny_model))))
    app = open_app(tmp_path / "cache")
    assert not app.exception
    assert "This run has no other document." in said(app)
    body = "\n".join(element.proto.body for element in app.get("html"))
    assert "<img" not in body
    assert "&lt;img src=x onerror=&quot;" in body


def test_a_page_has_no_text_of_its_own_in_its_script() -> None:
    """Streamlit shows a string that stands alone in a page's script, such as an explanation below a constant."""
    scripts = sorted((ROOT / "pages").glob("*/*/page.py"))
    assert len(scripts) >= 10
    for script in scripts:
        alone = [node for node in ast.parse(script.read_text(encoding="utf-8")).body[1:] if isinstance(node, ast.Expr)]
        assert not [node.lineno for node in alone if isinstance(node.value, ast.Constant)], script
