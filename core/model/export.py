"""A model without some of its heads, as a folder that plain sentence-transformers loads."""

from __future__ import annotations

import copy
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import Mistake
from core.model.embedder import ModelInfo
from core.model.extract import HeadExtractor
from core.model.shape import POOLINGS

if TYPE_CHECKING:
    from torch import Tensor, nn

_WEIGHTS = (".safetensors", ".bin", ".h5", ".onnx", ".msgpack", ".ot", ".pt", ".gguf", ".py")
_RESTRICTED = re.compile(
    r"\b(nc|nd)\b|non-?commercial|no commercial|research only|no-?deriv|\bother\b|proprietary", re.IGNORECASE
)


@dataclass(frozen=True)
class Cut:
    """A model whose heads were cut out of the weights, not only set to zero."""

    model: nn.Module
    heads: int
    """That every layer has now."""
    kv_heads: int


def switch_off(extractor: HeadExtractor, off: Sequence[tuple[int, int]], means: Mapping[int, Tensor] | None) -> None:
    """Edits the model in place: the columns of heads ``off`` (layer and head from 1) in their output projection are 0.

    With ``means``, what the heads' mean outputs add goes into the projection's bias.
    """
    import torch

    dim = extractor.shape.head_dim
    with torch.no_grad():
        for layer, head in off:
            projection: Any = extractor.model.get_submodule(extractor.family.projection.format(layer - 1))
            turned = not hasattr(projection, "in_features")  # transformers' Conv1D has inputs first
            weight = projection.weight if turned else projection.weight.T
            columns = slice((head - 1) * dim, head * dim)
            if means is not None:
                if projection.bias is None:
                    raise Mistake(
                        "This model's output projection has no bias, so a head's mean cannot be stored in its "
                        'weights. Export with "how": "zero".'
                    )
                projection.bias += means[layer - 1][columns].to(weight) @ weight[columns]
            weight[columns] = 0.0


def cut_evenly(extractor: HeadExtractor, off: Sequence[tuple[int, int]]) -> Cut | None:
    """The model with heads cut out of its weights, where its configuration can say so; None where it cannot.

    Its configuration must name the head width, every layer must lose equally many heads, and equally many of every
    key/value group, or whole groups.
    """
    import torch

    shape, family = extractor.shape, extractor.family
    config: Any = extractor.model.config
    first: Any = extractor.model.get_submodule(family.attention.format(0)) if family.attention else None
    if getattr(config, "head_dim", None) != shape.head_dim or not all(
        hasattr(first, name) for name in ("q_proj", "k_proj", "v_proj", "o_proj")
    ):
        return None
    size = shape.heads // shape.kv_heads
    gone = set(off)
    kept = {
        layer: [
            [head for head in range(group * size + 1, (group + 1) * size + 1) if (layer, head) not in gone]
            for group in range(shape.kv_heads)
        ]
        for layer in range(1, shape.layers + 1)
    }
    shapes = {tuple(sorted(len(heads) for heads in groups if heads)) for groups in kept.values()}
    if len(shapes) != 1 or len(set(sizes := next(iter(shapes)))) != 1:
        return None
    small = copy.deepcopy(config)
    small.num_attention_heads, small.num_key_value_heads = sum(sizes), len(sizes)
    model = type(extractor.model)(small).to(next(extractor.model.parameters()))
    state = extractor.model.state_dict()
    for layer, groups in kept.items():
        queries = [head - 1 for heads in groups for head in heads]
        keys = [group for group, heads in enumerate(groups) if heads]
        path = family.attention.format(layer - 1)
        for name, heads in (("q_proj", queries), ("k_proj", keys), ("v_proj", keys)):
            rows = _rows(heads, shape.head_dim)
            for part in ("weight", "bias"):
                if (key := f"{path}.{name}.{part}") in state:
                    state[key] = state[key][rows]
        state[f"{path}.o_proj.weight"] = state[f"{path}.o_proj.weight"][:, _rows(queries, shape.head_dim)]
    with torch.no_grad():
        model.load_state_dict(state)
    return Cut(model.eval(), sum(sizes), len(sizes))


