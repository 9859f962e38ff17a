"""The file that a run becomes: what it holds, how large it is, and the Overview's button."""

from __future__ import annotations

import base64
import gzip
import json
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.model.shape import ModelShape
from core.runs.run import open_run
from pages.shared.one_file import gather
from pages.shared.one_file.pack import Packed, finite
from pages.shared.one_file.write import html_of, write_page
from tests.support.apps import page_at
from tests.support.synthetic import PlantedTopics, misnamed_run, write_run


def header_of(html: str) -> tuple[dict[str, Any], bytes]:
    """The header, and the bytes of the arrays."""
    packed = re.search(r'id="data">([^<]*)</script>', html)
    assert packed
    data = gzip.decompress(base64.b64decode(packed[1]))
    length = struct.unpack("<I", data[:4])[0]
    return json.loads(data[4 : 4 + length]), data[4 + length :]


def array_in(place: dict[str, Any], arrays: bytes) -> np.ndarray:
    return np.frombuffer(arrays, place["array"], place["length"], place["at"])


def test_arrays_come_back_and_lie_where_browsers_can_read_them() -> None:
    packed = Packed()
    arrays = [np.array([1, 2, 3], dtype=np.uint8), np.array([[5, -6]], dtype=np.int32), np.array([7], dtype=np.uint16)]
    places = [packed.array(values) for values in arrays]
    data = gzip.decompress(packed.block({"a": "ä"}))
    start = 4 + struct.unpack("<I", data[:4])[0]
    assert start % 8 == 0
    assert all(place["at"] % 8 == 0 for place in places)
    for place, values in zip(places, arrays, strict=True):
        assert array_in(place, data[start:]).tolist() == values.ravel().tolist()


def test_numbers_have_six_digits_and_what_is_none_is_null() -> None:
    assert finite([1.23456789, float("nan"), float("inf"), None, "x", [0.1234567]]) == [
        1.23457, None, None, None, "x", [0.123457],
    ]  # fmt: skip


@pytest.fixture(scope="module")
def misnamed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 60 documents in three topics with figures, and no maps."""
    cache = tmp_path_factory.mktemp("one-file")
    misnamed_run(cache)
    return cache


def test_the_heat_maps_cells_are_the_runs_own(misnamed: Path) -> None:
    from core.runs.labels import label_codes
    from core.runs.results import read_own_similarity, read_topics

    run = open_run(misnamed, "misnamed")
    header, arrays = header_of(html_of(run))
    cells = header["heat_map"]
    docs = array_in(cells["docs"], arrays)
    names = read_topics(run).names
    own = read_own_similarity(run, 3, label_codes(run.documents(["topic"])["topic"], names), len(names))
    found = array_in(cells["values"]["3"]["cells"], arrays).view(np.float16).reshape(5, 60)
    assert (found == own[docs].T).all()
    assert cells["starts"] == [0, 20, 40]
    assert sorted(cells["topics"]) == ["cooking", "football", "politics"]


@pytest.mark.parametrize("texts", ["whole", "cut", "none"])
def test_texts_are_included_cut_or_left_out(texts: str, tmp_path: Path) -> None:
    shape = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)
    vectors = np.random.default_rng(0).normal(size=(3, 32))
    long = [f"Quagga {number} " + "grazes on the plain " * 60 + "END" for number in range(3)]
    write_run(
        tmp_path, "long", shape, lambda _, first, count: vectors[first : first + count], ["a", "b", "a"], texts=long
    )
    from precompute.steps.analyse import step as analyse

    analyse.run(analyse.AnalyseConfig(tmp_path, "long", topics="labels", model=PlantedTopics(shape, {})))
    header, _ = header_of(html_of(open_run(tmp_path, "long"), texts))
    whole = json.dumps(header)
    assert ("END" in whole) is (texts == "whole")
    assert ("Quagga" in whole) is (texts != "none")
    if texts == "cut":
        assert all(len(text) <= gather.CUT + 2 for text in header["documents"]["texts"])


def test_everything_but_the_scripts_is_in_the_packed_block(misnamed: Path) -> None:
    html = html_of(open_run(misnamed, "misnamed"))
    assert "football" not in html
    assert html.count("<script") == 4
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-inline" not in policy[1].split("style-src")[0]
    assert not re.search(
        r"https?://(?!www\.w3\.org/)", re.sub(r"<script type=\"module\">.*?</script>", "", html, flags=re.S)
    )


def test_the_overview_offers_the_file(misnamed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = page_at(misnamed, "explore/overview", monkeypatch, run="misnamed")
    assert not at.exception
    assert at.radio(key="one file texts").value == "cut"
    assert [button.label for button in at.get("download_button") if "one file" in str(button.proto.id)] == ["Download"]


def test_ten_thousand_documents_of_32_heads_fit_into_25_mb(tmp_path: Path) -> None:
    """Maps and texts that do not compress well. With figures, which take long to compute, the file has 7.2 MB."""
    import pyarrow as pa

    from core.runs.manifest import Step
    from core.runs.parts import write_table
    from core.runs.schema import ANALYSIS, MAP

    shape = ModelShape(layers=2, heads=32, kv_heads=8, hidden=64, head_dim=2)
    chance, count = np.random.default_rng(0), 10_000
    topics = [f"topic {number}" for number in range(25)]
    labels = [topics[doc % 25] for doc in range(count)]
    vectors = chance.normal(size=(count, 64)).astype(np.float32)
    words = chance.integers(97, 123, size=(count, 1_500), dtype=np.uint8)
    words[:, ::6] = 32
    texts = [row.tobytes().decode() for row in words]
    run = write_run(tmp_path, "large", shape, lambda _, first, size: vectors[first : first + size], labels, texts=texts)
    places = chance.normal(size=(count * 32, 2)).astype(np.float32)
    columns = {
        "doc": np.repeat(np.arange(count), 32),
        "head": np.tile(np.arange(1, 33), count),
        "x": places[:, 0],
        "y": places[:, 1],
        "activation": chance.random(count * 32),
        "fitted": np.ones(count * 32, dtype=bool),
    }
    table = pa.table({field.name: pa.array(columns[field.name]).cast(field.type) for field in MAP}, schema=MAP)
    for stage in (1, 2, 3):
        write_table(run.map_path(stage), table, "planted")
    write_table(run.analysis_path("maps"), ANALYSIS["maps"].empty_table(), "planted")
    run.write_manifest(run.manifest().with_step("project", Step("planted", "done", "2026-01-01", "2026-01-01")))
    size = write_page(run, tmp_path / "large.html")
    header, arrays = header_of((tmp_path / "large.html").read_text(encoding="utf-8"))
    assert header["maps"]["stages"]["1"]["points"]["x"]["length"] == gather.MOST_POINTS
    assert header["maps"]["note"] == "A sample of 5,000 of 10,000 documents, by topic."
    assert len(array_in(header["maps"]["documents"]["doc"], arrays)) == 5_000
    assert size < 25_000_000
