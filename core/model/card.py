"""What a model's sentence-transformers files say about how it is used."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import Mistake, listed
from core.model.pooling import check_pooling
from core.model.shape import POOLINGS


@dataclass(frozen=True)
class ModelCard:
    """None where the files are silent."""

    pooling: str | None = None
    max_tokens: int | None = None
    prompt: str | None = None
    query_prompt: str | None = None
    adds_begin: bool = False
    adds_end: bool = False
    """The tokenizer's configuration promises a begin- or end-of-sequence token."""
    later_modules: tuple[str, ...] = ()
    """What sentence-transformers applies after pooling, beside normalising: stage 3 is before it."""


def read_model_card(folder: Path, pooling: str | None = None) -> ModelCard:
    """Reads modules.json, the pooling module, sentence_bert_config.json, the prompts and the tokenizer's promise.

    A ``pooling`` that was asked for is taken instead of the files' own, which then need not be one that is supported.
    """
    modules = _read(folder / "modules.json") or []
    prompts = _read(folder / "config_sentence_transformers.json") or {}
    tokenizer = _read(folder / "tokenizer_config.json") or {}
    later = []
    for module in modules:
        kind = str(module.get("type", "")).rsplit(".", 1)[-1]
        if kind == "Pooling":
            pooling = pooling or _pooling(_read(folder / module.get("path", "") / "config.json") or {})
        elif kind not in ("Transformer", "Normalize"):
            later.append(kind)
    named = prompts.get("prompts") or {}
    return ModelCard(
        pooling=pooling,
        max_tokens=(_read(folder / "sentence_bert_config.json") or {}).get("max_seq_length"),
        prompt=named.get("document", named.get("passage", named.get(prompts.get("default_prompt_name") or ""))),
        query_prompt=named.get("query"),
        adds_begin=bool(tokenizer.get("add_bos_token")),
        adds_end=bool(tokenizer.get("add_eos_token")),
        later_modules=tuple(later),
    )


def _pooling(config: dict[str, Any]) -> str:
    mode = config.get("pooling_mode")
    if mode is None:
        flags = [key for key, on in config.items() if key.startswith("pooling_mode_") and on is True]
        modes = [flag.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token") for flag in flags]
        mode = modes or ["mean"]  # as sentence-transformers reads it
    if isinstance(mode, list) and len(mode) == 1:
        mode = mode[0]
    if not isinstance(mode, str):
        raise Mistake(
            f"This model combines several poolings ({listed(mode)}), so there is no single vector per head. Choose one "
            f"of {listed(POOLINGS)} with --pooling."
        )
    return check_pooling(mode)


def _read(path: Path) -> Any:
    if not path.is_file():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise Mistake(f"The model's file {path.name} is not valid JSON ({error}). Download it again.") from error
