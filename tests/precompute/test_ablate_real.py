"""The step ``ablate`` on real weights: the head that slices and shares name is the one that the model needs."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from core.analysis.ablation_effects import HEAD, NAMES
from core.analysis.null import BELOW
from core.model.embedder import Embedder, EmbedderConfig
from core.runs.results import read_analysis
from core.runs.run import Run
from precompute.steps.ablate import step as ablate
from precompute.steps.ablate.config import AblateConfig


@pytest.mark.slow
def test_of_the_last_layer_s_heads_head_11_alone_costs_topic_match_10_points_and_beyond_the_noise(
    demo_cache: Path, tmp_path: Path
) -> None:
    """125 documents of the demo, cut to 128 tokens; docs/ablation.md has the whole sweep: 11.7 points of 72 heads."""
    shutil.copytree(demo_cache / "demo", tmp_path / "demo")
    ablate.run(AblateConfig(tmp_path, "demo", documents=125, tokens=128, layers=(6,), random=24))
    rows = read_analysis(Run(tmp_path, "demo"), "ablation").to_pylist()
    heads = {row["head"]: row for row in rows if (row["kind"], row["measure"]) == (HEAD, NAMES)}
    assert min(heads, key=lambda head: float(heads[head]["change"])) == 11
    assert heads[11]["change"] == pytest.approx(-0.096, abs=0.017)  # 12 of 125 documents, give or take two
    assert [head for head, row in heads.items() if row["verdict"] == BELOW] == [11]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "projection", "off"),
    [
        ("all-MiniLM-L6-v2", "encoder.layer.{}.attention.output.dense", [(1, 5), (6, 11), (6, 3)]),
        ("SmolLM2-135M", "layers.{}.self_attn.o_proj", [(1, 2), (15, 4), (30, 9)]),
    ],
)
def test_ablated_embeddings_are_those_of_weights_edited_by_hand(
    name: str, projection: str, off: list[tuple[int, int]]
) -> None:
    texts = ["The tide comes in twice a day.", "Ships wait for the pilot outside the harbour, and for the flood."]
    model = Embedder.load(EmbedderConfig(model=name))
    (_, swept), *_ = [(batch, one) for batch, one in model.sweep(texts[:1], [model.without(off)])]
    ablated = model.embed(texts, change=model.without(off)).output
    plain = model.embed(texts).output
    dim = model.info.shape.head_dim
    with torch.no_grad():
        for layer, head in off:
            weights = model.extractor.model.get_submodule(projection.format(layer - 1)).weight
            weights[:, (head - 1) * dim : head * dim] = 0
    edited = model.embed(texts).output
    scale = np.abs(edited).max()
    assert np.abs(ablated - edited).max() <= 1e-5 * scale
    assert np.abs(swept.output.numpy()[0] - edited[0]).max() <= 1e-5 * scale
    assert np.abs(plain - edited).max() > 1e-3 * scale
