"""Which tokens of one text each head looks at, from the token that is pooled, at one layer."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from core.errors import Mistake
from core.pooling import Pool
from core.tokens import Spans

if TYPE_CHECKING:
    from torch import Tensor, nn

    from core.extract import HeadExtractor


@dataclass(frozen=True)
class Piece:
    """A token and what it stands for."""

    start: int | None
    """Characters ``[start, end)`` of the text; None for a token that is none of the text's, or cannot be traced."""
    end: int | None
    text: str
    """The characters, or the token's own name where there are none."""
    special: bool
    """None of the text's own: a special token, or the prompt's."""


@dataclass(frozen=True)
class Attended:
    """A text's tokens as the model saw them, and every head's attention to them."""

    pieces: tuple[Piece, ...]
    weights: np.ndarray
    """``[head, token]``; each head's add up to 1, special tokens included (on which heads with nothing to do rest)."""
    total: int
    """Tokens before anything was cut."""

    @classmethod
    def of(cls, text: str, spans: Spans, weights: np.ndarray) -> Attended:
        pieces = []
        for place, word, special in zip(spans.characters, spans.words, spans.special, strict=True):
            start, end = place if place is not None else (None, None)
            pieces.append(Piece(start, end, word if place is None else text[start:end], special))
        return cls(tuple(pieces), weights, spans.total)


def attention(extractor: HeadExtractor, ids: list[int], layer: int) -> np.ndarray:
    """Attention of every head at ``layer`` (from 0) from the pooled token, ``[head, token]``, in float32.

    With mean pooling every token is pooled, so that it is the mean over all tokens' attention. The fast kernels never
    have the weights as such: for this one call the model computes its attention eagerly. The caller sees to it that no
    other thread uses the model meanwhile.
    """
    import torch

    model: Any = extractor.model
    device = next(model.parameters()).device
    row = torch.tensor([ids], device=device)
    mask = torch.ones_like(row)
    pool = Pool(extractor.pooling, mask.expand(extractor.shape.heads, -1))
    found: list[Tensor] = []

    def keep(weights: Tensor) -> None:
        # [1, head, from, to] -> [head, to]: rows are pooled as the token vectors are.
        found.append(pool(weights[0]))

    with torch.inference_mode(), _eager(model), _watched(extractor, layer, len(ids), keep):
        model(input_ids=row, **extractor.arguments(mask))
    if not found:
        raise Mistake(
            f"Models of type '{model.config.model_type}' do not say where their heads look. "
            "Choose another model for the words' shading."
        )
    return found[0].float().cpu().numpy()


@contextmanager
def _eager(model: Any) -> Iterator[None]:
    """Attention by plain matrix products, and afterwards what it was before."""
    before = model.config._attn_implementation
    if before == "eager":
        yield
        return
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(before)


@contextmanager
def _watched(extractor: HeadExtractor, layer: int, tokens: int, keep: Any) -> Iterator[None]:
    """Hands the first thing within a layer that has the shape of attention weights to ``keep``.

    Only this layer's, reduced at once: all layers' weights of a long text would be gigabytes.
    """
    path = extractor.family.projection.split("{}")[0] + str(layer)
    shape = (1, extractor.shape.heads, tokens, tokens)
    caught: list[bool] = []

    def ask(module: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return args, {**kwargs, "output_attentions": True}

    def look(module: nn.Module, args: Any, output: Any) -> None:
        if not caught and isinstance(output, tuple):
            weights = next((value for value in output[1:] if getattr(value, "shape", None) == shape), None)
            if weights is not None:
                caught.append(True)
                keep(weights)

    with ExitStack() as stack:
        for name, module in extractor.model.get_submodule(path).named_modules():
            if name and "output_attentions" in inspect.signature(module.forward).parameters:
                # Older models, such as MPNet, give the weights only to who asks.
                stack.callback(module.register_forward_pre_hook(ask, with_kwargs=True).remove)
            stack.callback(module.register_forward_hook(look).remove)
        yield
