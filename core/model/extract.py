"""The stages of every head in one forward pass, by hooks, with no change to the model's own code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from core.model.families import Family, family_of, shape_of
from core.model.packing import packed_arguments, packed_attention
from core.model.pooling import PackedPool, Pool
from core.model.shares import ResidualStream

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass
class Rows:
    """One pooled row a document and stage: all that a forward pass leaves behind."""

    attention: dict[int, Tensor] = field(default_factory=dict)
    """Stage 1 by layer index: ``[doc, head * dim]``."""
    projected: dict[int, Tensor] = field(default_factory=dict)
    """Stage 2 by layer index: ``[doc, hidden]``."""
    output: Tensor | None = None
    """Stage 3: ``[doc, hidden]``."""
    blocks: dict[int, Tensor] = field(default_factory=dict)
    """What a layer's block leaves to the next, by layer index, the last layer excepted: ``[doc, hidden]``."""
    shares: dict[int, Tensor] = field(default_factory=dict)
    """Stage 4 by layer index, where it was asked for: ``[doc, head * dim]``."""

    def on_cpu(self) -> Rows:
        """A copy; from a GPU into pinned memory, where it may be read once the GPU has come so far."""

        def copied(rows: dict[int, Tensor]) -> dict[int, Tensor]:
            return {layer: row.to("cpu", non_blocking=row.is_cuda) for layer, row in rows.items()}

        output = None if self.output is None else self.output.to("cpu", non_blocking=self.output.is_cuda)
        found = (copied(rows) for rows in (self.attention, self.projected, self.blocks, self.shares))
        attention, projected, blocks, shares = found
        return Rows(attention, projected, output, blocks, shares)


class HeadExtractor:
    """Reads head vectors out of a loaded model at the given layer indices (from 0).

    ``layers`` and ``pooling`` may be set after the model's shape and causality are known. With ``blocks`` the output of
    every one of those layers is read too, and not the model's alone. With ``shares`` there is stage 4.
    """

    def __init__(
        self,
        model: nn.Module,
        layers: Sequence[int] = (),
        pooling: str = "mean",
        blocks: bool = False,
        shares: bool = False,
    ) -> None:
        self.model = model
        self.family: Family = family_of(model)
        self.shape = shape_of(model, self.family)
        self.layers = tuple(layers)
        self.pooling = pooling
        self.blocks = blocks
        self.shares = shares
        self.causal = _is_causal(model)

    def __call__(self, ids: Tensor, mask: Tensor) -> Rows:
        """Head vectors of a padded batch; ``ids`` and ``mask`` are ``[doc, token]``, padding on either side.

        The mask may be on the CPU while the ids are on a GPU: then nothing here waits for the GPU.
        """
        arguments = self.arguments(mask)
        for name in {"attention_mask", "position_ids"} & arguments.keys():
            arguments[name] = arguments[name].to(ids.device, non_blocking=True)
        return self._read(Pool(self.pooling, mask, ids.device), input_ids=ids, **arguments)

    def packed(self, ids: Sequence[Sequence[int]]) -> Rows:
        """The same of documents' tokens without padding; see core/model/packing.py."""
        arguments = packed_arguments(self.model, self.family, ids)
        pool = PackedPool(self.pooling, [len(row) for row in ids], arguments["input_ids"].device)
        with packed_attention(self.model):
            return self._read(pool, **arguments)

    def _read(self, pool: Pool, **arguments: Any) -> Rows:
        import torch

        rows = Rows()
        layers = self.layers if self.shares else ()
        with torch.inference_mode(), self._hooks(pool, rows), ExitStack() as stack:
            recording = stack.enter_context(self.stream.recorded(pool, layers)) if layers else None
            hidden = self.model(**arguments).last_hidden_state
            rows.output = pool(hidden)
            if recording is not None:
                rows.shares = {layer: self.stream.coordinates(recording, layer) for layer in layers}
        return rows

    @cached_property
    def stream(self) -> ResidualStream:
        """The way from the heads to the output; a model without exact shares is refused."""
        return ResidualStream(self.model, self.family, self.shape)

    def arguments(self, mask: Tensor) -> dict[str, Any]:
        """What the model is told beside the ids of a batch with this mask."""
        arguments: dict[str, Any] = {}
        padded = not bool(mask.all())
        left = padded and not bool(mask[:, 0].all())
        if padded and (left or not self.causal):
            arguments["attention_mask"] = mask
        # No mask for a causal model with padding on the right: no real token sees what comes after it, and attention
        # without a mask takes SDPA's fast causal path.
        if left and not self.family.counts_positions:
            arguments["position_ids"] = (mask.cumsum(dim=1) - 1).clamp(min=0)
        if hasattr(self.model.config, "use_cache"):
            arguments["use_cache"] = False
        return arguments

    @contextmanager
    def _hooks(self, pool: Pool, rows: Rows) -> Iterator[None]:
        last = self.shape.layers - 1
        with ExitStack() as stack:
            for layer in {*self.layers, last} if pool.shortens else set(self.layers):
                shorten = pool.shortens and layer == last
                projection = self.model.get_submodule(self.family.projection.format(layer))
                before, after = _projection_hooks(layer, layer in self.layers, shorten, pool, rows)
                stack.callback(projection.register_forward_pre_hook(before).remove)
                stack.callback(projection.register_forward_hook(after).remove)
            if pool.shortens:
                # The shortcut: after the last layer's attention only the pooled token's row goes on. The residual sums
                # broadcast it over all tokens; its own row is right, and no other is read.
                mlp = self.model.get_submodule(self.family.mlp.format(last))
                shortened = mlp.register_forward_pre_hook(lambda _, args: (pool.keep_row(args[0]), *args[1:]))
                stack.callback(shortened.remove)
            # Not of the last layer: its block may have been shortened, and stage 3 is there after the final norm.
            for layer in {*self.layers} - {last} if self.blocks else ():
                block = self.model.get_submodule(self.family.block.format(layer))
                stack.callback(block.register_forward_hook(_block_hook(layer, pool, rows)).remove)
            yield


def _projection_hooks(layer: int, wanted: bool, shorten: bool, pool: Pool, rows: Rows) -> tuple[Any, Any]:
    def before(module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
        tokens = pool.keep_row(args[0]) if shorten else args[0]
        if wanted:
            rows.attention[layer] = pool(tokens)
        return (tokens, *args[1:]) if shorten else None

    def after(module: nn.Module, args: tuple[Tensor, ...], tokens: Tensor) -> None:
        if wanted:
            rows.projected[layer] = pool(tokens)

    return before, after


def _block_hook(layer: int, pool: Pool, rows: Rows) -> Any:
    def after(module: nn.Module, args: tuple[Tensor, ...], found: Tensor | tuple[Tensor, ...]) -> None:
        rows.blocks[layer] = pool(found[0] if isinstance(found, tuple) else found)

    return after


def _is_causal(model: nn.Module) -> bool:
    """Whether a token sees only those before it: tried on the model, for configurations do not say it reliably."""
    import torch

    device = next(model.parameters()).device
    ids = torch.tensor([[5, 6, 7, 8], [5, 6, 7, 9]], device=device)
    with torch.inference_mode():
        first, second = model(input_ids=ids).last_hidden_state[:, 0]
    return torch.equal(first, second)  # to the bit: a wrong "no" costs a mask, a wrong "yes" would cost the truth
