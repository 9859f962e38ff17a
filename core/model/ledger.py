"""The embedding of a text as a sum over all heads, feed-forward blocks, embeddings and biases, and the cosine of two.

The same linear way as stage 4 (core/model/shares.py), for everything that is added to the residual stream: the sum is
the model's own output but for rounding. A feed-forward block's last bias is part of the block, and a bias of the values
is part of the head; the other biases of a layer (output projection, norms on the residual stream) are one term.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from core.errors import Mistake
from core.model.attention import read_attention
from core.model.families import VALUE_LAYOUTS
from core.model.pooling import Pool, widened

if TYPE_CHECKING:
    from torch import Tensor

    from core.model.extract import HeadExtractor
    from core.model.shares import Recording, ResidualStream

KINDS = ("embedding", "head", "mlp", "bias")


@dataclass(frozen=True)
class Term:
    """One summand of an embedding."""

    kind: str
    """One of KINDS."""
    layer: int | None = None
    """From 1; None for the embedding, and for the bias of the final norm."""
    head: int | None = None
    """From 1."""


@dataclass(frozen=True)
class Ledger:
    """One text's embedding, and the terms that add up to it."""

    terms: tuple[Term, ...]
    vectors: np.ndarray
    """``[term, hidden]``."""
    output: np.ndarray
    """Stage 3: ``[hidden]``."""

    @property
    def residual(self) -> float:
        """Length of what the terms leave unexplained, relative to the embedding's."""
        left = self.output.astype(np.float64) - self.vectors.sum(axis=0, dtype=np.float64)
        return float(np.linalg.norm(left) / np.linalg.norm(self.output))

    @property
    def parts(self) -> np.ndarray:
        """Each term's signed part of the embedding's length, ``[term]``: they add up to 1 but for the residual."""
        output = self.output.astype(np.float64)
        return np.asarray(self.vectors @ output / (output @ output))


@dataclass(frozen=True)
class Explanation:
    """The cosine of two texts as a sum over terms."""

    cosine: float
    terms: tuple[Term, ...]
    values: np.ndarray
    """``[term]``."""

    @property
    def residual(self) -> float:
        return self.cosine - float(self.values.sum())

    def as_json(self) -> dict[str, Any]:
        rows = [
            {"kind": term.kind, "layer": term.layer, "head": term.head, "value": float(value)}
            for term, value in zip(self.terms, self.values, strict=True)
        ]
        return {"cosine": self.cosine, "terms": rows, "residual": self.residual}


def explain(first: Ledger, second: Ledger) -> Explanation:
    """How much each term adds to the cosine of two texts.

    The dot product is a sum over pairs of terms, ``Σ_ij x_i·y_j``. Each pair is split evenly between its two terms: the
    value of term ``i`` is ``(x_i·y + x·y_i) / 2``, divided by both lengths. Values add up to the cosine, and exchanging
    the texts changes nothing.
    """
    x, y = first.output.astype(np.float64), second.output.astype(np.float64)
    lengths = np.linalg.norm(x) * np.linalg.norm(y)
    values = (first.vectors @ y + second.vectors @ x) / (2 * lengths)
    return Explanation(float(x @ y / lengths), first.terms, values)


def ledgers(extractor: HeadExtractor, ids: Tensor, mask: Tensor) -> list[Ledger]:
    """Every text's ledger from one forward pass; ``ids`` and ``mask`` are ``[doc, token]``.

    With mean pooling all layers' outputs of every token are in memory until the pass is done: give few texts at once.
    """
    import torch

    stream, model, pool = extractor.stream, extractor.model, Pool(extractor.pooling, mask)
    layers = range(stream.shape.layers)
    added: dict[int | None, Tensor] = {}  # by layer: what its feed-forward block adds; None: the embeddings

    def before_first(module: Any, args: Any, kwargs: dict[str, Any]) -> None:
        added[None] = pool.select(args[0] if args else kwargs["hidden_states"])

    def after(layer: int) -> Any:
        return lambda module, args, out: added.__setitem__(layer, pool.select(out))

    with torch.inference_mode(), stream.recorded(pool, layers) as recording, ExitStack() as stack:
        first = model.get_submodule(stream.family.block.format(0))
        stack.callback(first.register_forward_pre_hook(before_first, with_kwargs=True).remove)
        for layer in layers:
            mlp = model.get_submodule(stream.family.mlp_output.format(layer))
            stack.callback(mlp.register_forward_hook(after(layer)).remove)
        output = pool(model(input_ids=ids, **extractor.arguments(mask)).last_hidden_state)
        terms, vectors = _terms(stream, recording, added)
    joined = vectors.cpu().numpy()
    return [Ledger(terms, joined[doc], row) for doc, row in enumerate(output.cpu().numpy())]


def _terms(
    stream: ResidualStream, recording: Recording, added: dict[int | None, Tensor]
) -> tuple[tuple[Term, ...], Tensor]:
    """All terms, and their vectors ``[doc, term, hidden]``."""
    import torch

    def block(tokens: Tensor, start: int) -> Tensor:
        return stream.pass_norms(recording.pool(tokens, stream.scale(recording, start)), start)

    assert added[None] is not None
    terms, vectors = [Term("embedding")], [block(added[None], 0).unsqueeze(1)]
    ones = torch.ones_like(widened(added[None][..., :1]))
    for layer in range(stream.shape.layers):
        terms += [Term("head", layer + 1, head + 1) for head in range(stream.shape.heads)]
        vectors.append(stream.from_heads(stream.pooled_heads(recording, layer), layer))
        terms.append(Term("mlp", layer + 1))
        vectors.append(block(added[layer], stream.after_mlp(layer)).unsqueeze(1))
        biases = _biases(stream, recording, layer, ones)
        if biases:
            terms.append(Term("bias", layer + 1))
            vectors.append(torch.stack(biases).sum(dim=0).unsqueeze(1))
    final = [norm.bias for norm in stream.norms[stream.after_attention(stream.shape.layers) :] if norm.bias is not None]
    if final:  # of a single norm: nothing comes after it
        terms.append(Term("bias"))
        vectors.append(final[0].to(ones.dtype).expand(len(ones), 1, -1))
    return tuple(terms), torch.cat(vectors, dim=1)


