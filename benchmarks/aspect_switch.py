"""What following one aspect and ignoring another does to held-out documents of a run, against LEACE and random slices.

    python -m benchmarks.aspect_switch demo --follow genre --ignore topic

Prints the table of docs/aspects.md: the first split in full, then how often the result holds over splits,
and the same with shuffled labels, which must gain nothing.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from core.remote.mirror import default_cache
from core.retrieval.aspect_judge import OWN, SWITCHED, judge_switch
from core.retrieval.aspect_switch import FOLLOW, IGNORE, NEUTRAL
from core.retrieval.findings import switch_sentences
from core.runs.aspects import aspects_of
from core.runs.run import Run, open_run

SAMPLE = 1_200
"""Documents at most, as in the Retrieval lab."""


def vectors_of(run: Run, stage: int, rows: np.ndarray) -> np.ndarray:
    """``[doc, width]`` of the rows asked for."""
    return np.concatenate(list(run.vectors(stage)))[rows].astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("--cache", type=Path, default=default_cache())
    parser.add_argument("--stage", type=int, default=1)
    parser.add_argument("--follow", action="append", default=[])
    parser.add_argument("--ignore", action="append", default=[])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--shuffles", type=int, default=40)
    options = parser.parse_args()
    run = open_run(options.cache, options.run)
    positions = dict.fromkeys(options.follow, FOLLOW) | dict.fromkeys(options.ignore, IGNORE)
    manifest = run.manifest()
    rows = np.sort(np.random.default_rng(0).permutation(manifest.with_vectors)[:SAMPLE])
    vectors = vectors_of(run, options.stage, rows).reshape(len(rows), manifest.shape.heads, -1)
    own = vectors_of(run, max(stage for stage in manifest.stages if stage <= 3), rows)
    labels = {aspect.name: aspect.codes[run.vector_docs()[rows]] for aspect in aspects_of(run)}

    began = time.perf_counter()
    found = judge_switch(vectors, own, labels, positions)
    seconds = time.perf_counter() - began
    print(f"{options.run}, stage {options.stage}, {len(rows)} documents, {seconds:.1f} s; weights by head:")
    print(" ".join(f"{weight:g}" for weight in found.weights))
    print(f"{'':18}" + "".join(f"{name + ', ' + positions.get(name, NEUTRAL):>34}" for name in labels))
    table = found.rows()
    for way in found.ways:
        cells = [row for row in table if row["way"] == way]
        print(f"{way:18}" + "".join(f"{_cell(row):>34}" for row in cells))
    print(f"{'chance':18}" + "".join(f"{f'{found.chance[name]:.3f}':>34}" for name in labels))
    print("\n".join(switch_sentences(found)))
    print("Over splits, gained over the model's own embedding:")
    splits = [labels] * options.splits
    _over_splits("labels as they are", vectors, own, splits, positions)
    chance = np.random.default_rng(1)
    shuffled = [{name: chance.permutation(codes) for name, codes in labels.items()} for _ in range(options.shuffles)]
    _over_splits("shuffled labels", vectors, own, shuffled, positions)


def _over_splits(
    what: str,
    vectors: np.ndarray,
    own: np.ndarray,
    splits: list[dict[str, np.ndarray]],
    positions: dict[str, str],
) -> None:
    """Each of ``splits`` has the labels of one."""
    found = [judge_switch(vectors, own, labels, positions, seed) for seed, labels in enumerate(splits)]
    for name, position in positions.items():
        gained = [each.difference(name) for each in found]
        before, after = (np.mean([np.nanmean(each.shares[way][name]) for each in found]) for way in (OWN, SWITCHED))
        above, below = sum(bool(each.low > 0) for each in gained), sum(bool(each.high < 0) for each in gained)
        mean = np.mean([each.value for each in gained])
        print(
            f"  {what}, {position} {name}: {before:.3f} to {after:.3f}, {mean:+.3f} on average; of {len(splits)} "
            f"intervals {above} lie above 0, {below} below"
        )


def _cell(row: dict[str, object]) -> str:
    return "{value:.3f}  {gained:+.3f} ({gained_low:+.3f} to {gained_high:+.3f})".format_map(row)


if __name__ == "__main__":
    main()
