"""'verify' on the documents that were left out: each thing that can be wrong with failed.parquet is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.model.shape import ModelShape
from core.runs.parts import write_table
from core.runs.run import Run
from core.runs.schema import FAILED
from core.runs.verify import verify
from precompute.job.fingerprint import part_digest
from tests.support.synthetic import EMBEDDED, write_run

SHAPE = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)
LEFT_OUT = [{"place": 1, "id": "x", "reason": "ValueError"}, {"place": 5, "id": "y", "reason": "ValueError"}]
AGAIN = "Rebuild it with 'python -m precompute embed run --source … --replace'."


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Four documents of six that were read; the second and the last were left out."""
    vectors = np.random.default_rng(0).normal(size=(4, 32))
    run = write_run(tmp_path, "run", SHAPE, lambda stage, first, count: vectors, ["a"] * 4)
    say(run, kept=6, failed=2)
    write(run, LEFT_OUT)
    return run


def say(run: Run, **counts: int) -> None:
    manifest = run.manifest()
    step = manifest.steps["embed"]
    run.write_manifest(manifest.with_step("embed", replace(step, counts={**step.counts, **counts})))


def write(run: Run, rows: list[dict[str, Any]], digest: str = EMBEDDED, schema: pa.Schema = FAILED) -> None:
    write_table(run.failed_path, pa.Table.from_pylist(rows, schema=schema), digest)


def problems(run: Run) -> tuple[str, ...]:
    return verify(run, part_digest).problems


def test_a_sound_one_is_read_and_a_run_without_is_sound(run: Run) -> None:
    read = verify(run, part_digest)
    assert read.problems == ()
    run.failed_path.unlink()
    assert problems(run) == (f"failed.parquet is missing. {AGAIN}",)
    say(run, kept=4, failed=0)
    without = verify(run, part_digest)
    assert without.problems == ()
    assert read.checked == without.checked + 1


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (LEFT_OUT[:1], "lists 1 documents, but the manifest says that 2 were left out"),
        (LEFT_OUT[::-1], "has places that are not ascending numbers from 0 to 5"),
        ([LEFT_OUT[0], LEFT_OUT[0]], "has places that are not ascending numbers from 0 to 5"),
        ([LEFT_OUT[0], LEFT_OUT[1] | {"place": 6}], "has places that are not ascending numbers from 0 to 5"),
        ([LEFT_OUT[0] | {"place": -1}, LEFT_OUT[1]], "has places that are not ascending numbers from 0 to 5"),
        (
            [LEFT_OUT[0], LEFT_OUT[1] | {"id": "d2"}],
            "lists the document 'd2', which documents.parquet also contains",
        ),
    ],
)
def test_rows_that_cannot_be(run: Run, rows: list[dict[str, Any]], said: str) -> None:
    write(run, rows)
    assert problems(run) == (f"failed.parquet {said}. {AGAIN}",)


def test_files_that_cannot_be(run: Run) -> None:
    write(run, LEFT_OUT, digest="other")
    assert problems(run) == (f"failed.parquet was made from inputs other than the manifest says. {AGAIN}",)
    nullable = pa.schema([pa.field(field.name, field.type) for field in FAILED])
    write(run, [LEFT_OUT[0], {"place": 5, "id": "y"}], schema=nullable)
    assert problems(run) == (f"failed.parquet has a document without a place, id or reason. {AGAIN}",)
    write(run, [{"place": 1, "id": "x"}], schema=nullable.remove(2))
    assert problems(run) == (f"failed.parquet has no column 'reason'. {AGAIN}",)
    write(run, LEFT_OUT)
    whole = run.failed_path.read_bytes()
    run.failed_path.write_bytes(whole[:4] + b"\xff" * 40 + whole[44:])
    assert problems(run) == (f"failed.parquet is damaged. {AGAIN}",)
    run.failed_path.write_bytes(whole[:50])
    assert problems(run) == (f"failed.parquet cannot be read: it is damaged. {AGAIN}",)


def test_numbers_that_do_not_add_up(run: Run) -> None:
    say(run, kept=7)
    assert problems(run) == (f"failed.parquet lists 2 documents, and 4 are stored, but 7 were read. {AGAIN}",)
    say(run, kept=4, failed=0)
    assert problems(run) == (f"failed.parquet lists 2 documents, but the manifest says that 0 were left out. {AGAIN}",)


def test_a_corpus_whose_ids_repeat_is_not_suspected(run: Run) -> None:
    write(run, [LEFT_OUT[0], LEFT_OUT[1] | {"id": "d2"}])
    table = pq.read_table(run.documents_path)
    ids = pa.array(["d2", "d1", "d2", "d3"])
    write_table(run.documents_path, table.set_column(1, table.schema.field("id"), ids), EMBEDDED)
    said = problems(run)
    assert said, "the parts were made from other ids"
    assert not any("failed.parquet" in sentence for sentence in said)
