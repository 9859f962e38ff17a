"""Where each model family keeps its attention, projection and norms: the one table to extend for a new family."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from core.errors import Mistake, listed
from core.model.shape import ModelShape

if TYPE_CHECKING:
    from torch import Tensor, nn


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
    attention: str = ""
    """Computes attention; its result is a tuple that begins with the heads' outputs, or with the projection's output
    where the projection is part of it."""
    values: str = ""
    """Its output holds the value vectors."""
    values_layout: str = "own"
    """A key of VALUE_LAYOUTS: where in that output they are."""
    mlp_output: str = ""
    """Its output is what the feed-forward block adds to the residual stream."""
    stream_norms: tuple[str, ...] = ()
    """Norms that the residual stream itself passes, in order; those with ``{}`` come in every layer. A post-norm layer
    has one after each of its two sums, a pre-norm model has only the final norm."""
    attention_norm: str | None = None
    """A norm between the output projection and the residual sum (a sandwich norm)."""
    gain_offset: float = 0.0
    """Added to the norms' weights (Gemma multiplies by 1 + weight)."""
    packs: bool = True
    """Its attention can be replaced by that of core/model/packing.py: no soft cap, no bias of positions."""

    @property
    def block(self) -> str:
        """The whole layer, attention and what follows it: what comes out of it is stage 3 of a layer but the last."""
        return self.projection[: self.projection.index("{}") + 2]


_DECODER = Family(
    "layers.{}.self_attn.o_proj",
    "layers.{}.mlp",
    attention="layers.{}.self_attn",
    values="layers.{}.self_attn.v_proj",
    mlp_output="layers.{}.mlp",
    stream_norms=("norm",),
)
_GEMMA = replace(
    _DECODER,
    needs_begin_token=True,
    mlp_output="layers.{}.post_feedforward_layernorm",
    attention_norm="layers.{}.post_attention_layernorm",
    gain_offset=1.0,
)
_BERT = Family(
    "encoder.layer.{}.attention.output.dense",
    "encoder.layer.{}.intermediate",
    attention="encoder.layer.{}.attention.self",
    values="encoder.layer.{}.attention.self.value",
    mlp_output="encoder.layer.{}.output.dense",
    stream_norms=("encoder.layer.{}.attention.output.LayerNorm", "encoder.layer.{}.output.LayerNorm"),
)
_ROBERTA = replace(_BERT, counts_positions=True)

FAMILIES: dict[str, Family] = {  # by the configuration's model_type
    "mistral": _DECODER,
    "llama": _DECODER,
    "qwen2": _DECODER,
    "qwen3": _DECODER,
    "phi3": replace(_DECODER, values="layers.{}.self_attn.qkv_proj", values_layout="last columns"),
    "gemma2": replace(_GEMMA, packs=False),
    "gemma3_text": _GEMMA,
    "olmo2": replace(  # no norm before a block, one after it
        _DECODER,
        mlp_output="layers.{}.post_feedforward_layernorm",
        attention_norm="layers.{}.post_attention_layernorm",
    ),
    # Whether its two blocks run in parallel or one after the other, both add to the same residual stream.
    "gpt_neox": Family(
        "layers.{}.attention.dense",
        "layers.{}.mlp",
        attention="layers.{}.attention",
        values="layers.{}.attention.query_key_value",
        values_layout="interleaved",
        mlp_output="layers.{}.mlp",
        stream_norms=("final_layer_norm",),
    ),
    "gpt2": Family(
        "h.{}.attn.c_proj",
        "h.{}.mlp",
        attention="h.{}.attn",
        values="h.{}.attn.c_attn",
        values_layout="last columns",
        mlp_output="h.{}.mlp",
        stream_norms=("ln_f",),
    ),
    "bert": _BERT,
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "mpnet": Family(
        "encoder.layer.{}.attention.attn.o",
        "encoder.layer.{}.intermediate",
        counts_positions=True,
        attention="encoder.layer.{}.attention.attn",
        values="encoder.layer.{}.attention.attn.v",
        mlp_output="encoder.layer.{}.output.dense",
        stream_norms=("encoder.layer.{}.attention.LayerNorm", "encoder.layer.{}.output.LayerNorm"),
        packs=False,
    ),
    "modernbert": Family(
        "layers.{}.attn.Wo",
        "layers.{}.mlp",
        attention="layers.{}.attn",
        values="layers.{}.attn.Wqkv",
        values_layout="last columns",
        mlp_output="layers.{}.mlp",
        stream_norms=("final_norm",),
    ),
    "distilbert": Family(
        "transformer.layer.{}.attention.out_lin",
        "transformer.layer.{}.ffn",
        attention="transformer.layer.{}.attention",
        values="transformer.layer.{}.attention.v_lin",
        mlp_output="transformer.layer.{}.ffn",
        stream_norms=("transformer.layer.{}.sa_layer_norm", "transformer.layer.{}.output_layer_norm"),
    ),
}


def _own(out: Tensor, shape: ModelShape) -> Tensor:
    return out.unflatten(-1, (shape.kv_heads, shape.head_dim))


VALUE_LAYOUTS: dict[str, Callable[[Tensor, ModelShape], Tensor]] = {
    # ``[…, width]`` -> ``[…, kv_head, dim]``
    "own": _own,
    "last columns": lambda out, shape: _own(out[..., -shape.kv_heads * shape.head_dim :], shape),
    "interleaved": lambda out, shape: out.unflatten(-1, (shape.heads, 3, shape.head_dim))[..., 2, :],
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
            "evenly: it is not the heads' output projection. Fix this family's row in core/model/families.py."
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
