"""A run's own model, found again: by name, by its folder's name, and the command that brings it where it is missing."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import Mistake
from core.model.embedder import EmbedderConfig
from core.model.same_model import Whereabouts, make_available, run_model
from core.runs.manifest import Manifest
from core.runs.run import Run
from precompute.steps.embed.step import EmbedConfig
from precompute.steps.embed.step import run as embed

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def tiny(tmp_path: Path, tiny_model: Path, write_corpus: Any, some_rows: Any) -> Run:
    """A run by the tiny model, at its first layer, with another pooling, prompt and length than its own."""
    how = EmbedderConfig(model=str(tiny_model), layers=(1,), pooling="first", prompt="loom ", max_tokens=7)
    embed(EmbedConfig(tmp_path, "tiny", str(write_corpus(some_rows(6))), how))
    return Run(tmp_path, "tiny")


def test_a_document_of_the_corpus_gets_its_own_vectors(tiny: Run, tiny_model: Path) -> None:
    """The manifest knows only the folder's last part: it is looked for where models are kept."""
    loaded = run_model(tiny.manifest().model, Whereabouts(models_dir=tiny_model.parent, fetch=False))
    text = tiny.documents(["text"])["text"][3].as_py()
    for stage in (1, 2, 3):
        stored = np.concatenate(list(tiny.vectors(stage)))[3]
        assert loaded.embed([text]).stage(stage)[0] == pytest.approx(stored.astype(np.float32), rel=1e-3, abs=1e-3)
    assert (loaded.info.layers, loaded.info.pooling, loaded.info.prompt, loaded.info.max_tokens) == (
        (1,), "first", "loom ", 7,
    )  # fmt: skip


def test_a_folder_that_is_not_here(tiny: Run, tmp_path: Path) -> None:
    with pytest.raises(Mistake) as caught:
        run_model(tiny.manifest().model, Whereabouts(models_dir=tmp_path / "models", fetch=False))
    assert str(caught.value) == (
        "This run's model, 'tiny', is not on this machine. Make it available with 'HEADSCOPE_MODELS=… streamlit run "
        "app.py', where … is the folder that holds the folder 'tiny'."
    )


def test_the_job_is_told_of_its_option(tiny: Run, tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"There is no model 'tiny'.* if it is a folder, give --model\.$"):
        run_model(tiny.manifest().model, Whereabouts(models_dir=tmp_path / "models"))


def test_other_weights_of_the_same_name(tiny: Run, other_model: Path, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "tiny").symlink_to(other_model)
    with pytest.raises(Mistake, match=r"^The model 'tiny' on this machine is not the one .* its weights differ\."):
        run_model(tiny.manifest().model, Whereabouts(models_dir=tmp_path / "models", fetch=False))
    with pytest.raises(Mistake, match=r"its weights differ\. Give the right one with --model\.$"):
        run_model(tiny.manifest().model, Whereabouts(str(other_model)))


def named(manifest: Manifest, name: str) -> Manifest:
    return replace(manifest, model={**manifest.model, "name": name})


def test_a_model_of_the_hub_is_not_fetched(tiny: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where the hub may be asked: the call itself says that only what is here is wanted."""
    import huggingface_hub

    asked: list[bool] = []

    def download(repo: str, local_files_only: bool = False, **_: Any) -> str:
        asked.append(local_files_only)
        raise FileNotFoundError(repo)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    with pytest.raises(Mistake, match=r"^This run's model, 'some/model', .* 'hf download some/model'\.$"):
        run_model(named(tiny.manifest(), "some/model").model, Whereabouts(models_dir=tmp_path, fetch=False))
    with pytest.raises(Mistake, match="could not be fetched from the hub"):
        run_model(named(tiny.manifest(), "some/model").model, Whereabouts(models_dir=tmp_path))
    assert asked == [True, False]


def test_a_package_that_is_not_installed(tiny: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Mistake, match=r"^This run's model, 'SmolLM2-135M', is not .* with 'make smollm2'\.$"):
        run_model(named(tiny.manifest(), "SmolLM2-135M").model, Whereabouts(fetch=False))


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("all-MiniLM-L6-v2", "'make install'"),
        ("SmolLM2-135M", "'make smollm2'"),
        ("Salesforce/SFR-Embedding-Mistral", "'hf download Salesforce/SFR-Embedding-Mistral'"),
        ("intfloat/e5-small-v2", "'hf download intfloat/e5-small-v2'"),
    ],
)
def test_commands(name: str, command: str) -> None:
    assert make_available(name) == command
