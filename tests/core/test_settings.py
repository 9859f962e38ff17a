"""Settings of the environment: parsed, checked together, documented, and obeyed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from core.errors import Mistakes
from core.remote.mirror import is_read_only
from core.settings import SETTINGS, Settings, read_settings, unknown_settings
from core.uploads import read_upload
from tests.support import ROOT
from tests.support.apps import page_at


def test_nothing_set_gives_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert read_settings({}) == Settings(
        cache=ROOT / "cache",
        mirror=Path("/somewhere/headscope/mirror"),
        run=None,
        device=None,
        models=Path("/somewhere/headscope/models"),
        upload_mb=20,
        uploads_mb=400,
        read_only=False,
        login="if-configured",
        allowed_domains=(),
        trusted_providers=(),
        login_hours=720,
        state=Path("/somewhere/headscope/state"),
        allowed_hosts=(),
        metrics_token=None,
        log_level="info",
        log_format="text",
        secrets=ROOT / ".streamlit" / "secrets.toml",
    )
    assert read_settings(dict.fromkeys(SETTINGS, "  ")) == read_settings({}), "empty is not set"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("HEADSCOPE_CACHE", "/runs", Path("/runs")),
        ("HEADSCOPE_RUN", "news-2026", "news-2026"),
        ("HEADSCOPE_DEVICE", "CUDA:1", "cuda:1"),
        ("HEADSCOPE_DEVICE", "auto", None),
        ("HEADSCOPE_UPLOAD_MB", " 200 ", 200),
        ("HEADSCOPE_READ_ONLY", "Yes", True),
        ("HEADSCOPE_READ_ONLY", "0", False),
        ("HEADSCOPE_LOGIN", "required", "required"),
        ("HEADSCOPE_ALLOWED_DOMAINS", "Example.org, lab.example.com,example.org", ("example.org", "lab.example.com")),
        ("HEADSCOPE_ALLOWED_DOMAINS", "BÜCHER.example".lower(), ("xn--bcher-kva.example",)),
        ("HEADSCOPE_TRUSTED_PROVIDERS", "entra, default", ("entra", "default")),
        ("HEADSCOPE_ALLOWED_HOSTS", "https://Heads.example.org:8443, *.lab", ("heads.example.org", "*.lab")),
        ("HEADSCOPE_ALLOWED_HOSTS", "*", ("*",)),
        ("HEADSCOPE_LOGIN_HOURS", "12", 12),
        ("HEADSCOPE_METRICS_TOKEN", "0123456789abcdef", "0123456789abcdef"),
        ("HEADSCOPE_LOG_LEVEL", "WARNING", "warning"),
        ("HEADSCOPE_LOG_FORMAT", "json", "json"),
    ],
)
def test_what_is_understood(name: str, text: str, value: object) -> None:
    assert getattr(read_settings({name: text}), SETTINGS[name].field) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("HEADSCOPE_CACHE", __file__),
        ("HEADSCOPE_RUN", "../../etc"),
        ("HEADSCOPE_DEVICE", "toaster"),
        ("HEADSCOPE_DEVICE", "cuda:x"),
        ("HEADSCOPE_UPLOAD_MB", "0"),
        ("HEADSCOPE_UPLOAD_MB", "201"),
        ("HEADSCOPE_UPLOAD_MB", "1e3"),
        ("HEADSCOPE_UPLOAD_MB", "٣"),
        ("HEADSCOPE_READ_ONLY", "perhaps"),
        ("HEADSCOPE_LOGIN", "never"),
        ("HEADSCOPE_ALLOWED_DOMAINS", "@example.org"),
        ("HEADSCOPE_ALLOWED_DOMAINS", "*.example.org"),
        ("HEADSCOPE_ALLOWED_DOMAINS", "example.org,"),
        ("HEADSCOPE_ALLOWED_DOMAINS", "org"),
        ("HEADSCOPE_ALLOWED_DOMAINS", "\u212aelvin.org"),
        ("HEADSCOPE_TRUSTED_PROVIDERS", "entra,"),
        ("HEADSCOPE_ALLOWED_HOSTS", "heads.example.org/path"),
        ("HEADSCOPE_ALLOWED_HOSTS", "heads.*"),
        ("HEADSCOPE_LOGIN_HOURS", "721"),
        ("HEADSCOPE_UPLOADS_MB", "-1"),
        ("HEADSCOPE_LOG_LEVEL", "loud"),
        ("HEADSCOPE_LOG_FORMAT", "xml"),
    ],
)
def test_what_is_not_is_a_sentence_with_a_remedy(name: str, text: str) -> None:
    with pytest.raises(Mistakes) as caught:
        read_settings({name: text})
    (sentence,) = caught.value.sentences
    assert re.fullmatch(rf"{name} is .+; it should be .+\. Change it, or unset it\.", sentence)


WRONG = {"HEADSCOPE_UPLOAD_MB": "many", "HEADSCOPE_DEVICE": "toaster"}


def test_the_job_tells_all_mistakes_at_once(command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in WRONG.items():
        monkeypatch.setenv(name, text)
    outcome = command("status")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.splitlines() == [
        "headscope: HEADSCOPE_DEVICE is 'toaster'; it should be auto, cpu, cuda, cuda:1 (or another number) or mps. "
        "Change it, or unset it.",
        "headscope: HEADSCOPE_UPLOAD_MB is 'many'; it should be a whole number from 1 to 200. Change it, or unset it.",
    ]


def test_the_app_tells_them_on_a_page_instead_of_data(planted_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in WRONG.items():
        monkeypatch.setenv(name, text)
    app = page_at(planted_cache, "pages/explore/overview/page.py", monkeypatch)
    assert [heading.value for heading in app.subheader] == ["Headscope is not set up yet"]
    assert [error.value.replace("\\", "").split(";")[0] for error in app.error] == [
        "HEADSCOPE_DEVICE is 'toaster'",
        "HEADSCOPE_UPLOAD_MB is 'many'",
    ]
    assert not app.selectbox
    assert not app.exception


def test_a_variable_that_is_none_of_ours_is_told(command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert unknown_settings({"HEADSCOPE_UPLOAD": "3", "HEADSCOPE_CACHE": "x", "PATH": "y", "XHEADSCOPE_": "z"}) == [
        "HEADSCOPE_UPLOAD is not a Headscope setting and is ignored. Did you mean HEADSCOPE_UPLOAD_MB?"
    ]
    (sentence,) = unknown_settings({"HEADSCOPE_ZZZ": ""})
    assert sentence.endswith(f"There are: {', '.join(SETTINGS)}.")
    monkeypatch.setenv("HEADSCOPE_CASH", "x")
    outcome = command("status", "--json")
    assert outcome.status == 0
    assert "Did you mean HEADSCOPE_CACHE?" in outcome.err


def test_the_documented_settings_are_those_of_the_table() -> None:
    section = (ROOT / "docs" / "configuration.md").read_text().split("\n## ")[0]
    rows = re.findall(r"^\| `(HEADSCOPE_\w+)` \| (.+) \| (.+) \|$", section, re.MULTILINE)
    assert rows == [(name, row.meaning, row.shown) for name, row in SETTINGS.items()]
    assert {row.field for row in SETTINGS.values()} == {field.name for field in fields(Settings)}


def test_no_variable_is_read_past_the_table() -> None:
    files = [
        *ROOT.glob("*.py"),
        *(each for room in ("core", "pages", "precompute") for each in ROOT.glob(f"{room}/**/*.py")),
    ]
    named = {name for path in files for name in re.findall(r"HEADSCOPE_[A-Z_]+[A-Z]", path.read_text())}
    assert named == set(SETTINGS)


def test_the_run_shown_first(planted_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    for name in ("a", "b", "demo"):
        shutil.copytree(planted_cache / "planted", tmp_path / name)
    for given, first in ((None, "demo"), ("b", "b"), ("gone", "demo")):
        monkeypatch.setenv("HEADSCOPE_RUN", given or "")
        app = page_at(tmp_path, "pages/explore/overview/page.py", monkeypatch)
        assert app.selectbox(key="run").value == first
        assert "run" not in app.query_params, "the first one leaves no trace in the address"


def test_a_server_that_only_reads_offers_no_building(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADSCOPE_READ_ONLY", "1")
    app = page_at(tmp_path / "nothing", "pages/explore/overview/page.py", monkeypatch)
    assert not app.button
    assert "only reads its cache" in app.info[0].value
    assert not (tmp_path / "nothing").exists()


def test_a_cache_that_cannot_be_written_makes_it_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = read_settings({"HEADSCOPE_CACHE": str(tmp_path / "not" / "there")})
    assert not is_read_only(settings)
    asked = []

    def access(path: Path, mode: int) -> bool:
        asked.append(path)
        return False  # root may write anywhere but on a read-only mount, which a test cannot make

    monkeypatch.setattr(os, "access", access)
    assert is_read_only(settings)
    assert asked == [tmp_path], "the nearest folder that is there"


@pytest.mark.slow
def test_the_limit_of_uploads_holds_in_the_page_and_in_the_reader(
    planted_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADSCOPE_UPLOAD_MB", "21")
    app = page_at(planted_cache, "pages/use/your_document/page.py", monkeypatch)
    (uploader,) = app.get("file_uploader")
    assert uploader.proto.max_upload_size_mb == 21
    assert uploader.proto.label == "Upload documents, up to 21 MB each"
    page = b"<p>harbour</p>" + b" " * 20_500_000
    (found,) = read_upload("a.html", page, most=21_000_000)  # in a process of its own, which takes the limit too
    assert found.text == "harbour"
    (found,) = read_upload("a.txt", b"harbour" + b" " * 20_500_000, most=21_000_000)
    assert found.text == "harbour"
    with pytest.raises(Exception, match=r"a\.html is 20\.5 MB; the limit is 20 MB"):
        read_upload("a.html", page)
