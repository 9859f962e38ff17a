"""int8 against float16 on the demo with the default model: ``python -m benchmarks.storage``.

The same corpus in two runs: what they take on the disk, what the study's figures become, how many of a document's ten
nearest stay the same in the full embedding and in each head, and how far activations move.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np

from core.analysis.probe import BY_DOCUMENT
from core.analysis.similarity import unit
from core.model.stages import HEADS, split_heads
from core.runs.results import read_tables
from core.runs.run import Run
from core.runs.schema import STORED_AS
from core.runs.tables import Tables
from precompute.job.storage import Storage
from precompute.steps.analyse import step as analyse
from precompute.steps.embed.step import EmbedConfig, run

NEAREST = 10


def make(cache: Path, dtype: str) -> Run:
    run(EmbedConfig(cache, dtype, storage=Storage(dtype=dtype)))
    analyse.run(analyse.AnalyseConfig(cache, dtype))
    return Run(cache, dtype)


def nearest(vectors: np.ndarray) -> np.ndarray:
    """``[doc, NEAREST]`` of ``vectors[doc, dim]``, the document itself left out."""
    cosines = unit(vectors) @ unit(vectors).T
    np.fill_diagonal(cosines, -2)
    return np.argsort(-cosines, axis=1)[:, :NEAREST]


def shared(first: np.ndarray, second: np.ndarray) -> float:
    """The share of each document's nearest that both have."""
    pairs = zip(nearest(first).tolist(), nearest(second).tolist(), strict=True)
    return float(np.mean([len(set(one) & set(other)) / NEAREST for one, other in pairs]))


def figures(tables: Tables, stage: int) -> dict[str, float]:
    match = tables.one("topic_match", stage=stage, slicing=HEADS, method="full", within=1)
    probe = tables.one("probe", stage=stage, slicing=HEADS, split=BY_DOCUMENT, head=0)
    assert match is not None
    assert probe is not None
    return {"topic match": match["rate"], "probe by document": probe["value"]}


def compare(runs: list[Run], stage: int) -> dict[str, Any]:
    """What int8 changes at one stage."""
    shape = runs[0].manifest().shape
    wide, small = (np.concatenate(list(one.vectors(stage))).astype(np.float32) for one in runs)
    by_head = [split_heads(one, stage, shape) for one in (wide, small)]
    heads = [shared(by_head[0][:, head], by_head[1][:, head]) for head in range(shape.heads)]
    long, short = (np.linalg.norm(one, axis=2) for one in by_head)
    return {
        **{one.name: figures(read_tables(one), stage) for one in runs},
        "nearest ten shared, full": round(shared(wide, small), 4),
        "nearest ten shared, heads": (round(min(heads), 4), round(float(np.mean(heads)), 4)),
        "activation moves by at most": round(float(np.abs(short / long - 1).max()), 4),
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        runs = [make(Path(folder), dtype) for dtype in STORED_AS]
        for one in runs:
            print(f"{one.name}: {one.bytes('heads'):,} bytes of vectors, {one.bytes():,} in all")
        for stage in runs[0].manifest().stages:
            print(f"stage {stage}: {compare(runs, stage)}")


if __name__ == "__main__":
    main()
