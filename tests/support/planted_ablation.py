"""A run's tables of ablation, planted: one head that matters, one whose removal helps, and noise."""

from __future__ import annotations

import numpy as np

from core.runs.parts import write_table
from core.runs.run import Run
from core.runs.schema import ANALYSIS
from precompute.job.step import Rows, StepRecord, add, as_table
from precompute.steps.ablate.tables import with_noise

DRAWS = 6
LOSS, GAIN = -0.1, 0.08


def _pruning() -> Rows:
    """Up to three heads off: two of them for nothing, the third at a price; in random order all at a price."""
    rows: Rows = {}
    for order, lost in (("greedy", (0.0, 0.01, -0.002, -0.1)), ("angle", (0.0, 0.0, -0.05, -0.1))):
        for size, value in enumerate(lost):
            own = order == "greedy"
            add(
                rows,
                order=order,
                removed=size,
                off_layers=[1] * size if own else None,
                off_heads=list(range(1, size + 1)) if own else None,
                enough=own and size == 2,
                value=0.7 + value,
                low=0.65 + value,
                high=0.75 + value,
                lost=value,
                lost_low=value - 0.01,
                lost_high=value + 0.01,
            )
    for size in range(4):
        value = -0.06 * size
        add(
            rows,
            order="random",
            removed=size,
            off_layers=None,
            off_heads=None,
            enough=False,
            value=0.7 + value,
            low=0.68 + value,
            high=0.72 + value,
            lost=value,
            lost_low=value - 0.02,
            lost_high=value + 0.02,
        )
    return rows


def planted_ablation(run: Run, loses: tuple[int, int] = (6, 11), gains: tuple[int, int] = (2, 3)) -> None:
    """``loses`` costs 10 points of topic match by names, ``gains`` improves it by 8; documents 0 to 9 move most."""
    shape, chance = run.manifest().shape, np.random.default_rng(0)
    topics = run.documents(["topic"])["topic"].unique().to_pylist()[:2]
    rows: Rows = {}
    noise: Rows = {}
    moved: Rows = {}
    for layer in range(1, shape.layers + 1):
        units = [("head", head) for head in range(1, shape.heads + 1)] + [("layer", 0)]
        units += [("group", one + 1) for one in range(shape.kv_heads)] if 1 < shape.kv_heads < shape.heads else []
        for kind, head in units:
            for measure, scale in (("names", 0.005), ("angle", 1.0)):
                change = float(chance.normal(0, scale)) if measure == "names" else 2 + float(chance.uniform())
                if measure == "names" and kind == "head":
                    change = {loses: LOSS, gains: GAIN}.get((layer, head), change)
                plain = 0.6 if measure == "names" else 0.0
                add(
                    rows,
                    layer=layer,
                    kind=kind,
                    head=head,
                    measure=measure,
                    documents=200,
                    plain=plain,
                    value=plain + change,
                    change=change,
                    low=change - 0.02,
                    high=change + 0.02,
                    **dict.fromkeys(("noise", "noise_low", "noise_high", "p", "p_adjusted", "verdict")),
                )
        for kind in {kind for kind, _ in units if kind != "layer"}:
            for draw in range(1, DRAWS + 1):
                for measure, value in (("names", chance.normal(0, 0.005)), ("angle", 2 + chance.uniform())):
                    add(noise, layer=layer, kind=kind, draw=draw, measure=measure, change=float(value))
        for head in range(1, shape.heads + 1):
            for place in range(1, 4):
                add(
                    moved,
                    layer=layer,
                    head=head,
                    place=place,
                    doc=place - 1,
                    angle=20.0 - place,
                    before=[3, 4],
                    after=[4, 5],
                    topic_before=topics[0],
                    topic_after=topics[-1],
                )
    tables = {
        "ablation": with_noise(
            as_table(rows, ANALYSIS["ablation"]), drawn := as_table(noise, ANALYSIS["ablation_noise"])
        ),
        "ablation_noise": drawn,
        "ablation_moved": as_table(moved, ANALYSIS["ablation_moved"]),
        "ablation_pruning": as_table(_pruning(), ANALYSIS["ablation_pruning"]),
    }
    record = StepRecord(run, "ablate", run.manifest(), "planted", {"documents": 200})
    for name, table in tables.items():
        write_table(run.analysis_path(name), table, "planted")
    counts = {"documents": 200, "layers": shape.layers, "heads": shape.layers * shape.heads, "labelled": 200}
    record.finish({**counts, "topics": len(topics), "unlabelled": 0, "queries": 0})
