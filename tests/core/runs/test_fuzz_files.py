"""Damaged and forged files of a run: every reader and every page says what is wrong in a sentence, or reads on.

A fifth of them by default: ``make fuzz`` (``FUZZ=1``) takes all 500, and ``FUZZ=10`` more.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from core.analysis.agreement import all_compared
from core.analysis.findings import findings
from core.analysis.report import as_json
from core.errors import Mistake
from core.runs.results import all_labels, read_analysis, read_map, read_own_similarity, read_tables, read_topics
from core.runs.run import Run
from core.runs.schema import ANALYSIS
from core.runs.verify import verify
from precompute.job.fingerprint import part_digest
from tests.conftest import ROOT
from tests.pages.test_fuzz_address import PAGES

EXAMPLES = int(500 * float(os.environ.get("FUZZ", "0.2")))
PAGES_EVERY = 25
"""One example in so many is shown on every page as well."""
VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2**40, 10**30, 1.5, float("nan"), float("inf"), "", "x", "\ud800", "\x00", "y" * 200_000),
    *([], {}, [[]], {"a": {"b": {"c": {}}}}, ["done"], "done", "running", "float32", [1, 2, 3], [3, 1], [True]),
)


def _bytes(path: Path, draw: Callable[[int], int]) -> None:
    """Bits turned over, a piece taken out, zeros put in, an end cut off or added."""
    data = bytearray(path.read_bytes())
    kind, at = draw(5), draw(len(data))
    if kind == 0:
        for _ in range(1 + draw(8)):
            data[draw(len(data))] ^= 1 << draw(8)
    elif kind == 1:
        data = data[:at]
    elif kind == 2:
        data[at : at + 64] = bytes(len(data[at : at + 64]))
    elif kind == 3:
        del data[at : at + 1 + draw(200)]
    else:
        place = max(0, len(data) - 1 - draw(300))  # the footer: counts, sizes and types
        data[place] ^= 1 << draw(8)
    path.write_bytes(data)


def _table(path: Path, draw: Callable[[int], int]) -> None:
    """A whole Parquet file with other rows, columns, types or values."""
    table = pq.read_table(path)
    column = draw(table.num_columns)
    name, values = table.column_names[column], table.column(column)
    kind = draw(9)
    if kind == 0:
        table = table.slice(0, draw(len(table) + 1))
    elif kind == 1:
        table = pa.concat_tables([table] * 3)
    elif kind == 2:
        table = table.drop_columns([name])
    elif kind == 3:
        table = table.rename_columns(table.column_names[::-1])
    elif kind == 4:
        nothing = pa.nulls(len(table), values.type)
        table = table.set_column(column, pa.field(name, values.type), nothing)
    elif kind == 5:
        table = table.set_column(column, name, pa.array([str(row)[:50] for row in values.to_pylist()]))
    elif kind == 6:
        order = np.random.default_rng(draw(1_000)).permutation(len(table))
        table = table.take(pa.array(order))
    elif kind == 7 and pa.types.is_string(values.type):
        bad = pa.array([b"\xff\xfe\x80"] * len(table), pa.binary()).view(pa.string())
        table = table.set_column(column, pa.field(name, pa.string()), bad)
    else:
        table = table.set_column(column, name, _far_off(values, draw))
    pq.write_table(table, path)


def _far_off(values: pa.ChunkedArray, draw: Callable[[int], int]) -> pa.Array:
    """Numbers at the ends of their type, and what is no number."""
    kind, count = values.type, len(values)
    if pa.types.is_integer(kind):
        ends = np.iinfo(kind.to_pandas_dtype())
        return pa.array(np.full(count, (ends.min, ends.max, -1, 99)[draw(4)], dtype=kind.to_pandas_dtype()))
    if pa.types.is_floating(kind):
        return pa.array(np.full(count, (np.nan, np.inf, -np.inf, 0)[draw(4)], dtype=kind.to_pandas_dtype()))
    if pa.types.is_fixed_size_list(kind):
        inner = np.full(count * kind.list_size, (np.nan, np.inf, 0.0)[draw(3)], dtype=kind.value_type.to_pandas_dtype())
        return pa.FixedSizeListArray.from_arrays(pa.array(inner), type=kind)
    return pa.array(["<b>" * 50] * count) if pa.types.is_string(kind) else pa.nulls(count, kind)


def _json(path: Path, draw: Callable[[int], int]) -> None:
    """Somewhere in the manifest another value, a key that is missing, or one too many."""
    found = json.loads(path.read_text())
    place: Any = found
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = keys[draw(len(keys))]
        if isinstance(place[key], (dict, list)) and place[key] and draw(4):
            place = place[key]
            continue
        break
    kind = draw(4)
    if kind == 0:
        del place[key]
    elif kind == 1 and isinstance(place, dict):
        place["another"] = VALUES[draw(len(VALUES))]
    else:
        place[key] = VALUES[draw(len(VALUES))]
    path.write_text(json.dumps(found) if draw(40) else "[" * 100_000)


def readers(run: Run) -> dict[str, Callable[[], object]]:
    """All that reads a run, by the file that it is about; what is about several has no file's name."""
    found: dict[str, Callable[[], object]] = {
        "manifest.json": run.manifest,
        "documents.parquet": run.documents,
        "topics.parquet": lambda: read_topics(run),
        "original_topics.parquet": lambda: read_topics(run, original=True),
        "labels": lambda: all_compared(all_labels(run)),
        "tables": lambda: findings(read_tables(run), None),
        "figures": lambda: json.dumps(as_json(read_tables(run))),
        "verify": lambda: verify(run, part_digest),
    }
    for stage in (1, 2, 3):
        found[f"heads/stage={stage}"] = lambda stage=stage: run.head_vectors(stage, 1)
        found[f"map/stage={stage}"] = lambda stage=stage: read_map(run, stage)
        found[f"similarity/stage={stage}"] = lambda stage=stage: read_own_similarity(
            run, stage, np.zeros(len(run.documents(["doc"])), dtype=int), len(read_topics(run).names)
        )
    for name in ANALYSIS:
        found[f"analysis/{name}."] = lambda name=name: read_analysis(run, name)
    return found


