"""Documents through the model, some at a time: each one's sums at every layer, kept until all are there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.analysis.attention_measures import MEASURES, OFFSETS, Sums, measured
from core.model.embedder import Embedder
from core.model.shape import ModelShape
from core.model.token_kinds import TokenKinds, counted, delimiters, kinds, rare_ids
from core.runs.parts import digest_of, write_table

if TYPE_CHECKING:
    from torch import Tensor

PART = 10
"""Documents that are made again at most after an interruption."""


@dataclass(frozen=True)
class TokenisedText:
    """One document as the model sees it."""

    ids: list[int]
    kinds: TokenKinds


@dataclass(frozen=True)
class AttentionWork:
    model: Embedder
    shape: ModelShape
    staging: Path
    digest: str


def read_texts(model: Embedder, texts: Sequence[str], at_most: int) -> list[TokenisedText]:
    """Tokens and their kinds; which tokens are rare, these documents decide together."""
    special = model.tokens.special_ids
    spans = [model.tokens.spans(text, model.info.prompt, at_most=at_most) for text in texts]
    rare = rare_ids(counted((one.ids, delimiters(one, text, special)) for one, text in zip(spans, texts, strict=True)))
    return [TokenisedText(one.ids, kinds(one, text, special, rare)) for one, text in zip(spans, texts, strict=True)]


def make_part(work: AttentionWork, start: int, texts: Sequence[TokenisedText]) -> Path:
    """The file with these documents' sums; one that is there from before is left as it is."""
    path = work.staging / f"texts-{start:07d}.parquet"
    if digest_of(path) != work.digest:
        values = np.concatenate([_flat(attention_sums(work, text)) for text in texts])
        lists = pa.FixedSizeListArray.from_arrays(pa.array(values), _width(work.shape))
        write_table(path, pa.table({"sums": lists}), work.digest, compression="none")
    return path


def read_part(path: Path, work: AttentionWork) -> Iterator[list[Sums]]:
    """Each document's sums, by layer."""
    column = pq.read_table(path)["sums"].combine_chunks()
    for row in column.flatten().to_numpy().reshape(len(column), work.shape.layers, -1):
        yield [_unpacked(layer, work.shape.heads) for layer in row]


def attention_sums(work: AttentionWork, text: TokenisedText) -> list[Sums]:
    """One document's, by layer: each layer's weights are reduced before the next computes its own."""
    found: list[Sums] = []

    def keep(layer: int, weights: Tensor) -> None:
        found.append(measured(weights.float().cpu().numpy(), text.kinds.delimiter, text.kinds.rare))

    work.model.read_attention(text.ids, keep)
    return found


def _flat(sums: Sequence[Sums]) -> np.ndarray:
    return np.concatenate([getattr(one, name).ravel() for one in sums for name in Sums.__dataclass_fields__])


def _unpacked(flat: np.ndarray, heads: int) -> Sums:
    shapes = _shapes(heads)
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    return Sums(*(part.reshape(shape) for part, shape in zip(np.split(flat, ends), shapes, strict=True)))


def _shapes(heads: int) -> tuple[tuple[int, ...], ...]:
    """Of the fields of Sums, in their order."""
    measures, offsets = len(MEASURES), len(OFFSETS)
    return (heads, measures), (heads, measures), (measures,), (heads, offsets), (offsets,), (heads,)


def _width(shape: ModelShape) -> int:
    return shape.layers * sum(int(np.prod(one)) for one in _shapes(shape.heads))
