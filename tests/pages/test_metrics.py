"""The server's own endpoints, by real requests: health that has run a page, and figures that Prometheus can read."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError

import pytest
from playwright.sync_api import Page, expect

from core import VERSION
from pages.shared.server import metrics
from tests.conftest import SLOW, settle

SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="[^"\\\n]*",?)*)\})? (\S+)')


def parse(text: str) -> dict[tuple[str, str], float]:
    """By name and labels; every line must be a sample, or a comment that comes before the samples of its name."""
    found: dict[tuple[str, str], float] = {}
    kinds: dict[str, str] = {}
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            name, kinds[name] = line.split()[2], line.split()[3]  # type: ignore[has-type]
        elif not line.startswith("# HELP "):
            sample = SAMPLE.fullmatch(line)
            assert sample, line
            name = sample.group(1)
            family = name if name in kinds else re.sub("_(bucket|sum|count)$", "", name)
            assert kinds[family] in ("counter", "gauge", "histogram"), line
            found[name, sample.group(2) or ""] = float(sample.group(3))
    return found


def test_counts_and_buckets_by_hand() -> None:
    metrics.count("headscope_page_runs_total", "by hand", "ok")
    metrics.count("headscope_page_runs_total", "by hand", "ok")
    for seconds in (0.05, 0.2, 110.0):  # the first lies on a bucket's edge, and within it
        metrics.observe("headscope_page_seconds", seconds, "by hand")
    found = parse(metrics.exposition())
    assert found["headscope_page_runs_total", 'outcome="ok",page="by hand"'] == 2
    at = lambda edge: found["headscope_page_seconds_bucket", f'le="{edge}",page="by hand"']  # noqa: E731
    assert [at(edge) for edge in ("0.05", "0.1", "0.25", "10.0", "60.0", "120.0", "+Inf")] == [1, 1, 2, 2, 2, 3, 3]
    assert found["headscope_page_seconds_sum", 'page="by hand"'] == 110.25
    assert found["headscope_page_seconds_count", 'page="by hand"'] == 3
    assert found["headscope_build_info", f'version="{VERSION}"'] == 1
    assert found["headscope_errors_total", ""] >= 0, "there before the first one, so that it can be seen to rise"
    assert not [key for key in found if key[0].endswith("_created")]


def test_every_metric_has_the_name_that_dashboards_know() -> None:
    for name in metrics.COUNTERS:
        assert f"# TYPE {name} counter" in metrics.exposition()
    for name in metrics.HISTOGRAMS:
        assert f"# TYPE {name} histogram" in metrics.exposition()
    assert {*metrics.COUNTERS, *metrics.HISTOGRAMS, *metrics.GAUGES} == {
        "headscope_runs",
        "headscope_sessions",
        "headscope_queue_length",
        "headscope_upload_bytes",
        "headscope_page_runs_total",
        "headscope_page_seconds",
        "headscope_documents_total",
        "headscope_document_seconds",
        "headscope_logins_total",
        "headscope_builds_total",
        "headscope_problems_total",
        "headscope_errors_total",
    }


def test_a_figure_that_cannot_be_had_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> float:
        raise OSError("the cache has gone")

    monkeypatch.setitem(metrics.WATCHED, "headscope_runs", gone)
    monkeypatch.setitem(metrics.WATCHED, "headscope_sessions", lambda: 3)
    found = parse(metrics.exposition())
    assert found["headscope_sessions", ""] == 3
    assert ("headscope_runs", "") not in found


def test_a_deep_link_to_a_fresh_server_then_health_and_figures(
    page: Page, serve: Callable[..., str], planted_cache: Path, tmp_path: Path
) -> None:
    """The server's first visitor comes by a link to an inner page, and is told nothing of "Page not found"."""
    address = serve(planted_cache, log=tmp_path / "log")
    before = get(f"{address}/metrics")
    page.goto(f"{address}/stages?run=planted")
    expect(page.get_by_role("heading", name="Stages", exact=True)).to_be_visible(timeout=SLOW)
    settle(page)
    expect(page.get_by_text("Page not found")).to_have_count(0)
    assert get(f"{address}/healthz") == "ok\n"
    assert not [key for key in parse(before) if key[0] == "headscope_page_runs_total"], "its own look does not count"
    found = parse(get(f"{address}/metrics"))
    assert found["headscope_page_runs_total", 'outcome="ok",page="stages"'] >= 1
    assert found["headscope_page_seconds_sum", 'page="stages"'] > 0
    assert found["headscope_sessions", ""] == 1
    assert found["headscope_runs", ""] == 1
    assert found["headscope_queue_length", ""] == 0
    assert 50e6 < found["process_resident_memory_bytes", ""] < 5e9
    said = (tmp_path / "log").read_text()
    assert said.count(" warning open ") == 1, "once, that nobody has to sign in"
    assert " runs=1 auth=off domains=0 " in said
    assert re.search(r"Z info page page=stages run=planted ms=\d+ outcome=ok session=[0-9a-f]{8}\n", said)


def test_health_knows_that_no_page_can_be_shown(serve: Callable[..., str], tmp_path: Path) -> None:
    """The same server half over a script whose page fails: Streamlit's own health says ok all the same."""
    script = tmp_path / "broken.py"
    script.write_text(
        "import streamlit as st\nfrom pages.shared.server.lifespan import ROUTES, lifespan\n"
        "if __name__ == '__main__':\n    if st.get_option('server.maxUploadSize') == 3:\n"
        "        raise ValueError('the quagga has fled')\n"
        "else:\n    app = st.App(__file__, lifespan=lifespan, routes=ROUTES)\n"
    )
    address = serve(tmp_path, script=str(script), log=tmp_path / "log", HEADSCOPE_UPLOAD_MB="3")
    assert get(f"{address}/_stcore/health") == "ok"
    with pytest.raises(HTTPError, match="503"):
        get(f"{address}/healthz")
    said = (tmp_path / "log").read_text()
    assert " error error kind=ValueError" in said
    assert "quagga" not in said, "an error's own words may quote a document"
    assert "Traceback" not in said
    assert " upload_mb=3 " in said  # and the server holds to it, else the page had not failed


def test_health_knows_that_the_settings_are_wrong(serve: Callable[..., str], planted_cache: Path) -> None:
    address = serve(planted_cache, HEADSCOPE_DEVICE="toaster")
    with pytest.raises(HTTPError, match="503"):
        get(f"{address}/healthz")


def get(address: str) -> str:
    with urllib.request.urlopen(address, timeout=60) as answer:
        if address.endswith("/metrics"):
            assert answer.headers["Content-Type"] == metrics.CONTENT_TYPE
        text: str = answer.read().decode()
    return text
