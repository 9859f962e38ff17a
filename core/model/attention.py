"""Every head's attention from every token to every token, a layer at a time; and what the pooled token looks at."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from core.errors import Mistake
from core.model.pooling import Pool
from core.model.tokens import Spans

if TYPE_CHECKING:
    from torch import Tensor, nn

    from core.model.extract import HeadExtractor

Keep = Callable[[int, "Tensor"], None]
"""Called with a layer (from 0) and its weights ``[head, from, to]``, which are gone when it returns."""


def read_attention(extractor: HeadExtractor, ids: Sequence[int], layers: Sequence[int], keep: Keep) -> None:
    """One text through the model, and to ``keep`` the weights of each of ``layers`` (from 0), in the model's order.

    One text at a time, so that there is no padding that could count. The weights of one layer are reduced before the
    next computes its own: all layers' of a long text would be gigabytes. The fast kernels never have the weights as
    such: for this one call the model computes its attention eagerly. The caller sees to it that no other thread uses
    the model meanwhile.
    """
    import torch

    model: Any = extractor.model
    row = torch.tensor([list(ids)], device=next(model.parameters()).device)
    found: list[int] = []

    def take(layer: int, weights: Tensor) -> None:
        found.append(layer)
        keep(layer, weights[0])

    with torch.inference_mode(), _eager(model), ExitStack() as stack:
        for layer in layers:
            stack.enter_context(_watched(extractor, layer, len(ids), take))
        model(input_ids=row, **extractor.arguments(torch.ones_like(row)))
    if len(found) < len(layers):
        raise Mistake(
            f"Models of type '{model.config.model_type}' do not report their attention. "
            "Choose another model to see attention."
        )


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
def _watched(extractor: HeadExtractor, layer: int, tokens: int, keep: Keep) -> Iterator[None]:
    """Hands the first thing within a layer that has the shape of attention weights to ``keep``."""
    path = extractor.family.projection.split("{}")[0] + str(layer)
    shape = (1, extractor.shape.heads, tokens, tokens)
    caught: list[bool] = []

    def ask(module: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return args, {**kwargs, "output_attentions": True}

    def catch(module: nn.Module, args: Any, output: Any) -> None:
        if not caught and isinstance(output, tuple):
            weights = next((value for value in output[1:] if getattr(value, "shape", None) == shape), None)
            if weights is not None:
                caught.append(True)
                keep(layer, weights)

    with ExitStack() as stack:
        for name, module in extractor.model.get_submodule(path).named_modules():
            if name and "output_attentions" in inspect.signature(module.forward).parameters:
                # Older models, such as MPNet, give the weights only to who asks.
                stack.callback(module.register_forward_pre_hook(ask, with_kwargs=True).remove)
            stack.callback(module.register_forward_hook(catch).remove)
        yield


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
        return cls(pieces_of(text, spans), weights, spans.total)


@dataclass(frozen=True)
class Matrix:
    """A text's tokens as the model saw them, and at one layer every head's attention from each to each."""

    pieces: tuple[Piece, ...]
    weights: np.ndarray
    """``[head, from, to]``; each row adds up to 1."""
    total: int
    """Tokens before anything was cut."""

    def seen_from(self, token: int) -> Attended:
        """Where every head looks from one token (from 0)."""
        return Attended(self.pieces, self.weights[:, token].astype(np.float32), self.total)


def pieces_of(text: str, spans: Spans) -> tuple[Piece, ...]:
    pieces = []
    for place, word, special in zip(spans.characters, spans.words, spans.special, strict=True):
        start, end = place if place is not None else (None, None)
        pieces.append(Piece(start, end, word if place is None else text[start:end], special))
    return tuple(pieces)


def attention(extractor: HeadExtractor, ids: list[int], layer: int) -> np.ndarray:
    """Attention of every head at ``layer`` (from 0) from the pooled token, ``[head, token]``, in float32.

    With mean pooling every token is pooled, so that it is the mean over all tokens' attention.
    """
    import torch

    mask = torch.ones((extractor.shape.heads, len(ids)), device=next(extractor.model.parameters()).device)
    pool = Pool(extractor.pooling, mask)
    found: list[Tensor] = []
    # [head, from, to] -> [head, to]: rows are pooled as the token vectors are.
    read_attention(extractor, ids, [layer], lambda _, weights: found.append(pool(weights)))
    return found[0].float().cpu().numpy()


def attention_matrix(extractor: HeadExtractor, ids: list[int], layer: int) -> np.ndarray:
    """Attention of every head at ``layer`` (from 0), ``[head, from, to]``, in float32."""
    found: list[np.ndarray] = []
    read_attention(extractor, ids, [layer], lambda _, weights: found.append(weights.float().cpu().numpy()))
    return found[0]
