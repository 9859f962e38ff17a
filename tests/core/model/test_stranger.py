"""A run that a stranger made is read, not obeyed: no path of its choice, no sizes of its choice, no index unchecked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.errors import Mistake
from core.model.embedder import Embedder, EmbedderConfig
from core.model.locate import locate
from core.model.same_model import Whereabouts, run_model
from core.retrieval.tasks import QUERY_SET, SAME_TOPIC, TOPIC_MATCH
from core.runs.manifest import Manifest
from core.runs.results import read_mismatches, read_topics
from core.runs.run import Run
from pages.shared.data import RunState, head_index
from pages.use.retrieval_lab.data import judge
from tests.support.apps import page_at

LAB = "pages/use/retrieval_lab/page.py"


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(Mistake) as caught:
        call()
    return str(caught.value)


@pytest.fixture
def run(hostile_cache: Path, tmp_path: Path) -> Run:
    shutil.copytree(hostile_cache / "hostile", tmp_path / "cache" / "run")
    return Run(tmp_path / "cache", "run")


def state_of(run: Run) -> RunState:
    return RunState(run, run.manifest())


def change(path: Path, column: str, values: Callable[[pa.ChunkedArray], Any]) -> None:
    """Another column in a Parquet file, which is as sound as before otherwise."""
    table = pq.read_table(path)
    at = table.schema.get_field_index(column)
    made = pa.array(values(table[column]), table.schema.field(at).type)
    pq.write_table(table.set_column(at, table.schema.field(at), made), path, write_page_checksum=True)


def say(run: Run, **changes: Any) -> None:
    """Other values in the manifest, by ``step__key``: of a step's ``options`` or ``counts``."""
    path = run.folder / "manifest.json"
    found = json.loads(path.read_text())
    for name, value in changes.items():
        step, part, key = name.split("__")
        found["steps"][step][part][key] = value
    path.write_text(json.dumps(found))


# The model


