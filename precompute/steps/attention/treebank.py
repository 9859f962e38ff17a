"""A treebank's sentences through a model: the word that each head attends to most, in order and shuffled, and whether
attention follows similar words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.analysis.conllu import Sentence
from core.analysis.word_attention import MostAttended, most_attended, word_attention, words_of_tokens
from core.analysis.word_similarity import Cosines, SimilarityScores, cosines, followed, similarity_scores
from core.errors import Mistake
from core.runs.parts import digest_of, write_table
from precompute.steps.attention.parts import AttentionWork

if TYPE_CHECKING:
    from torch import Tensor

    from core.model.embedder import Embedder

MOST_SENTENCES, LONGEST = 1_000, 100
"""Of a larger treebank so many sentences are drawn; those with more words are left out."""
PART_SIZE = 40
_MOST_UNKNOWN = 0.25


@dataclass(frozen=True)
class TreebankReading:
    """What a model's heads do in a treebank's sentences."""

    sentences: Sequence[Sentence]
    attended: MostAttended
    similarity: SimilarityScores
    """Its axis ``head`` is all layers' heads, one layer after the other."""
    cosines: Sequence[Cosines]


def chosen(sentences: Sequence[Sentence], seed: int) -> list[Sentence]:
    """At most MOST_SENTENCES of those that have two words or more and are not too long, in their order."""
    fitting = [sentence for sentence in sentences if 2 <= len(sentence.words) <= LONGEST]
    drawn = np.random.default_rng(seed).permutation(len(fitting))[:MOST_SENTENCES]
    return [fitting[place] for place in np.sort(drawn)]


def refuse_unknown(model: Embedder, sentences: Sequence[Sentence], name: str) -> None:
    """Refuses a treebank with more than a few words that the tokenizer has no tokens for."""
    words, unknown, example = 0, 0, None
    for sentence in sentences:
        spans = model.tokens.spans(sentence.text, model.info.prompt)
        known = np.array([token not in model.tokens.special_ids for token in spans.ids])
        mapped = set(words_of_tokens(spans.characters, sentence.spans)[known].tolist())
        words += len(sentence.words)
        for place, word in enumerate(sentence.words):
            if place not in mapped:
                unknown += 1
                example = example or (word.form, sentence.line)
    if not words:
        raise Mistake(f"The treebank '{name}' has no sentence of 2 to {LONGEST} words. Give another one.")
    if example and unknown > _MOST_UNKNOWN * words:
        raise Mistake(
            f"The tokenizer of '{model.info.name}' has no tokens for {unknown:,} of the {words:,} words of the "
            f"treebank '{name}' (the first one is '{example[0]}', in the sentence of line {example[1]}). Give a "
            "treebank in a language that this model knows."
        )


def read_sentence(model: Embedder, sentence: Sentence, without_first: bool = False) -> np.ndarray:
    """``[layer, head, word]``: the other word that each head attends to most."""
    found: list[np.ndarray] = []
    _between(model, sentence, lambda between: found.append(most_attended(between, without_first)))
    return np.stack(found)


def read_sentences(model: Embedder, sentences: Sequence[Sentence], seed: int = 0) -> MostAttended:
    """All sentences, each twice: as written, and with its words in a random order."""
    causal, without_first = sight(model, sentences)
    orders = _orders(sentences, seed)
    return MostAttended(
        plain=[read_sentence(model, sentence, without_first) for sentence in sentences],
        shuffled=[
            read_sentence(model, one.shuffled(order.tolist()), without_first)
            for one, order in zip(sentences, orders, strict=True)
        ],
        places=[np.argsort(order) for order in orders],
        causal=causal,
        without_first=without_first,
    )


