"""Where each model family keeps the attention block's output projection: the one table to extend for a new family."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.errors import Mistake, listed
from core.model.shape import ModelShape

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Family:
    """Module paths inside the bare model (what ``AutoModel`` returns), ``{}`` standing for the layer's index."""

    projection: str
    """Its input is stage 1 (the heads' outputs side by side), its output is stage 2."""
    mlp: str
    """The first module after the attention's residual sum that works token by token: the shortcut starts here."""
    counts_positions: bool = False
    """The model numbers positions itself from its padding tokens (RoBERTa), so it is not told them."""
    needs_begin_token: bool = False
    """Texts without the begin-of-sequence token are out of distribution (Gemma: perplexity 1402 against 9.7)."""

    @property
    def block(self) -> str:
        """The whole layer, attention and what follows it: what comes out of it is stage 3 of a layer but the last."""
        return self.projection[: self.projection.index("{}") + 2]


_DECODER = Family("layers.{}.self_attn.o_proj", "layers.{}.mlp")
_GEMMA = Family("layers.{}.self_attn.o_proj", "layers.{}.mlp", needs_begin_token=True)
_BERT = Family("encoder.layer.{}.attention.output.dense", "encoder.layer.{}.intermediate")
_ROBERTA = Family("encoder.layer.{}.attention.output.dense", "encoder.layer.{}.intermediate", counts_positions=True)

FAMILIES: dict[str, Family] = {  # by the configuration's model_type
    "mistral": _DECODER,
    "llama": _DECODER,
    "qwen2": _DECODER,
    "qwen3": _DECODER,
    "phi3": _DECODER,
    "gemma2": _GEMMA,
    "gemma3_text": _GEMMA,
    "gpt_neox": Family("layers.{}.attention.dense", "layers.{}.mlp"),
    "gpt2": Family("h.{}.attn.c_proj", "h.{}.mlp"),
    "bert": _BERT,
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "mpnet": Family("encoder.layer.{}.attention.attn.o", "encoder.layer.{}.intermediate", counts_positions=True),
    "modernbert": Family("layers.{}.attn.Wo", "layers.{}.mlp"),
    "distilbert": Family("transformer.layer.{}.attention.out_lin", "transformer.layer.{}.ffn"),
}


def family_of(model: nn.Module) -> Family:
    """The family of a loaded model; an unknown one is refused with the row to add and where."""
    config: Any = model.config
    kind = config.model_type
    if kind in FAMILIES:
        return FAMILIES[kind]
    guess = _likely_projection(model)
    row = f'"{kind}": Family("{guess}", …)' if guess else f'"{kind}": Family("path.to.layer.{{}}.output_projection", …)'
    raise Mistake(
        f"Models of type '{kind}' are not known yet: add the row {row} to FAMILIES in core/model/families.py "
        f"(CONTRIBUTING.md, 'Add a model family'). Known: {listed(sorted(FAMILIES))}."
    )


def shape_of(model: nn.Module, family: Family) -> ModelShape:
    """The model's sizes; the head width is read off the projection itself, for configurations differ in naming it."""
    config: Any = model.config
    heads = config.num_attention_heads
    projection = model.get_submodule(family.projection.format(0))
    inputs = getattr(projection, "in_features", None) or getattr(projection, "nx", None)
    if not inputs or inputs % heads:
        raise Mistake(
            f"The module {family.projection.format(0)} takes {inputs} numbers, which {heads} heads cannot share "
            "evenly: it is not the heads' output projection. Mend this family's row in core/model/families.py."
        )
    return ModelShape(
        layers=config.num_hidden_layers,
        heads=heads,
        kv_heads=getattr(config, "num_key_value_heads", None) or heads,
        hidden=config.hidden_size,
        head_dim=inputs // heads,
    )


def _likely_projection(model: nn.Module) -> str | None:
    """The last linear map of width D → D inside each layer's attention, as a path with ``{}`` for the layer."""
    hidden = getattr(model.config, "hidden_size", None)
    layers = getattr(model.config, "num_hidden_layers", None)
    found: dict[str, int] = {}
    for name, module in model.named_modules():
        outputs = getattr(module, "out_features", None) or getattr(module, "nf", None)
        match = re.fullmatch(r"(.*?\.)(\d+)(\..*att.*)", name, flags=re.IGNORECASE)
        if match and outputs == hidden and not re.search(r"\b(q|k|v|query|key|value)", match[3].rsplit(".", 1)[-1]):
            path = f"{match[1]}{{}}{match[3]}"
            found[path] = found.get(path, 0) + 1
    complete = [path for path, count in found.items() if count == layers]
    return complete[-1] if complete else None
