"""The log: one line an event, with what an operator needs, and nothing that a visitor wrote."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import Mistake
from pages.shared.notices import show_problem
from pages.shared.server.log import EVENTS, Uncaught, event, place, set_up
from tests.conftest import ROOT, page_at

PASTED = "The pasted okapi hides in the orchard. " * 3
SEARCHED = "numbat"


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What goes to standard error, set up as the server does."""
    said = io.StringIO()
    monkeypatch.setattr(sys, "stderr", said)
    set_up()
    yield said
    logging.getLogger("headscope").handlers.clear()
    logging.getLogger("streamlit.error_util").filters.clear()


def test_a_line(log: io.StringIO) -> None:
    event("page", session="0a1b2c3d", run="demo", page="head_map", ms=41, outcome="ok")
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info page page=head_map run=demo ms=41 outcome=ok session=0a1b2c3d\n",
        log.getvalue(),
    )


def test_a_value_cannot_begin_a_line_of_its_own(log: io.StringIO) -> None:
    event("setting", sentence='x\n2026-01-01T00:00:00.000Z info login "session=1\u2028')
    (line,) = log.getvalue().splitlines()
    assert line.endswith(r' warning setting sentence="x\n2026-01-01T00:00:00.000Z info login \"session=1\u2028"')
    event("setting", sentence="y" * 10_000)
    assert len(log.getvalue().splitlines()[1]) < 500


def test_as_json(log: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", log)  # pytest has put its own there since
    set_up("warning", "json")
    event("page", page="stages", ms=3)  # below the level
    event("problem", kind="upload", session="0a1b2c3d")
    found = json.loads(log.getvalue())
    assert found.pop("time").endswith("Z")
    assert found == {"level": "warning", "event": "problem", "kind": "upload", "session": "0a1b2c3d"}


def test_a_new_field_is_a_decision() -> None:
    with pytest.raises(TypeError, match="no field text"):
        event("page", text="a document")
    with pytest.raises(KeyError):
        event("something")
    assert set(EVENTS) >= {"start", "session", "page", "build", "document", "login", "refused", "logout", "problem"}


def test_an_uncaught_error_is_told_by_type_and_place(log: io.StringIO) -> None:
    def fail() -> None:
        raise ValueError("quotes a document")

    with pytest.raises(ValueError, match="quotes") as caught:
        fail()
    line = fail.__code__.co_firstlineno + 1
    assert place(caught.value).startswith(f"tests/pages/test_log.py:{line}<tests/pages/test_log.py:")
    record = logging.LogRecord("streamlit.error_util", 40, "", 0, "Uncaught", (), (ValueError, caught.value, None))
    assert not Uncaught().filter(record), "Streamlit's own words, with the error's, are dropped"
    set_up("debug")
    assert Uncaught().filter(record), "whoever debugs wants all of it"
    assert " error error kind=ValueError at=" in log.getvalue()
    assert "quotes" not in log.getvalue()


@pytest.fixture(scope="module")
def tiny_cache(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run by a tiny real model; the word numbat is in one of its documents."""
    from core.model.embedder import EmbedderConfig
    from precompute.steps.embed.step import EmbedConfig, run

    cache = tmp_path_factory.mktemp("tiny")
    source = cache / "corpus.jsonl"
    texts = ["the aardvark and the numbat", "harbour violin", "glacier enzyme", "loom orchard"]
    source.write_text("".join(json.dumps({"text": text, "title": f"About {text}"}) + "\n" for text in texts))
    run(EmbedConfig(cache, "tiny", str(source), EmbedderConfig(model=str(tiny_model))))
    return cache


def test_a_walk_leaves_no_word_of_its_walker(
    log: io.StringIO, tiny_cache: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Search, a hostile address, a pasted document that is embedded, one that is refused: noted, and not quoted."""
    monkeypatch.setenv("HEADSCOPE_MODELS", str(tiny_model.parent))
    app = page_at(
        tiny_cache, "pages/explore/overview/page.py", monkeypatch, head="<dugong>", run="dugong", find="dugong"
    )
    app.text_input(key="find").input(SEARCHED).run()
    app.switch_page("pages/use/your_document/page.py").run()
    embed = lambda: next(button for button in app.button if button.label == "Embed")  # noqa: E731
    embed().click().run()  # an empty text is refused in a sentence
    assert app.error
    app.text_area[0].set_value(PASTED)
    embed().click().run()
    for _ in range(40):
        if " info document " in log.getvalue():
            break
        app.run()
    assert not app.exception
    said = log.getvalue()
    (session,) = set(re.findall(r" session=(\w+)", said))
    assert re.fullmatch("[0-9a-f]{8}", session)
    assert said.count(" info session ") == 1
    assert re.search(r" info page page=overview run=tiny ms=\d+ outcome=ok ", said)
    assert re.search(r" info page page=your_document run=tiny ms=\d+ outcome=\w+ ", said)
    assert re.search(r" info document run=tiny ms=\d+ outcome=ok session=\w+ tokens=\d+ parts=1\n", said)
    assert said.count(" warning problem run=tiny session=") == 1
    for word in ("okapi", "numbat", "aardvark", "dugong", "orchard"):
        assert word not in said.lower()


def test_a_problem_is_noted_once_a_session_by_its_place(
    log: io.StringIO, planted_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    shutil.copytree(planted_cache / "planted", tmp_path / "planted")
    (tmp_path / "planted" / "documents.parquet").write_bytes(b"PAR1")
    app = page_at(tmp_path, "pages/explore/overview/page.py", monkeypatch)
    app.run()
    assert "documents.parquet" in app.error[0].value.replace("\\", "")
    problems = [line for line in log.getvalue().splitlines() if " warning problem " in line]
    assert problems
    assert len(problems) == len({re.sub(r"^\S+", "", line) for line in problems}), "each of them once"
    assert re.search(r" kind=Mistake at=core/[\w/]+\.py:\d+<", problems[0])


def test_every_problem_of_a_page_goes_through_the_log() -> None:
    """A sentence shown by st.error alone would be seen by its reader, and by no operator."""
    assert callable(show_problem)
    named = [path for path in (ROOT / "pages").rglob("*.py") if "st.error(" in path.read_text()]
    assert {path.name for path in named} == {"notices.py", "front_door.py"}


def test_mistakes_know_their_sentences() -> None:
    assert Mistake("One.").sentences == ("One.",)