def read_parts(
    work: AttentionWork, sentences: Sequence[Sentence], seed: int, on_progress: Callable[[float, str], None]
) -> TreebankReading:
    """The same, some sentences at a time, each part stored for a later start; with the similarity of words."""
    model, shape = work.model, work.shape
    causal, without_first = sight(model, sentences)
    orders = _orders(sentences, seed)
    forms = [[word.form for word in sentence.words] for sentence in sentences]
    rest = cosines([_vectors(model, one) for one in sentences], forms, causal, without_first, seed)
    plain: list[np.ndarray] = []
    shuffled: list[np.ndarray] = []
    sums: list[np.ndarray] = []
    for start in range(0, len(sentences), PART_SIZE):
        on_progress(start / len(sentences), f"{start:,} of {len(sentences):,} sentences of the treebank")
        here = slice(start, start + PART_SIZE)
        path = work.staging / f"treebank-{start:07d}.parquet"
        if digest_of(path) != work.digest:
            rows = [
                sentence_row(model, sentence, order, of, without_first)
                for sentence, order, of in zip(sentences[here], orders[here], rest[here], strict=True)
            ]
            _store(path, rows, work.digest)
        for row, sentence in zip(pq.read_table(path).to_pylist(), sentences[here], strict=True):
            size = (shape.layers, shape.heads, len(sentence.words))
            plain.append(np.array(row["plain"], dtype=np.int16).reshape(size))
            shuffled.append(np.array(row["shuffled"], dtype=np.int16).reshape(size))
            sums.append(np.array(row["sums"]).reshape(-1, 3))
    places = [np.argsort(order) for order in orders]
    return TreebankReading(
        sentences,
        MostAttended(plain, shuffled, places, causal, without_first),
        similarity_scores(np.stack(sums), rest, seed),
        rest,
    )


def sight(model: Embedder, sentences: Sequence[Sentence]) -> tuple[bool, bool]:
    """Whether words see only those before them, read off the attention; and whether the first word is left out, for
    heads rest on it where no other token comes before."""
    ahead: list[bool] = []
    sentence = max(sentences[:20], key=lambda one: len(one.words))
    _between(model, sentence, lambda between: ahead.append(bool((between[:, 0, 1:] > 0).any())))
    causal = not any(ahead)
    return causal, causal and model.tokens.spans(sentence.text, model.info.prompt).characters[0] is not None


def _between(model: Embedder, sentence: Sentence, keep: Callable[[np.ndarray], None]) -> None:
    """Every layer's attention between words, ``[head, from, to]``, to ``keep``."""
    spans = model.tokens.spans(sentence.text, model.info.prompt)
    tokens = words_of_tokens(spans.characters, sentence.spans)

    def reduce(layer: int, weights: Tensor) -> None:
        keep(word_attention(weights.double().cpu().numpy(), tokens, len(sentence.words)))

    model.read_attention(spans.ids, reduce)


def sentence_row(
    model: Embedder, sentence: Sentence, order: np.ndarray, of: Cosines, without_first: bool
) -> dict[str, np.ndarray]:
    plain: list[np.ndarray] = []
    sums: list[np.ndarray] = []

    def keep(between: np.ndarray) -> None:
        plain.append(most_attended(between, without_first))
        sums.append(followed(between, of))

    _between(model, sentence, keep)
    moved = read_sentence(model, sentence.shuffled(order.tolist()), without_first)
    return {"plain": np.stack(plain).ravel(), "shuffled": moved.ravel(), "sums": np.stack(sums).ravel()}


def _store(path: Path, rows: Sequence[dict[str, np.ndarray]], digest: str) -> None:
    types = {"plain": pa.int16(), "shuffled": pa.int16(), "sums": pa.float64()}
    columns = {name: pa.array([row[name].tolist() for row in rows], pa.list_(kind)) for name, kind in types.items()}
    write_table(path, pa.table(columns), digest, compression="none")


def _vectors(model: Embedder, sentence: Sentence) -> np.ndarray:
    """``[word, dim]``: the mean of the input embeddings of each word's pieces; 0 for a word without any."""
    spans = model.tokens.spans(sentence.text, model.info.prompt)
    piece = words_of_tokens(spans.characters, sentence.spans)[None] == np.arange(len(sentence.words))[:, None]
    found: np.ndarray = piece @ model.input_vectors(spans.ids) / np.maximum(piece.sum(axis=1), 1)[:, None]
    return found


def _orders(sentences: Sequence[Sentence], seed: int) -> list[np.ndarray]:
    chance = np.random.default_rng(seed)
    return [chance.permutation(len(sentence.words)) for sentence in sentences]
