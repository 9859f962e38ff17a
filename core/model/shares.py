"""Stage 4: each head's share of the embedding, exact once every norm's statistics are taken as they were.

A norm divides each token by one number, the standard deviation or root mean square of that token. With these numbers
given, all that lies between a head and the embedding is linear: the output projection, the gains, the centring of layer
norms and the pooling. The numbers commute with the maps, so a share is ``A_h u_h`` with ``u_h = pool(z[t] · w[t])``,
where ``z`` is the head's output, ``w`` the product of those numbers over the norms on the way and ``A_h`` one matrix
for the whole model. A sandwich norm (Gemma) has statistics of its own, which are one more factor of ``w``. With
``A_h = Q_h R_h`` the coordinates ``R_h u_h`` have the lengths and angles of the shares at the width of stage 1.

Shares are direct: what later layers make of a head's output is theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from core.errors import Mistake
from core.model.pooling import widened

if TYPE_CHECKING:
    from torch import Tensor, nn

    from core.model.families import Family
    from core.model.pooling import Pool
    from core.model.shape import ModelShape


def full_shares(coordinates: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Shares in the embedding's own space: ``[doc, head * dim]`` and ``Q`` ``[head, hidden, dim]`` -> ``[doc, head,
    hidden]``. Their sum over heads is what this layer's heads add to stage 3."""
    heads, _, dim = directions.shape
    cut = coordinates.reshape(len(coordinates), heads, dim).astype(np.float32, copy=False)
    return np.einsum("nhk,hDk->nhD", cut, directions, optimize=True)


