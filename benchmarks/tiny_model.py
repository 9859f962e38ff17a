"""A real, tiny model with random weights, and a corpus of as many documents as one likes: for the engines."""

from __future__ import annotations

import json
import random
from pathlib import Path

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_WORDS = [f"{first}{second}a{third}" for first in "bdfgklmn" for second in "aeiou" for third in "lnrst"]
_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def save_tiny_model(folder: Path) -> Path:
    """A BERT of 2 layers, 4 heads and hidden size 32, and its tokenizer."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    pieces = [*_SPECIAL, *_WORDS, *_LETTERS, *"0123456789", *(f"##{one}" for one in [*_LETTERS, *"0123456789"])]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    )
    names = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=128, **names).save_pretrained(folder)
    torch.manual_seed(0)
    BertModel(
        BertConfig(
            vocab_size=len(vocabulary),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            max_position_embeddings=128,
        )
    ).save_pretrained(folder)
    return folder


def write_corpus(path: Path, count: int, words: int = 12) -> Path:
    """``count`` documents of about ``words`` words each, all different, always the same ones."""
    chosen = random.Random(20_25)
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            text = f"{number} {' '.join(chosen.choices(_WORDS, k=chosen.randint(words // 2, words * 3 // 2)))}"
            file.write(json.dumps({"id": f"d{number}", "text": text}) + "\n")
    return path
