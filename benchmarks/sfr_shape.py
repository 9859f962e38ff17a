"""A Mistral of SFR-Embedding-Mistral's width with random weights, and texts as long as those of FineWeb.

``python -m benchmarks.sfr_shape FOLDER LAYERS`` saves one.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cost_model import LAYOUTS, Layout
from core.model.locate import default_models_dir, locate

SFR = "Salesforce/SFR-Embedding-Mistral"
LONGEST = 4096
MEAN, SPREAD = 733, 1.0
"""Tokens of a document of FineWeb by Mistral's tokenizer (docs/scale.md); the spread of their logarithm is assumed."""


def layout_of(layers: int) -> Layout:
    """SFR's, with so many layers."""
    layout = LAYOUTS[SFR]
    return replace(layout, shape=replace(layout.shape, layers=layers))


def config_of(layers: int) -> Any:
    from transformers import MistralConfig

    layout = layout_of(layers)
    return MistralConfig(
        hidden_size=layout.shape.hidden,
        num_hidden_layers=layers,
        num_attention_heads=layout.shape.heads,
        num_key_value_heads=layout.shape.kv_heads,
        head_dim=layout.shape.head_dim,
        intermediate_size=layout.intermediate,
        max_position_embeddings=32_768,
        sliding_window=LONGEST,
        pad_token_id=0,
    )


def save_without_weights(folder: Path, layers: int) -> Path:
    """The configuration, and MiniLM's tokenizer, for SFR's is not on every machine."""
    from transformers import AutoTokenizer

    AutoTokenizer.from_pretrained(locate("all-MiniLM-L6-v2", default_models_dir()).folder).save_pretrained(folder)
    config_of(layers).save_pretrained(folder)
    return folder


def save(folder: Path, layers: int) -> None:
    """The same with random weights, in bfloat16."""
    import torch
    from transformers import AutoModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    save_without_weights(folder, layers)
    torch.manual_seed(0)
    AutoModel.from_config(config_of(layers), dtype=torch.bfloat16).save_pretrained(folder)


def random_texts(folder: Path, count: int, mean: float = MEAN) -> list[str]:
    """``count`` texts of words of the tokenizer's, a token each, with lengths of a log-normal distribution."""
    from transformers import AutoTokenizer

    chance = np.random.default_rng(0)
    known = sorted(AutoTokenizer.from_pretrained(folder).get_vocab())
    words = np.asarray([word for word in known if len(word) > 3 and word.isascii() and word.isalpha()])
    lengths = chance.lognormal(np.log(mean) - SPREAD**2 / 2, SPREAD, count).clip(4, LONGEST - 2).astype(int)
    return [" ".join(chance.choice(words, length)) for length in lengths]


if __name__ == "__main__":
    save(Path(sys.argv[1]), int(sys.argv[2]))
