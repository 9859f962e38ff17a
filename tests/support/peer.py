"""The demo corpus through sentence-transformers: what tests and benchmarks hold the embedder against."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from core.model.locate import default_models_dir, locate
from tests.support import ROOT

DEMO = ROOT / "precompute" / "demo"


def demo_texts() -> list[str]:
    """The demo corpus."""
    return [json.loads(line)["text"] for path in sorted(DEMO.glob("*.jsonl")) for line in path.open(encoding="utf-8")]


def peer(model: str, max_tokens: int) -> Any:
    """sentence-transformers with the same weights, pooling and length."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    folder = str(locate(model, default_models_dir()).folder)
    if (Path(folder) / "modules.json").is_file():
        return SentenceTransformer(folder, device="cpu")
    words = Transformer(folder, max_seq_length=max_tokens)
    pooling = Pooling(words.get_embedding_dimension(), pooling_mode="lasttoken")
    return SentenceTransformer(modules=[words, pooling, Normalize()], device="cpu")
