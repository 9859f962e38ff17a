"""From embeddings without a head to the rows of ``ablation``, ``ablation_noise`` and ``ablation_moved``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from core.analysis.ablation_effects import (
    HEAD,
    LAYER,
    MOVED,
    AblationTask,
    against_noise,
    angles,
    changes_of,
    least_spread,
    measures_in_order,
    verdicts,
)
from core.analysis.bootstrap import Interval
from core.runs.schema import ANALYSIS
from precompute.job.step import Rows, add, as_table
from precompute.steps.ablate.removals import Removal

_INTERVAL = ("change", "low", "high")


def layer_rows(
    task: AblationTask,
    plain: np.ndarray,
    swept: Iterable[tuple[Removal, np.ndarray]],
    docs: np.ndarray,
    topics: Sequence[str],
    seed: int,
) -> dict[str, Rows]:
    """One layer's rows of the three tables; what needs all layers (``with_noise``) is null yet."""
    tables: dict[str, Rows] = {"ablation": {}, "ablation_noise": {}, "ablation_moved": {}}
    before = task.measure(plain, plain)
    done: list[Removal] = []
    values: dict[str, list[np.ndarray]] = {name: [] for name in before}
    for removal, rows in swept:
        done.append(removal)
        for name, figures in task.measure(rows, plain).items():
            values[name].append(figures)
        if removal.kind == HEAD and not removal.draw:
            _add_moved(tables["ablation_moved"], removal, task, plain, rows, docs, topics)
    for name, columns in values.items():
        change = changes_of(np.stack(columns, axis=1), before[name], seed)
        mean = float(np.nanmean(before[name]))
        for at, removal in enumerate(done):
            if removal.draw:
                add(
                    tables["ablation_noise"],
                    layer=removal.layer,
                    kind=removal.kind,
                    draw=removal.draw,
                    measure=name,
                    change=change.value[at],
                )
                continue
            add(
                tables["ablation"],
                layer=removal.layer,
                kind=removal.kind,
                head=removal.head,
                measure=name,
                documents=int(np.isfinite(before[name]).sum()),
                plain=mean,
                value=mean + change.value[at],
                change=change.value[at],
                low=change.low[at],
                high=change.high[at],
                **dict.fromkeys(("noise", "noise_low", "noise_high", "p", "p_adjusted", "verdict")),
            )
    return tables


def _add_moved(
    rows: Rows,
    removal: Removal,
    task: AblationTask,
    plain: np.ndarray,
    changed: np.ndarray,
    docs: np.ndarray,
    topics: Sequence[str],
) -> None:
    moved = angles(changed[: task.docs], plain[: task.docs])
    most = np.argsort(-moved, kind="stable")[:MOVED]
    neighbours = [task.neighbours(some, most) for some in (plain, changed)]
    nearest = [task.topic_similarity(some)[most].argmax(axis=1) for some in (plain, changed)] if topics else []
    for place, doc in enumerate(most):
        add(
            rows,
            layer=removal.layer,
            head=removal.head,
            place=place + 1,
            doc=int(docs[doc]),
            angle=moved[doc],
            before=[int(docs[other]) for other in neighbours[0][place]],
            after=[int(docs[other]) for other in neighbours[1][place]],
            topic_before=topics[int(nearest[0][place])] if nearest else None,
            topic_after=topics[int(nearest[1][place])] if nearest else None,
        )


def with_noise(ablation: pa.Table, noise: pa.Table) -> pa.Table:
    """``ablation`` of all layers with each removal held against the random removals at its layer."""
    rows, draws = ablation.to_pylist(), noise.to_pylist()
    for kind, measure in {(row["kind"], row["measure"]): None for row in rows if row["kind"] != LAYER}:
        here = [row for row in rows if (row["kind"], row["measure"]) == (kind, measure)]
        own = [row for row in draws if (row["kind"], row["measure"]) == (kind, measure)]
        by_layer = {
            layer: np.array([row["change"] for row in own if row["layer"] == layer])
            for layer in {row["layer"] for row in here}
        }
        change = Interval(*(np.array([row[name] for row in here]) for name in _INTERVAL))
        layers = np.array([row["layer"] for row in here])
        floor = against_noise(change.value, layers, by_layer, least_spread(measure, here[0]["documents"]))
        for at, (row, verdict) in enumerate(zip(here, verdicts(change, floor), strict=True)):
            figures: dict[str, Any] = {"noise": floor.mean, "noise_low": floor.low, "noise_high": floor.high}
            figures |= {"p": floor.p, "p_adjusted": floor.adjusted}
            row |= {name: float(values[at]) for name, values in figures.items()} | {"verdict": verdict}
    order = measures_in_order(row["measure"] for row in rows)
    rows.sort(key=lambda row: (row["layer"], row["kind"], row["head"], order.index(row["measure"])))
    return as_table({name: [row[name] for row in rows] for name in ablation.schema.names}, ANALYSIS["ablation"])