def _biases(stream: ResidualStream, recording: Recording, layer: int, ones: Tensor) -> list[Tensor]:
    """What the biases of a layer add, each ``[doc, hidden]``."""
    biases = []
    projection = stream.projection(layer).bias
    if projection is not None:
        weight = recording.pool(ones, stream.attention_scale(recording, layer))  # [doc, 1]
        biases.append(weight * stream.from_projection(projection.to(ones.dtype), layer))
    for place in range(stream.after_attention(layer), stream.after_attention(layer + 1)):
        bias = stream.norms[place].bias
        if bias is not None:
            weight = recording.pool(ones, stream.scale(recording, place + 1))
            biases.append(weight * stream.pass_norms(bias.to(ones.dtype), place + 1))
    return biases


def check_exact(extractor: HeadExtractor) -> None:
    """Refuses a model whose terms do not add up to its output: code of its own may differ from its family's."""
    import torch

    model: Any = extractor.model
    ids = torch.tensor([[5, 6, 7, 8]], device=model.device)
    residual = ledgers(extractor, ids, torch.ones_like(ids))[0].residual
    if not residual <= torch.finfo(model.dtype).eps ** 0.5:
        raise Mistake(
            f"Shares cannot be computed for this model: its terms miss its output by {100 * residual:.1f} %, so it is "
            f"not built like other models of type '{model.config.model_type}'. Use stages 1 to 3."
        )


# Within one head: words


@dataclass(frozen=True)
class WordPairs:
    """One head's value in the cosine of two texts, split over the tokens that it read (sources)."""

    first: np.ndarray
    """``[token]`` of the first text; with ``second`` it adds up to the head's value in ``explain``."""
    second: np.ndarray
    """``[token]`` of the second text."""
    pairs: np.ndarray
    """``[token of the first, token of the second]``: the head's share of one text times its share of the other. It
    adds up to the part of the value that lies between the head and itself; the rest lies between it and other terms."""


@dataclass(frozen=True)
class SourceShares:
    """One text's shares of every head at one layer, by the token that the head read."""

    coordinates: np.ndarray
    """``[head, token, dim]``, as stage 4 has them; their sum over tokens is stage 4."""
    output: np.ndarray
    """Stage 3: ``[hidden]``."""


def source_shares(extractor: HeadExtractor, ids: Sequence[int], layer: int) -> SourceShares:
    """Splits the shares of all heads at ``layer`` (from 0) over the tokens read: attention is linear in the values."""
    import torch

    stream, model, shape = extractor.stream, extractor.model, extractor.shape
    mask = torch.ones((1, len(ids)), device=next(model.parameters()).device, dtype=torch.long)
    pool = Pool(extractor.pooling, mask)
    by_row = Pool(extractor.pooling, mask.expand(shape.heads, -1))
    seen: dict[str, Tensor] = {}
    values = model.get_submodule(stream.family.values.format(layer))
    with stream.recorded(pool, [layer]) as recording, ExitStack() as stack:
        stack.callback(values.register_forward_hook(lambda m, args, out: seen.update(values=out)).remove)
        stack.callback(
            model.register_forward_hook(lambda m, args, out: seen.update(output=pool(out.last_hidden_state))).remove
        )
        # [head, from, to] is needed only at the pooled tokens, but their weights are known at the end of the pass.
        read_attention(extractor, ids, [layer], lambda _, weights: seen.update(weights=by_row.select(weights).clone()))
    with torch.inference_mode():
        scale = stream.attention_scale(recording, layer)  # [1, from]
        read = by_row(seen["weights"], scale.expand(shape.heads, -1))  # [head, to]
        held = VALUE_LAYOUTS[stream.family.values_layout](widened(seen["values"][0]), shape)  # [to, kv_head, dim]
        of_head = held[:, [shape.group_of(head) for head in range(shape.heads)]]
        triangle = stream.triangle(layer).to(read.dtype)
        coordinates = torch.einsum("hkd,ht,thd->htk", triangle, read, of_head)
    return SourceShares(coordinates.cpu().numpy(), seen["output"][0].cpu().numpy())


def word_pairs(extractor: HeadExtractor, first: SourceShares, second: SourceShares, layer: int, head: int) -> WordPairs:
    """One head's value split over words; ``layer`` and ``head`` from 0, both texts' shares taken at that layer."""
    x, y = first.output.astype(np.float64), second.output.astype(np.float64)
    lengths = np.linalg.norm(x) * np.linalg.norm(y)
    directions = extractor.stream.basis(layer).directions[head].cpu().numpy()  # [hidden, dim]
    mine, theirs = first.coordinates[head].astype(np.float64), second.coordinates[head].astype(np.float64)
    return WordPairs(
        first=mine @ (y @ directions) / (2 * lengths),
        second=theirs @ (x @ directions) / (2 * lengths),
        pairs=mine @ theirs.T / lengths,
    )