def resliced(coordinates: np.ndarray, directions: np.ndarray, triangle: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Stage 4's random control: slices of the heads' outputs in another ``order``, cut before the projection.

    ``[doc, head * dim]``, ``Q`` ``[head, hidden, dim]``, ``R`` ``[head, dim, dim]`` and a permutation of the ``head *
    dim`` outputs -> coordinates ``[doc, slice * dim]``, with the lengths and angles of the slices' shares.
    """
    heads, hidden, dim = directions.shape
    cut = coordinates.reshape(len(coordinates), heads, dim).transpose(1, 2, 0)
    outputs = np.linalg.solve(triangle.astype(np.float64), cut.astype(np.float64))  # [head, dim, doc]
    columns = (directions.astype(np.float64) @ triangle).transpose(0, 2, 1).reshape(heads * dim, hidden)
    turned = np.linalg.qr(columns[order].reshape(heads, dim, hidden).transpose(0, 2, 1), mode="r")
    sliced = turned @ outputs.reshape(heads * dim, -1)[order].reshape(heads, dim, -1)
    return np.ascontiguousarray(sliced.transpose(2, 0, 1).reshape(len(coordinates), -1), dtype=np.float32)


class FrozenNorm:
    """A layer norm or RMS norm whose statistics are taken as given, so that it is linear but for its bias."""

    def __init__(self, module: nn.Module, path: str, offset: float) -> None:
        from torch import nn

        self.module: Any = module
        self.centres = isinstance(module, nn.LayerNorm)
        eps = getattr(module, "eps", getattr(module, "variance_epsilon", None))
        if eps is None or not (self.centres or type(module).__name__.endswith("RMSNorm")):
            raise Mistake(
                f"Shares cannot be computed for this model: {path} ({type(module).__name__}) is neither a layer norm "
                "nor an RMS norm. Use stages 1 to 3."
            )
        self._eps = eps
        self._offset = offset

    @property
    def bias(self) -> Tensor | None:
        bias: Tensor | None = getattr(self.module, "bias", None)
        return bias

    def scale(self, tokens: Tensor) -> Tensor:
        """What each token is multiplied by: ``[doc, token, hidden] -> [doc, token]``."""
        import torch

        tokens = widened(tokens)
        if self.centres:
            tokens = tokens - tokens.mean(dim=-1, keepdim=True)
        squares = torch.linalg.vector_norm(tokens, dim=-1).square() / tokens.shape[-1]
        return (squares + self._eps).rsqrt()

    def __call__(self, vectors: Tensor) -> Tensor:
        """The linear part, ``[…, hidden]``: centred where it centres, times the gain."""
        if self.centres:
            vectors = vectors - vectors.mean(dim=-1, keepdim=True)
        if self.module.weight is None:
            return vectors
        return vectors * (self.module.weight.to(vectors.dtype) + self._offset)


@dataclass(frozen=True)
class ShareBasis:
    """One layer's ``A_h = Q_h R_h``, in float64."""

    directions: Tensor
    """``Q``: ``[head, hidden, dim]``, orthonormal columns. Stored once per run."""
    triangle: Tensor
    """``R``: ``[head, dim, dim]``, its diagonal not negative, so that every machine has the same coordinates."""


@dataclass
class Recording:
    """What one forward pass leaves: heads' outputs, and what the norms multiplied each token by."""

    pool: Pool
    heads: dict[int, Tensor] = field(default_factory=dict)
    """By layer index ``[doc, token, head * dim]``; of one-token pooling that token alone."""
    stream: dict[int, Tensor] = field(default_factory=dict)
    """By the norm's place on the residual stream: ``[doc, token]``."""
    sandwich: dict[int, Tensor] = field(default_factory=dict)
    """By layer index: ``[doc, token]``."""


class ResidualStream:
    """The way from every head, feed-forward block and bias of a model to its output."""

    def __init__(self, model: nn.Module, family: Family, shape: ModelShape) -> None:
        if not family.stream_norms or not family.mlp_output:
            config: Any = model.config
            raise Mistake(
                f"Shares cannot be computed for models of type '{config.model_type}': their row in "
                "core/model/families.py does not say which norms lie between a head and the output. "
                "Add them, or use stages 1 to 3."
            )
        self.model, self.family, self.shape = model, family, shape
        each = [path for path in family.stream_norms if "{}" in path]
        paths = [path.format(layer) for layer in range(shape.layers) for path in each]
        self.norms = [
            self._norm(path) for path in [*paths, *(path for path in family.stream_norms if "{}" not in path)]
        ]
        self._per_layer = len(each)
        self._triangles: dict[int, Tensor] = {}

    def _norm(self, path: str) -> FrozenNorm:
        return FrozenNorm(self.model.get_submodule(path), path, self.family.gain_offset)

    def after_attention(self, layer: int) -> int:
        """The place of the first norm that the layer's attention passes on the residual stream."""
        return layer * self._per_layer

    def after_mlp(self, layer: int) -> int:
        return layer * self._per_layer + min(1, self._per_layer)

    def sandwich(self, layer: int) -> FrozenNorm | None:
        path = self.family.attention_norm
        return self._norm(path.format(layer)) if path else None

    def projection(self, layer: int) -> Any:
        return self.model.get_submodule(self.family.projection.format(layer))

    def columns(self, layer: int) -> Tensor:
        """The projection's weights by head: ``[head, dim, hidden]``."""
        projection = self.projection(layer)
        weight: Tensor = projection.weight
        if not hasattr(projection, "nf"):  # GPT-2's Conv1D keeps [in, out], a linear map [out, in]
            weight = weight.T
        return weight.unflatten(0, (self.shape.heads, self.shape.head_dim))

    # Vectors that are pooled already

    def pass_norms(self, vectors: Tensor, start: int) -> Tensor:
        """``[…, hidden]`` through the gains and centrings of the norms from ``start`` on."""
        for norm in self.norms[start:]:
            vectors = norm(vectors)
        return vectors

    def from_projection(self, vectors: Tensor, layer: int) -> Tensor:
        """``[…, hidden]`` from the output projection of ``layer`` to the model's output."""
        norm = self.sandwich(layer)
        return self.pass_norms(vectors if norm is None else norm(vectors), self.after_attention(layer))

    def from_heads(self, vectors: Tensor, layer: int) -> Tensor:
        """``[…, head, dim] -> […, head, hidden]``: from the heads of ``layer`` to the model's output, ``A_h u_h``."""
        import torch

        projected = torch.einsum("...hd,hdD->...hD", vectors, self.columns(layer).to(vectors.dtype))
        return self.from_projection(projected, layer)

    def basis(self, layer: int) -> ShareBasis:
        """``Q`` and ``R`` of every head of ``layer`` (from 0)."""
        import torch

        with torch.no_grad():
            heads, dim = self.shape.heads, self.shape.head_dim
            weight = self.columns(layer)
            unit = torch.eye(dim, dtype=torch.float64, device=weight.device).unsqueeze(1).expand(dim, heads, dim)
            directions, triangle = torch.linalg.qr(self.from_heads(unit, layer).permute(1, 2, 0))
            signs = torch.where(triangle.diagonal(dim1=-2, dim2=-1) < 0, -1.0, 1.0).to(torch.float64)
            return ShareBasis(directions * signs.unsqueeze(1), triangle * signs.unsqueeze(2))

    def triangle(self, layer: int) -> Tensor:
        """``R`` alone, kept: ``Q`` of all layers would take as much memory as the model."""
        if layer not in self._triangles:
            self._triangles[layer] = self.basis(layer).triangle
        return self._triangles[layer]

    # One forward pass

    @contextmanager
    def recorded(self, pool: Pool, layers: Sequence[int]) -> Iterator[Recording]:
        """Hooks for one forward pass, which may be shortened to the pooled token in its last layer."""
        recording = Recording(pool)
        with ExitStack() as stack:

            def before(module: nn.Module, keep: Any) -> None:
                stack.callback(module.register_forward_pre_hook(lambda _, args: keep(args[0])).remove)

            def keep_heads(tokens: Tensor, layer: int) -> None:
                recording.heads[layer] = pool.select(tokens)

            def keep_scale(tokens: Tensor, norm: FrozenNorm, into: dict[int, Tensor], key: int) -> None:
                into[key] = norm.scale(pool.select(tokens))

            for layer in layers:
                before(self.projection(layer), lambda tokens, layer=layer: keep_heads(tokens, layer))
                if (norm := self.sandwich(layer)) is not None:
                    before(
                        norm.module,
                        lambda tokens, norm=norm, layer=layer: keep_scale(tokens, norm, recording.sandwich, layer),
                    )
            first = self.after_attention(min(layers)) if layers else len(self.norms)
            for place, norm in list(enumerate(self.norms))[first:]:
                before(
                    norm.module,
                    lambda tokens, norm=norm, place=place: keep_scale(tokens, norm, recording.stream, place),
                )
            yield recording

    def scale(self, recording: Recording, start: int) -> Tensor | None:
        """What all norms from ``start`` on multiply each token by, ``[doc, token]``; None after the last one."""
        total: Tensor | None = None
        for place in range(start, len(self.norms)):
            total = recording.stream[place] if total is None else total * recording.stream[place]
        return total

    def attention_scale(self, recording: Recording, layer: int) -> Tensor:
        """``w`` of the heads of ``layer``, ``[doc, token]``."""
        total = self.scale(recording, self.after_attention(layer))
        assert total is not None
        return total * recording.sandwich[layer] if layer in recording.sandwich else total

    def pooled_heads(self, recording: Recording, layer: int) -> Tensor:
        """``u`` of every head of ``layer``: ``[doc, head, dim]``."""
        pooled = recording.pool(recording.heads[layer], self.attention_scale(recording, layer))
        return pooled.unflatten(1, (self.shape.heads, self.shape.head_dim))

    def coordinates(self, recording: Recording, layer: int) -> Tensor:
        """Stage 4: ``R_h u_h`` of every head of ``layer``, side by side: ``[doc, head * dim]``."""
        import torch

        pooled = self.pooled_heads(recording, layer)
        return torch.einsum("hkd,nhd->nhk", self.triangle(layer).to(pooled.dtype), pooled).flatten(1)
