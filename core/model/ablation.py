"""Heads replaced inside the forward pass, before the output projection: by zeros, a mean, or another text's output."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.errors import Mistake
from core.model.extract import HeadExtractor
from core.model.stages import check_head

if TYPE_CHECKING:
    from torch import Tensor, nn

    from core.model.shape import ModelShape

Change = Mapping[int, Callable[["Tensor"], "Tensor"]]
"""By layer index: a function of all heads' outputs there, ``[doc, token, head * dim]``, which it does not modify."""
Heads = Iterable[tuple[int, int]]
"""Layer and head, both from 0."""


def without(heads: Heads, shape: ModelShape, instead: Mapping[int, Tensor] | None = None) -> Change:
    """Switches heads off by zeros, or by what ``instead`` has for their layer.

    That is ``[head * dim]`` (see ``mean_outputs``), or ``[token, head * dim]`` (see ``outputs_of``, for one text).
    """
    by_layer: dict[int, list[int]] = defaultdict(list)
    for layer, head in heads:
        by_layer[shape.layer_index(layer + 1)].append(check_head(head + 1, shape.heads) - 1)
    return {layer: _off(chosen, shape, (instead or {}).get(layer)) for layer, chosen in by_layer.items()}


def _off(heads: Sequence[int], shape: ModelShape, instead: Tensor | None) -> Callable[[Tensor], Tensor]:
    def change(outputs: Tensor) -> Tensor:
        if instead is not None and instead.ndim == 2 and instead.shape[0] != outputs.shape[1]:
            raise Mistake(
                f"The other text has {instead.shape[0]} tokens and this one {outputs.shape[1]}: a head's output can "
                "only be taken from a text of the same length. Use its mean over tokens."
            )
        outputs = outputs.clone()
        for head in heads:
            columns = slice(head * shape.head_dim, (head + 1) * shape.head_dim)
            outputs[..., columns] = 0.0 if instead is None else instead[..., columns].to(outputs)
        return outputs

    return change


def random_direction(
    layer: int, head: int | Sequence[int], shape: ModelShape, seed: int, instead: Mapping[int, Tensor] | None = None
) -> Change:
    """The control of switching a head (or several) off: as much is removed at every token, but in a random direction.

    The head's output, less what ``instead`` has for its layer (``mean_outputs``), is turned into a random subspace of
    all heads' outputs and subtracted from them.
    """
    import torch

    heads = [head] if isinstance(head, int) else list(head)
    generator = torch.Generator().manual_seed(seed)
    width = shape.heads * shape.head_dim
    size = len(heads) * shape.head_dim
    turn = torch.linalg.qr(torch.randn(width, size, generator=generator, dtype=torch.float64))[0].T
    columns = torch.cat([torch.arange(one * shape.head_dim, (one + 1) * shape.head_dim) for one in heads])

    def change(outputs: Tensor) -> Tensor:
        removed = outputs[..., columns]
        if instead is not None:
            removed = removed - instead[layer][columns].to(outputs)
        return outputs - removed @ turn.to(outputs)

    return {layer: change}


def mean_outputs(extractor: HeadExtractor, batches: Iterable[tuple[Tensor, Tensor]]) -> dict[int, Tensor]:
    """Every layer's mean output of its heads, ``[head * dim]``, over reference texts (``ids``, ``mask``).

    The mean over a text's tokens, then over texts, in whatever way the model pools.
    """
    import torch

    reader = HeadExtractor(extractor.model, range(extractor.shape.layers), "mean")
    rows = [reader(ids, mask).attention for ids, mask in batches]
    return {layer: torch.cat([row[layer] for row in rows]).mean(dim=0) for layer in reader.layers}


def outputs_of(extractor: HeadExtractor, ids: Sequence[int]) -> dict[int, Tensor]:
    """Every layer's outputs of its heads in one text, ``[token, head * dim]``: to be patched into another."""
    import torch

    seen: dict[int, Tensor] = {}

    def keep(layer: int) -> Callable[[Tensor], Tensor]:
        def change(outputs: Tensor) -> Tensor:
            seen[layer] = outputs[0].clone()
            return outputs

        return change

    row = torch.tensor([list(ids)], device=next(extractor.model.parameters()).device)
    with ablated(extractor, {layer: keep(layer) for layer in range(extractor.shape.layers)}), torch.inference_mode():
        extractor.model(input_ids=row, **extractor.arguments(torch.ones_like(row)))
    return seen


