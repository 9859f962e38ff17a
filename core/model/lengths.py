"""How many tokens of a text a model takes."""

from __future__ import annotations

from typing import Any

from core.errors import Mistake

_WITHIN_REASON = 2_048
"""Where nobody says how long a text may be, and the model's positions have no end in sight."""
_OFFSET_POSITIONS = ("roberta", "xlm-roberta", "mpnet")
"""These count positions from their padding index up, so that two rows of the table are never reached."""


def choose_max_tokens(asked: int | None, known: int | None, model: Any, tokenizer: Any) -> int:
    """What was asked for, else what the preset or the model's files say, else what its positions allow."""
    learned = _learned_positions(model)
    if asked is not None:
        if learned is not None and asked > learned:
            raise Mistake(f"--max-tokens {asked} is more than this model's {learned} positions. Give a smaller number.")
        return asked
    if known is not None:
        return known
    return int(min(tokenizer.model_max_length, learned or _WITHIN_REASON, _WITHIN_REASON))


def _learned_positions(model: Any) -> int | None:
    """Rows of the table of positions, for models that have one; rotary and relative positions have no end."""
    import torch

    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Embedding) and name.endswith(("position_embeddings", "wpe")):
            return int(module.num_embeddings) - (2 if model.config.model_type in _OFFSET_POSITIONS else 0)
    return None
