"""A treebank's sentences through a model: the word that each head attends to most, in order and shuffled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from core.analysis.conllu import Sentence
from core.analysis.word_attention import MostAttended, most_attended, word_attention, words_of_tokens

if TYPE_CHECKING:
    from torch import Tensor

    from core.model.embedder import Embedder


def read_sentence(model: Embedder, sentence: Sentence) -> np.ndarray:
    """``[layer, head, word]``: the other word that each head attends to most."""
    spans = model.tokens.spans(sentence.text, model.info.prompt)
    tokens = words_of_tokens(spans.characters, sentence.spans)
    found: list[np.ndarray] = []

    def keep(layer: int, weights: Tensor) -> None:
        between = word_attention(weights.double().cpu().numpy(), tokens, len(sentence.words))
        found.append(most_attended(between))

    model.read_attention(spans.ids, keep)
    return np.stack(found)


def read_sentences(model: Embedder, sentences: Sequence[Sentence], seed: int = 0) -> MostAttended:
    """All sentences, each twice: as written, and with its words in a random order."""
    chance = np.random.default_rng(seed)
    orders = [chance.permutation(len(sentence.words)) for sentence in sentences]
    plain = [read_sentence(model, sentence) for sentence in sentences]
    return MostAttended(
        plain=plain,
        shuffled=[
            read_sentence(model, one.shuffled(order.tolist())) for one, order in zip(sentences, orders, strict=True)
        ],
        places=[np.argsort(order) for order in orders],
        causal=all(bool((one[:, :, 0] == -1).all()) for one in plain),  # a first word that sees no other
    )
