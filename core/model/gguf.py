"""A GGUF file turned, once, into a folder of plain float32 weights that loads in under a second."""

from __future__ import annotations

import importlib
import os
import shutil
import tempfile
from pathlib import Path

from core.errors import Mistake


def converted(gguf: Path, models_dir: Path, name: str, digest: str) -> Path:
    """The folder with the converted model; made on first use (about half a minute for SmolLM2)."""
    folder = models_dir / f"{name}-{digest[:12]}"
    if (folder / "config.json").is_file():
        return folder
    try:
        models_dir.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=models_dir))
    except OSError as error:
        raise Mistake(
            f"The converted weights of {name} cannot be kept in '{models_dir}' ({error.strerror}). "
            "Set HEADSCOPE_MODELS to a folder that can be written."
        ) from error
    try:
        _convert(gguf, temporary)
        try:
            os.replace(temporary, folder)
        except OSError:
            if not (folder / "config.json").is_file():  # another process may have been quicker: then its copy serves
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def _convert(gguf: Path, folder: Path) -> None:
    try:
        for package in ("accelerate", "gguf"):
            importlib.import_module(package)
    except ImportError as error:
        raise Mistake(f"Reading {gguf.name} needs the packages gguf and accelerate. Run 'make smollm2'.") from error
    import torch
    from transformers import AutoModel, AutoTokenizer, GgufConfig

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    model = AutoModel.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        dtype=torch.float32,
        quantization_config=GgufConfig(dequantize=True),
    )
    tokenizer.chat_template = None  # a document is no chat: sentence-transformers would wrap it in one
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
