"""Tiny models saved to disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

WORDS = ("harbour", "violin", "enzyme", "glacier", "verdict", "orchard", "satellite", "loom")
HUGE = "huge"
"""The one word whose documents overflow float16 in the model of ``huge_model``."""
MAX_TOKENS = 128


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of 2 layers, 4 heads and hidden size 32 with random weights, and its tokenizer."""
    return _save_model(tmp_path_factory.mktemp("models") / "tiny", seed=0, layers=2)


@pytest.fixture(scope="session")
def other_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same architecture with other weights."""
    return _save_model(tmp_path_factory.mktemp("models") / "other", seed=1, layers=2)


@pytest.fixture(scope="session")
def huge_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stage 1 of a document made of the word "huge" is beyond 65504; that of any other is far below."""
    return _save_model(tmp_path_factory.mktemp("models") / "huge", seed=0, layers=1, overflow=True)


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of 2 layers, 4 heads on 2 key/value heads and hidden size 32 with random weights, and its tokenizer."""
    import torch
    from transformers import LlamaConfig, LlamaModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    folder = tmp_path_factory.mktemp("models") / "llama"
    vocabulary = _save_tokenizer(folder)
    torch.manual_seed(2)
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        intermediate_size=64,
        max_position_embeddings=MAX_TOKENS,
    )
    LlamaModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Models this small lose a hundredfold to threads that wait for each other on a busy machine."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _save_model(folder: Path, seed: int, layers: int, overflow: bool = False) -> Path:
    import torch
    from transformers import BertConfig, BertModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    vocabulary = _save_tokenizer(folder)
    torch.manual_seed(seed)
    model = BertModel(
        BertConfig(
            vocab_size=len(vocabulary),
            hidden_size=32,
            num_hidden_layers=layers,
            num_attention_heads=4,
            intermediate_size=64,
            max_position_embeddings=MAX_TOKENS,
        )
    )
    if overflow:
        _make_overflow(model, vocabulary[HUGE])
    model.save_pretrained(folder)
    return folder


def _make_overflow(model: Any, word: int) -> None:
    """Dimension 0 is large for one word alone, and the value projection multiplies it by 20,000.

    After the embeddings' norm that word has about √31 ≈ 5.6 there, so about 110,000; the others, whose part in
    dimension 0 is nil, stay within a few thousands.
    """
    import torch

    with torch.no_grad():
        for table in (model.embeddings.position_embeddings, model.embeddings.token_type_embeddings):
            table.weight[:, 0] = 0
        words = model.embeddings.word_embeddings.weight
        words[:, 0] = 0
        words[word, 0] = 1_000
        model.encoder.layer[0].attention.self.value.weight[:, 0] = 20_000


def _save_tokenizer(folder: Path) -> dict[str, int]:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, HUGE, *letters, *(f"##{letter}" for letter in letters)]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=MAX_TOKENS,
    ).save_pretrained(folder)
    return vocabulary