def _rows(heads: Sequence[int], dim: int) -> list[int]:
    return [head * dim + at for head in heads for at in range(dim)]


def write_model(model: nn.Module, source: Path, info: ModelInfo, pad: str, folder: Path) -> None:
    """The model's files: its own tokenizer and modules from ``source``, and how the run used it."""
    folder.mkdir(parents=True)
    for path in sorted(source.iterdir()):
        if path.is_file() and path.suffix in (".json", ".txt", ".model", ".jinja") and path.name != "data_config.json":
            shutil.copyfile(path, folder / path.name)
        if path.is_file() and path.name.upper().startswith(("LICENSE", "LICENCE", "NOTICE")):
            shutil.copyfile(path, folder / path.name)
    for leftover in folder.glob("*.index.json"):
        leftover.unlink()
    saved: Any = model
    saved.save_pretrained(folder)
    modules = _modules(source)
    for module in modules:
        if module["path"] and (source / module["path"]).is_dir():
            shutil.copytree(source / module["path"], folder / module["path"], dirs_exist_ok=True)
        elif module["path"]:
            (folder / module["path"]).mkdir(exist_ok=True)
    _write(folder / "modules.json", modules)
    pooling = next(module["path"] for module in modules if module["type"].endswith(".Pooling"))
    flags = {"cls": "cls_token", "mean": "mean_tokens", "lasttoken": "lasttoken"}
    chosen = flags[POOLINGS[info.pooling]]
    all_flags = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")
    _write(
        folder / pooling / "config.json",
        {
            "word_embedding_dimension": info.shape.hidden,
            **{f"pooling_mode_{flag}": flag == chosen for flag in all_flags},
            "include_prompt": True,
        },
    )
    _write(folder / "sentence_bert_config.json", {"max_seq_length": info.max_tokens, "do_lower_case": False})
    prompts = {"query": info.query_prompt, "document": info.prompt}
    _write(
        folder / "config_sentence_transformers.json",
        {
            "prompts": prompts,
            "default_prompt_name": "document" if info.prompt else None,
            "similarity_fn_name": "cosine",
        },
    )
    tokenizer = folder / "tokenizer_config.json"
    settings = json.loads(tokenizer.read_text(encoding="utf-8")) if tokenizer.is_file() else {}
    if not settings.get("pad_token"):  # sentence-transformers pads a batch, and refuses to without
        _write(tokenizer, {**settings, "pad_token": pad})


def _modules(source: Path) -> list[dict[str, Any]]:
    """The model's own modules; where it has none, its transformer, pooling and normalising."""
    path = source / "modules.json"
    if path.is_file():
        found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        return found
    kinds = ("Transformer", "Pooling", "Normalize")
    return [
        {
            "idx": at,
            "name": str(at),
            "path": f"{at}_{kind}" if at else "",
            "type": f"sentence_transformers.models.{kind}",
        }
        for at, kind in enumerate(kinds)
    ]


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def licence_of(source: Path, preset: str | None) -> str:
    """As the preset or the model's own card says it; empty where neither does."""
    card = source / "README.md"
    if card.is_file() and (
        found := re.search(r"^licen[sc]e:\s*(\S.*)$", card.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    ):
        own = found[1].strip().strip("\"'")[:200]
        return preset if preset else own
    return preset or ""


def check_licence(licence: str, accepted: bool) -> None:
    """Quotes a licence that may forbid a changed copy of the model, and leaves the decision to the person."""
    if accepted or (licence and not _RESTRICTED.search(licence)):
        return
    said = f'is "{licence}"' if licence else "is not stated in its files"
    raise Mistake(
        f"The model's licence {said}: it may not allow a changed copy, or only for some uses. Read it, and if your use "
        "is allowed, add --accept-licence."
    )
