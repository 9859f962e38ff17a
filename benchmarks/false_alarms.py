"""How often the rules about heads fire where nothing is to be found: ``python -m benchmarks.false_alarms``.

A run is analysed again with its labels shuffled, and once with the vectors of its untrained twin; counted are heads
that get a role and heads that lie beyond random slices (``roles``), then pruned sets and peaks over depth. The run
itself stays as it is.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.model.embedder import Embedder
from core.model.stages import HEADS, RANDOM, SHARE
from core.runs.labels import labels_of
from core.runs.manifest import Manifest
from core.runs.parts import write_part
from core.runs.results import read_analysis
from core.runs.run import Run, open_run
from core.runs.shares import space_of
from core.settings import setting
from precompute.job.topic_vectors import TopicModel
from precompute.steps.analyse.step import AnalyseConfig, run
from precompute.steps.analyse.untrained import fits
from tests.support.false_claims import count_depth, count_pruned, count_random_slices


class RandomWeights(TopicModel):
    """Embeds the topics' names with random weights as well."""

    def load(self, manifest: Manifest) -> Embedder:
        return self.untrained(manifest, 0, fits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", default="demo")
    parser.add_argument("--shuffles", type=int, default=10)
    parser.add_argument("--only", choices=_COUNTS)
    given = parser.parse_args()
    source = open_run(setting("HEADSCOPE_CACHE"), given.run)
    for name, count in _COUNTS.items():
        if given.only in (None, name):
            count(source, given.shuffles)


def _pruned(source: Run, shuffles: int) -> None:
    manifest = source.manifest()
    names = source.documents(["topic"])["topic"].to_pylist()
    labels = labels_of(names, sorted(set(names) - {None}))
    ours = {stage: np.concatenate(list(source.vectors(stage))).astype(np.float32) for stage in manifest.stages}
    model = RandomWeights().load(manifest)
    embedded = model.embed(source.documents(["text"])["text"].to_pylist())
    theirs = {stage: embedded.stage(stage) for stage in manifest.stages}
    shape, orders = manifest.shape, range(shuffles)
    space = space_of(source, manifest, manifest.stages[-1])
    their_space = model.share_space() if SHARE in manifest.stages else None
    for name, lines in (
        ("the run itself", lambda: count_pruned(ours, labels, shape, [None], space)),
        (f"{shuffles} shuffles", lambda: count_pruned(ours, labels, shape, orders, space)),
        (f"{shuffles} random slicings", lambda: count_random_slices(ours, labels, shape, shuffles)),
        ("untrained twin", lambda: count_pruned(theirs, labels, shape, [None], their_space)),
    ):
        for line in lines():
            print(f"{name:<20}{line}", flush=True)


def _depth(source: Run, shuffles: int) -> None:
    manifest = source.manifest()
    for name, load, seeds in (
        (f"{shuffles} shuffles", lambda: TopicModel().load(manifest), list(range(shuffles))),
        ("untrained twin", lambda: RandomWeights().load(manifest), [None]),
        ("the run itself", lambda: TopicModel().load(manifest), [None]),
    ):
        with tempfile.TemporaryDirectory() as folder:
            for line in count_depth(source, Path(folder), load, seeds):
                print(f"{name:<20}{line}", flush=True)


def _roles(source: Run, shuffles: int) -> None:
    print(_line("the run itself", read_analysis(source, "profiles"), read_analysis(source, "null"), HEADS))
    print(_line("random slices", read_analysis(source, "profiles"), None, RANDOM))
    tables = []
    for seed in range(shuffles):
        with tempfile.TemporaryDirectory() as folder:
            tables.append(_analysed(_shuffled(source, Path(folder), seed)))
    profiles, null = (pa.concat_tables(kind) for kind in zip(*tables, strict=True))
    print(_line(f"{shuffles} shuffles", profiles, null, HEADS))
    with tempfile.TemporaryDirectory() as folder:
        profiles, null = _analysed(_untrained(source, Path(folder)), RandomWeights())
        print(_line("untrained twin", profiles, null, HEADS))


def _copied(source: Run, cache: Path) -> Run:
    shutil.copytree(source.folder, cache / source.name)
    return open_run(cache, source.name)


def _shuffled(source: Run, cache: Path, seed: int) -> Run:
    copy = _copied(source, cache)
    table = pq.read_table(copy.documents_path)
    order = np.random.default_rng(seed).permutation(len(table))
    place = table.schema.get_field_index("topic")
    mixed = table.set_column(place, table.schema.field("topic"), table["topic"].take(pa.array(order)))
    pq.write_table(mixed, copy.documents_path)
    return copy


def _untrained(source: Run, cache: Path) -> Run:
    """The same documents and topics, embedded with random weights."""
    copy, manifest = _copied(source, cache), source.manifest()
    model = RandomWeights().load(manifest)
    found = model.embed(source.documents(["text"])["text"].to_pylist())
    for stage in manifest.stages:
        first = 0
        for path in copy.parts(stage):
            count = pq.read_metadata(path).num_rows
            docs = np.arange(first, first + count)
            values, first = found.stage(stage)[first : first + count], first + count
            write_part(path, docs, values, manifest.vectors["dtype"], "untrained", manifest.shape.heads)
    copy.topics_path.unlink()
    copy.original_topics_path.unlink()
    return copy


def _analysed(copy: Run, model: TopicModel | None = None) -> tuple[pa.Table, pa.Table]:
    run(AnalyseConfig(copy.cache, copy.name, again=True, model=model or TopicModel()))
    return read_analysis(copy, "profiles"), read_analysis(copy, "null")


def _line(name: str, profiles: pa.Table, null: pa.Table | None, slicing: str) -> str:
    heads = [row for row in profiles.to_pylist() if row["head"] and row["slicing"] == slicing]
    roles = Counter(row["role"] for row in heads if row["role"])
    said = f"{name:<16}{sum(roles.values()):>5} of {len(heads)} heads have a role {dict(roles)}"
    if null is not None:
        verdicts = Counter(row["measure"] for row in null.to_pylist() if row["verdict"] != "within")
        every = Counter(null["measure"].to_pylist())
        said += "; beyond random slices: " + ", ".join(f"{one} {verdicts[one]}/{every[one]}" for one in every)
    return said


_COUNTS = {"roles": _roles, "pruned": _pruned, "depth": _depth}


if __name__ == "__main__":
    main()
