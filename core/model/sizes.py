"""Does a configuration fit its weights? Asked before anything is allocated, for sizes are only numbers in a file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from core.errors import Mistake

_MOST_BYTES = 10 * 2**20
"""Of config.json."""
_LARGEST = 2**31
_MOST_REPEATED = 1_000
"""Layers, blocks or experts: each is made of Python objects, before its numbers take any room."""
_REPEATED = ("layer", "layers", "blocks", "experts", "depth", "groups", "group_num")
_SPARE = 50_000_000
"""Parameters that a model may have beyond those stored: some are made anew, such as a pooler's."""


def check_sizes(folder: Path, name: str) -> None:
    """Refuses a configuration of more parameters than the folder's weights can be."""
    remedy = "Check that config.json belongs to these weights."
    path = folder / "config.json"
    if path.stat().st_size > _MOST_BYTES:
        raise Mistake(f"The config.json of the model '{name}' is larger than {_MOST_BYTES // 2**20} MB. {remedy}")
    found = json.loads(path.read_text(encoding="utf-8"))
    for key, size in _sizes(found):
        most = _MOST_REPEATED if key.endswith(_REPEATED) else _LARGEST
        if size > most:
            raise Mistake(
                f"The config.json of the model '{name}' has {key} {size:,}, above the limit of {most:,}. {remedy}"
            )
    stored = _stored(folder, "quantization_config" in found)
    needed = _parameters(folder)
    if needed > 1.5 * stored + _SPARE:
        raise Mistake(
            f"According to its config.json, the model '{name}' has {needed:,} parameters, but its weight files hold "
            f"{stored:,}. "
            f"{remedy}"
        )


def _sizes(found: Any, key: str = "") -> Iterator[tuple[str, float]]:
    """Every number, with the key that it stands under."""
    if isinstance(found, dict):
        for inner, value in found.items():
            yield from _sizes(value, str(inner))
    elif isinstance(found, list):
        for value in found:
            yield from _sizes(value, key)
    elif type(found) in (int, float) and math.isfinite(found):
        yield key, found


def _parameters(folder: Path) -> int:
    """Of the model that the configuration describes, laid out without memory."""
    import torch
    from transformers import AutoConfig, AutoModel

    with torch.device("meta"):
        model = AutoModel.from_config(AutoConfig.from_pretrained(folder))
    return sum(parameter.numel() for parameter in model.parameters())


def _stored(folder: Path, packed: bool) -> int:
    """Parameters in the weights files: counted where a file says, else at two bytes each, packed ones at four bits."""
    from safetensors import safe_open

    total = 0
    for path in folder.glob("*.safetensors"):
        if packed:
            total += 2 * path.stat().st_size
            continue
        with safe_open(path, framework="numpy") as file:
            total += sum(math.prod(file.get_slice(key).get_shape()) for key in file.keys())  # noqa: SIM118
    return total or sum(path.stat().st_size // (1 if packed else 2) for path in folder.glob("pytorch_model*.bin"))
