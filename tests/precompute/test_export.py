"""``export``: the folder in plain sentence-transformers gives what heads switched off by hooks give."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.analysis.similarity import unit
from core.errors import Mistake
from core.model.embedder import EmbedderConfig
from core.model.export import check_licence, licence_of
from core.model.heads_off import HeadsOff, read_heads_off
from core.model.shape import ModelShape
from core.retrieval.apply import Kept
from core.runs.run import Run
from precompute.export import ExportConfig, export
from precompute.job.topic_vectors import TopicModel
from precompute.steps.embed.step import EmbedConfig
from precompute.steps.embed.step import run as embed

pytestmark = pytest.mark.usefixtures("one_thread")
SHAPE = ModelShape(layers=2, heads=4, kv_heads=4, hidden=32, head_dim=8)


def exporting(
    model: Path, cache: Path, source: Path, off: list[list[int]], how: str = "zero", **settings: Any
) -> ExportConfig:
    """A run of 20 labelled documents by ``model``, and its export asked for."""
    embed(EmbedConfig(cache, "tiny", source=str(source), embedder=EmbedderConfig(model=str(model), **settings)))
    heads = cache / "heads.json"
    heads.write_text(json.dumps({"model": model.name, "off": off, "how": how, "verdict": "Chosen by hand."}))
    return ExportConfig(cache, "tiny", heads, cache / "out", True, model=TopicModel(str(model)))


@pytest.fixture
def source(write_corpus: Callable[..., Path], some_rows: Any) -> Path:
    return write_corpus([{**row, "topic": "odd" if row["n"] % 2 else "even"} for row in some_rows(20)])


def by_sentence_transformers(folder: Path, texts: list[str]) -> np.ndarray:
    from sentence_transformers import SentenceTransformer

    found: np.ndarray = SentenceTransformer(str(folder), device="cpu").encode(texts)
    return found


def by_hooks(config: ExportConfig, off: list[tuple[int, int]], how: str = "zero") -> tuple[list[str], np.ndarray]:
    run = Run(config.cache, "tiny")
    model = config.model.load(run.manifest())
    texts = run.documents(["text"])["text"].to_pylist()
    means = model.mean_outputs(texts) if how == "mean" else None
    return texts, unit(model.embed(texts, change=model.without(off, means)).output)


@pytest.mark.parametrize("how", ["zero", "mean"])
@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_an_encoder_s_folder_is_the_ablated_model(
    tiny_model: Path, tmp_path: Path, source: Path, how: str, pooling: str
) -> None:
    config = exporting(tiny_model, tmp_path, source, [[1, 2], [2, 3], [2, 4]], how, pooling=pooling)
    done = export(config)
    texts, wanted = by_hooks(config, [(1, 2), (2, 3), (2, 4)], how)
    found = by_sentence_transformers(config.to, texts)
    assert np.abs(found - wanted).max() <= 1e-5
    assert np.abs(found - by_hooks(config, [(1, 1)])[1]).max() > 1e-3
    assert done.cut is None
    assert done.difference <= 1e-5
    card = (config.to / "README.md").read_text()
    assert "# tiny without 3 of its 8 attention heads" in card
    assert "| 2 | 3, 4 |" in card
    assert "Chosen by hand." in card
    assert "Topic match by names: " in card
    assert not list(tmp_path.glob(".out*"))


def test_a_decoder_s_heads_are_cut_out_where_every_layer_loses_as_many(
    tiny_llama: Path, tmp_path: Path, source: Path
) -> None:
    """One head of every key/value group of both layers: 2 heads on 2 are left, and the weights are smaller."""
    config = exporting(tiny_llama, tmp_path, source, [[1, 1], [1, 4], [2, 2], [2, 3]])
    done = export(config)
    assert done.cut is not None
    assert (done.cut.heads, done.cut.kv_heads) == (2, 2)
    assert done.bytes_after < 0.95 * done.bytes_before
    texts, wanted = by_hooks(config, [(1, 1), (1, 4), (2, 2), (2, 3)])
    assert np.abs(by_sentence_transformers(config.to, texts) - wanted).max() <= 1e-5
    settings = json.loads((config.to / "config.json").read_text())
    assert (settings["num_attention_heads"], settings["num_key_value_heads"], settings["head_dim"]) == (2, 2, 8)


def test_whole_key_value_groups_are_cut_and_uneven_heads_are_zeroed(
    tiny_llama: Path, tmp_path: Path, source: Path
) -> None:
    config = exporting(tiny_llama, tmp_path, source, [[1, 1], [1, 2], [2, 3], [2, 4]])
    done = export(config)
    assert done.cut is not None
    assert (done.cut.heads, done.cut.kv_heads) == (2, 1)
    texts, wanted = by_hooks(config, [(1, 1), (1, 2), (2, 3), (2, 4)])
    assert np.abs(by_sentence_transformers(config.to, texts) - wanted).max() <= 1e-5
    config.heads.write_text(json.dumps({"model": "llama", "off": [[1, 1], [2, 3], [2, 4]]}))
    uneven = export(replace(config, to=tmp_path / "uneven"))
    assert uneven.cut is None
    texts, wanted = by_hooks(config, [(1, 1), (2, 3), (2, 4)])
    assert np.abs(by_sentence_transformers(tmp_path / "uneven", texts) - wanted).max() <= 1e-5


def test_a_mean_has_no_place_in_a_projection_without_a_bias(tiny_llama: Path, tmp_path: Path, source: Path) -> None:
    config = exporting(tiny_llama, tmp_path, source, [[1, 1]], "mean")
    with pytest.raises(Mistake, match=r"has no bias.*Export with \"how\": \"zero\""):
        export(config)
    assert not config.to.exists()


def test_the_command_the_licence_and_a_folder_that_is_taken(
    tiny_model: Path, tmp_path: Path, source: Path, command: Callable[..., Any]
) -> None:
    config = exporting(tiny_model, tmp_path, source, [[2, 1]])
    asked = ("export", "tiny", "--cache", tmp_path, "--heads", config.heads, "--to", config.to, "--model", tiny_model)
    refused = command(*asked)
    assert refused.status == 2
    assert "licence is not stated in its files" in refused.err
    assert "--accept-licence" in refused.err
    done = command(*asked, "--accept-licence")
    assert done.status == 0, done.err
    assert "out: 1 of 8 heads off. Their projection columns are zero" in done.out
    again = command(*asked, "--accept-licence")
    assert (again.status, "is not empty" in again.err) == (2, True)


def test_a_licence_that_restricts_is_quoted_and_the_person_decides(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("---\nlanguage: en\nlicense: cc-by-nc-4.0\n---\n# x")
    licence = licence_of(tmp_path, None)
    assert licence == "cc-by-nc-4.0"
    with pytest.raises(Mistake, match=r'licence is "cc-by-nc-4.0"'):
        check_licence(licence, accepted=False)
    check_licence(licence, accepted=True)
    check_licence("Apache-2.0", accepted=False)
    check_licence("MIT", accepted=False)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("[]", "is not a JSON object"),
        ("{", "is not valid JSON"),
        ('{"model": "other", "off": [[1, 1]]}', "is for the model 'other'"),
        ('{"model": "m", "off": [[1]]}', r"no list of \[layer, head\]"),
        ('{"model": "m", "off": [[1, true]]}', r"no list of \[layer, head\]"),
        ('{"model": "m", "off": []}', "switches no head off"),
        ('{"model": "m", "off": [[3, 1]]}', "Layer 3 does not exist"),
        ('{"model": "m", "off": [[1, 5]]}', "Head 5 does not exist"),
        ('{"model": "m", "off": [[1, 1]], "how": "noise"}', "has 'noise' as 'how'"),
        ('{"model": "m", "stage": 3, "way": "full", "weights": {"1": 1}}', "heads of stage 3"),
        ('{"model": "m", "stage": 1, "way": "full", "weights": {"1": 1, "2": 2}}', "different weights"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(tmp_path: Path, given: str, sentence: str) -> None:
    (tmp_path / "heads.json").write_text(given)
    with pytest.raises(Mistake, match=sentence):
        read_heads_off(tmp_path / "heads.json", "m", SHAPE, 2)


def test_its_own_file_and_the_lab_s_are_read(tmp_path: Path) -> None:
    path = tmp_path / "heads.json"
    wanted = HeadsOff("m", ((1, 2), (2, 4)), "mean", "So.")
    path.write_text(wanted.to_json())
    assert read_heads_off(path, "m", SHAPE, 2) == wanted
    path.write_text(Kept("m", 1, 4, {1: 1.0, 3: 1.0}).to_json())
    assert read_heads_off(path, "m", SHAPE, 2).off == ((2, 2), (2, 4))
