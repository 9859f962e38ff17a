"""How many heads of untrained models get a type, from experiments and from documents: the rate of false alarms.

python -m benchmarks.false_types MODEL [SEEDS]
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

from core.analysis.conllu import read_treebank
from core.model.embedder import Embedder, EmbedderConfig, Untrained
from precompute.steps.attention.experiments import Experiments, claims_of, relation_rows, score_rows
from precompute.steps.attention.parts import AttentionWork, attention_sums, read_texts
from precompute.steps.attention.repeated import repeated_scores
from precompute.steps.attention.tables import Collected, attention_rows
from precompute.steps.attention.treebank import read_parts
from tests.support.peer import demo_texts

DOCUMENTS, TOKENS = 60, 256


def main(model: str, seeds: int) -> None:
    for seed in range(seeds):
        twin = Embedder.load(EmbedderConfig(model=model), untrained=Untrained(seed, lambda parameters, device: None))
        shape = twin.info.shape
        with tempfile.TemporaryDirectory() as folder:
            work = AttentionWork(twin, shape, Path(folder), "untrained")
            reading = read_parts(work, read_treebank(), 0, lambda fraction, message: None)
            found = Experiments(shape, repeated_scores(work, 0), reading, [])
            scores = score_rows(found, np.zeros((shape.layers, shape.heads)))
            relations = relation_rows(found, 0)
            claims = claims_of(scores, relations)
            collected = Collected(shape)
            for text in read_texts(twin, demo_texts()[:DOCUMENTS], TOKENS):
                collected.add(attention_sums(work, text))
        types = Counter(type_ for of_head in claims.values() for type_ in of_head)
        by_rules = Counter(name for names in attention_rows(collected, 0, claims)["types"] for name in names)
        single = np.array(relations["p"])
        print(
            f"{model}, seed {seed}: {shape.layers * shape.heads} heads, types {dict(types)}; relations beyond before "
            f"adjustment (p < 0.05) {(single < 0.05).sum()} of {len(single)}, after {sum(relations['beyond'])}; "
            f"largest induction {max(scores['induction']):.3f}, duplicate {max(scores['duplicate']):.3f}, similarity "
            f"{max(scores['similarity']):.3f}; similarity beyond exchanged words (adjusted) "
            f"{(np.array(scores['similarity_p']) < 0.05).sum()}; in {DOCUMENTS} documents {dict(by_rules)}"
        )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1)