def named(manifest: Manifest, name: str, revision: str) -> Manifest:
    return replace(manifest, model={**manifest.model, "name": name, "revision": revision})


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that a model was loaded from."""
    found: list[Path] = []

    def load(config: EmbedderConfig, files: Any, untrained: Any = None) -> Any:
        found.append(files.folder)
        return files

    monkeypatch.setattr(Embedder, "load", load)
    return found


@pytest.mark.parametrize("fetch", [False, True])
@pytest.mark.parametrize("how", ["absolute", "home", "relative", "up", "like a hub's", "up in the models", "dot"])
def test_a_run_cannot_name_a_folder(
    run: Run,
    tiny_model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    loaded: list[Path],
    how: str,
    fetch: bool,
) -> None:
    shutil.copytree(tiny_model, tmp_path / "cache" / "evil")
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    name = {
        "absolute": str(tmp_path / "cache" / "evil"),
        "home": "~/cache/evil",
        "relative": "./cache/evil",
        "up": "../" + tmp_path.name + "/cache/evil",
        "like a hub's": "cache/evil",
        "up in the models": "../cache/evil",
        "dot": "..",
    }[how]
    where = Whereabouts(models_dir=tmp_path / "models", fetch=fetch)
    revision = locate(str(tmp_path / "cache" / "evil"), tmp_path).revision
    sentence = refused(lambda: run_model(named(run.manifest(), name, revision).model, where))
    assert loaded == []
    assert name in sentence
    if not fetch and how != "like a hub's":
        assert "a run cannot choose a path. Put the model's folder into HEADSCOPE_MODELS" in sentence


def test_a_folder_of_the_operator_s_is_used_and_one_of_the_command_line(
    run: Run, tiny_model: Path, loaded: list[Path]
) -> None:
    manifest = named(run.manifest(), "tiny", locate(str(tiny_model), tiny_model.parent).revision)
    run_model(manifest.model, Whereabouts(models_dir=tiny_model.parent, fetch=False))
    run_model(manifest.model, Whereabouts(model=str(tiny_model)))
    assert loaded == [tiny_model.parent / "tiny", tiny_model]


@pytest.mark.parametrize(
    "sizes",
    [
        {"vocab_size": 20_000_000},
        {"num_hidden_layers": 100_000},
        {"num_hidden_layers": 900, "intermediate_size": 500_000},
        {"intermediate_size": 50_000_000},
        {"max_position_embeddings": 2**40},
        {"hidden_size": 400_000},
    ],
)
def test_a_configuration_that_does_not_fit_its_weights_is_refused_before_anything_is_allocated(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: dict[str, int]
) -> None:
    from transformers import AutoModel

    shutil.copytree(tiny_model, tmp_path / "bomb")
    path = tmp_path / "bomb" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | sizes))

    def allocated(*args: object, **kwargs: object) -> None:
        raise AssertionError("the model is being made")

    monkeypatch.setattr(AutoModel, "from_pretrained", allocated)
    sentence = refused(lambda: Embedder.load(EmbedderConfig(model=str(tmp_path / "bomb"))))
    assert "config.json" in sentence
    assert "bomb" in sentence


# Tables


def infinite(run: Run, stage: int = 1) -> None:
    def values(column: pa.ChunkedArray) -> pa.Array:
        rows = column.combine_chunks()
        flat = rows.flatten().to_numpy(zero_copy_only=False).copy()
        flat[::7] = np.inf
        return pa.FixedSizeListArray.from_arrays(pa.array(flat), rows.type.list_size)

    change(run.part_path(stage, 0), "vector", values)


def test_infinite_vectors_get_a_sentence(run: Run) -> None:
    infinite(run)
    rebuild = "Rebuild it with 'python -m precompute embed run --source … --replace'."
    expected = f"heads/stage=1/part-00000.parquet holds a number that is not finite. {rebuild}"
    assert refused(lambda: list(run.finite_vectors(1))) == expected
    assert refused(lambda: run.document_vectors(1, 0)) == expected
    assert refused(lambda: head_index(state_of(run), 1)) == expected
    assert len(next(run.vectors(2))) == 42


def test_infinite_topics_get_a_sentence(run: Run) -> None:
    kind = pq.read_schema(run.topics_path).field("stage_2").type.value_type

    def of_kind(column: pa.ChunkedArray) -> pa.Array:
        flat = np.full(len(column) * 32, np.inf, dtype=kind.to_pandas_dtype())
        return pa.FixedSizeListArray.from_arrays(pa.array(flat), 32)

    change(run.topics_path, "stage_2", of_kind)
    assert refused(lambda: read_topics(run)).startswith("topics.parquet holds a number that is not finite.")


@pytest.mark.parametrize("task", [SAME_TOPIC, TOPIC_MATCH, QUERY_SET])
def test_a_task_without_queries_gets_a_sentence(run: Run, task: str) -> None:
    """The tables name a task, and the documents have no topics to ask it with."""
    change(run.documents_path, "topic", lambda column: pa.nulls(len(column), column.type))
    sentence = refused(lambda: judge(state_of(run), 1, task, "full"))
    assert sentence.endswith("Rebuild it with 'python -m precompute retrieve run --again'.")


@pytest.mark.parametrize("column", ["label", "nearest"])
def test_a_mismatch_of_a_topic_that_is_none_gets_a_sentence(run: Run, column: str) -> None:
    assert len(read_mismatches(run, 1))
    change(run.analysis_path("mismatches"), column, lambda column: ["no topic"] * len(column))
    sentence = refused(lambda: read_mismatches(run, 1))
    assert sentence.startswith("mismatches.parquet has topics that topics.parquet does not have. Rebuild it with")


def test_figures_of_no_topic_get_a_sentence(run: Run) -> None:
    say(run, analyse__counts__topics=0)
    assert "'steps.analyse.counts.topics' must be at least 1" in refused(run.manifest)


@pytest.mark.parametrize("limit", ["x", -1, 0, 2**60, [], 1.5, True])
def test_a_limit_that_is_none_gets_a_sentence(run: Run, limit: Any) -> None:
    say(run, retrieve__options__limit=limit)
    assert "'steps.retrieve.options.limit' must be a whole number" in refused(run.manifest)


@pytest.mark.parametrize(
    ("option", "value"),
    [("analyse__options__label_source", []), ("label__options__source", {}), ("label__options__model", [1]),
     ("label__options__topics", "abc"), ("project__options__metric", [])],
)  # fmt: skip
def test_options_of_another_kind_get_a_sentence(run: Run, option: str, value: Any) -> None:
    say(run, **{option: value})
    assert "must be" in refused(run.manifest)


@pytest.mark.parametrize("harm", ["infinite vectors", "no topics", "no queries"])
def test_the_lab_shows_a_sentence(run: Run, monkeypatch: pytest.MonkeyPatch, harm: str) -> None:
    if harm == "infinite vectors":
        for stage in (1, 2, 3):
            infinite(run, stage)
    elif harm == "no topics":
        change(run.documents_path, "topic", lambda column: pa.nulls(len(column), column.type))
    else:
        change(run.analysis_path("retrieval"), "task", lambda column: [QUERY_SET] * len(column))
    page = page_at(run.cache, LAB, monkeypatch, run="run")
    said = [found.value for found in (*page.error, *page.warning)]
    assert any("Rebuild it with" in text for text in said)
