"""The step ``ablate`` on real weights: the head that slices and shares name is the one that the model needs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from core.analysis.ablation_effects import HEAD, NAMES
from core.analysis.null import BELOW
from core.runs.results import read_analysis
from core.runs.run import Run
from precompute.steps.ablate import step as ablate
from precompute.steps.ablate.config import AblateConfig


@pytest.mark.slow
def test_of_the_last_layer_s_heads_head_11_alone_costs_topic_match_beyond_the_noise(
    demo_cache: Path, tmp_path: Path
) -> None:
    """125 documents of the demo, cut to 128 tokens; ``make bench-ablation`` and the README have the whole sweep."""
    shutil.copytree(demo_cache / "demo", tmp_path / "demo")
    ablate.run(AblateConfig(tmp_path, "demo", documents=125, tokens=128, layers=(6,), random=24))
    rows = read_analysis(Run(tmp_path, "demo"), "ablation").to_pylist()
    heads = {row["head"]: row for row in rows if (row["kind"], row["measure"]) == (HEAD, NAMES)}
    assert min(heads, key=lambda head: float(heads[head]["change"])) == 11
    assert [head for head, row in heads.items() if row["verdict"] == BELOW] == [11]