def everything(run: Run, about: str = "") -> list[str]:
    """The sentences of what cannot be read; with ``about`` only of what has to do with that file."""
    said = []
    for name, read in readers(run).items():
        ours = name in about or (name in ("tables", "figures") and "analysis" in about)
        if about and not ours and about != "manifest.json":
            continue
        try:
            read()
        except Mistake as mistake:
            said.append(str(mistake))
    return said


def on_every_page(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADSCOPE_CACHE", str(cache))
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120).run()
    assert not app.exception
    for page in PAGES:
        app.switch_page(page).run()
        assert not app.exception, page


@pytest.fixture(scope="module")
def whole(hostile_cache: Path) -> Path:
    return hostile_cache / "hostile"


def test_the_whole_run_is_read_without_a_word(whole: Path) -> None:
    assert everything(Run(whole.parent, "hostile")) == []


def test_no_file_of_a_stranger_brings_a_reader_or_a_page_down(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(whole, tmp_path / "cache" / "run")
    run = Run(tmp_path / "cache", "run")
    files = sorted(path for path in run.folder.rglob("*") if path.suffix in (".json", ".parquet"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    count = told = 0

    @settings(max_examples=EXAMPLES, derandomize=True, database=None, deadline=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        nonlocal count, told
        count += 1

        def draw(below: int) -> int:
            return data.draw(st.integers(0, below - 1))

        path = run.folder / "manifest.json" if draw(4) == 0 else files[draw(len(files))]
        kept = path.read_bytes()
        try:
            (_bytes if draw(2) else _json if path.suffix == ".json" else _table)(path, draw)
            told += bool(everything(run, str(path.relative_to(run.folder))))
            if count % 10 == 0:
                verify(run, part_digest)
            if count % PAGES_EVERY == 0:
                copy = tmp_path / f"copy {count}"
                shutil.copytree(run.folder, copy / "run")
                on_every_page(copy, monkeypatch)
        finally:
            path.write_bytes(kept)

    holds()
    assert told > count / 3, "most of them are worth a word"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_500_000, "kilobytes"