@contextmanager
def ablated(extractor: HeadExtractor, *changes: Change) -> Iterator[None]:
    """All that the model computes meanwhile has ``changes``; of several, each has an equal part of every batch."""

    def before(layer: int) -> Any:
        def change(module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            import torch

            parts = args[0].chunk(len(changes))
            changed = [one[layer](part) if layer in one else part for one, part in zip(changes, parts, strict=True)]
            return (changed[0] if len(changed) == 1 else torch.cat(changed), *args[1:])

        return change

    with ExitStack() as stack:
        for layer in {layer for change in changes for layer in change}:
            projection = extractor.model.get_submodule(extractor.family.projection.format(layer))
            # First of all hooks: what the extractor reads there is changed already.
            stack.callback(projection.register_forward_pre_hook(before(layer), prepend=True).remove)
        yield


@dataclass(frozen=True)
class Swept:
    """One change's effect on one batch."""

    change: int
    """Its index in what was asked for."""
    output: Tensor
    """Stage 3: ``[doc, hidden]``."""


def sweep(
    extractor: HeadExtractor, ids: Tensor, mask: Tensor, changes: Sequence[Change], token_budget: int = 8_192
) -> Iterator[Swept]:
    """Stage 3 of a batch under each of many changes, in the order of the first layer that each changes.

    Up to that layer's attention the forward pass is shared. What enters a layer is computed once, for all changes that
    begin there; at no time is it in memory for more than one layer. As many changes go through the model side by side
    as ``token_budget`` allows.
    """
    import torch

    by_layer: dict[int, list[int]] = defaultdict(list)
    for index, change in enumerate(changes):
        by_layer[min(change)].append(index)
    at_once = max(1, token_budget // ids.numel())
    plain = HeadExtractor(extractor.model, (), extractor.pooling)
    replay = _Replay(plain)
    hidden: Tensor | None = None
    for layer in range(max(by_layer, default=-1) + 1):
        with torch.inference_mode():
            after, heads = replay.one_layer(ids, mask, layer, hidden)
        for start in range(0, len(by_layer[layer]), at_once):
            some = by_layer[layer][start : start + at_once]
            copies = len(some)
            with (
                replay.from_layer(layer, _repeated(hidden, copies), _repeated(heads, copies)),
                ablated(plain, *(changes[index] for index in some)),
            ):
                output = plain(_repeated(ids, copies), _repeated(mask, copies)).output
            assert output is not None
            for index, rows in zip(some, output.chunk(copies), strict=True):
                yield Swept(index, rows)
        hidden = after


def _repeated(rows: Any, copies: int) -> Any:
    return rows if rows is None or copies == 1 else rows.repeat(copies, *[1] * (rows.ndim - 1))


class _Replay:
    """Runs part of a model's layers: the others hand on what they are given, or what is put in their place."""

    def __init__(self, extractor: HeadExtractor) -> None:
        import torch

        self._extractor = extractor
        self._model: Any = extractor.model
        self._family = extractor.family
        if not self._family.attention:
            config: Any = extractor.model.config
            raise Mistake(
                f"The row of '{config.model_type}' in core/model/families.py does not say which module "
                "computes attention. Add it there."
            )
        self._blocks = [self._module(self._family.block, layer) for layer in range(extractor.shape.layers)]
        self._returns_tuple = False

        def note_type(module: nn.Module, args: Any, out: Any) -> None:
            self._returns_tuple = isinstance(out, tuple)

        handle = self._blocks[0].register_forward_hook(note_type)
        with torch.inference_mode():
            ids = torch.tensor([[5, 6]], device=next(self._model.parameters()).device)
            self._model(input_ids=ids)
        handle.remove()

    def _module(self, path: str, layer: int) -> Any:
        return self._model.get_submodule(path.format(layer))

    def one_layer(self, ids: Tensor, mask: Tensor, layer: int, hidden: Tensor | None) -> tuple[Tensor, Tensor]:
        """What leaves a layer that ``hidden`` enters, and its heads' outputs, both ``[doc, token, width]``."""
        seen: dict[str, Tensor] = {}
        with ExitStack() as stack:
            for index, block in enumerate(self._blocks):
                if index != layer:
                    stack.enter_context(self._handing_on(block, hidden if index == layer - 1 else None))
            projection = self._module(self._family.projection, layer)
            before = projection.register_forward_pre_hook(lambda m, args: seen.update(heads=args[0]))
            stack.callback(before.remove)
            after = self._blocks[layer].register_forward_hook(
                lambda m, args, out: seen.update(hidden=out[0] if isinstance(out, tuple) else out)
            )
            stack.callback(after.remove)
            self._model(input_ids=ids, **self._extractor.arguments(mask))
        return seen["hidden"], seen["heads"]

    @contextmanager
    def from_layer(self, layer: int, hidden: Tensor | None, heads: Tensor) -> Iterator[None]:
        """The model begins with the output projection of ``layer``, which ``hidden`` enters."""
        projection = self._module(self._family.projection, layer)
        inside = self._family.projection.startswith(f"{self._family.attention}.")

        def attention(*args: Any, **kwargs: Any) -> tuple[Tensor, None]:
            return (projection(heads) if inside else heads), None

        with ExitStack() as stack:
            for index, block in enumerate(self._blocks[:layer]):
                stack.enter_context(self._handing_on(block, hidden if index == layer - 1 else None))
            stack.enter_context(_forward_of(self._module(self._family.attention, layer), attention))
            yield

    def _handing_on(self, block: nn.Module, instead: Tensor | None) -> Any:
        def forward(*args: Any, **kwargs: Any) -> Any:
            hidden = instead if instead is not None else args[0] if args else kwargs["hidden_states"]
            return (hidden,) if self._returns_tuple else hidden

        return _forward_of(block, forward)


@contextmanager
def _forward_of(module: Any, forward: Callable[..., Any]) -> Iterator[None]:
    """The module computes something else meanwhile."""
    module.forward = forward
    try:
        yield
    finally:
        del module.forward
