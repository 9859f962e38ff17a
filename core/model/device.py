"""Which device a model runs on, and in which precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from core.errors import Mistake, listed

if TYPE_CHECKING:
    import torch

PRECISIONS = ("float32", "bfloat16", "float16")

TOKEN_BUDGETS = {"cuda": 32_768, "mps": 8_192, "cpu": 2_048}
"""Tokens in a batch, padding included. On a CPU small batches stay in its caches; a GPU wants to be filled."""


def choose_device(name: str | None) -> torch.device:
    """The named device, or the best there is: CUDA, then Apple's MPS, then the CPU."""
    import torch

    if name is None:
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise Mistake(
            f"Device '{name}' cannot be used here. Choose another with --device or HEADSCOPE_DEVICE, such as cpu."
        ) from error
    return device


def choose_precision(name: str | None, device: torch.device) -> torch.dtype:
    """The named precision, or bfloat16 on CUDA (float16 where the card has no bfloat16) and float32 elsewhere."""
    import torch

    if name is None:
        if device.type != "cuda":
            return torch.float32
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    if name not in PRECISIONS:
        raise Mistake(f"Precision '{name}' is unknown. Choose one of {listed(PRECISIONS)} with --dtype.")
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def pinned(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Where ``device`` is a GPU, in memory from which a copy to it need not wait for what the GPU does."""
    return tensor.pin_memory() if device.type == "cuda" else tensor


def on_device(values: Sequence[Any], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """A tensor of ``values`` on ``device``."""
    import torch

    return pinned(torch.tensor(values, dtype=dtype), device).to(device, non_blocking=True)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether ``error`` says that a device, or the machine, had no memory left."""
    import torch

    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and ("out of memory" in text or "can't allocate memory" in text)
