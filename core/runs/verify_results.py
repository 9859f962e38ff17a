"""Are the labels, figures and maps of a run whole? The part of ``verify`` for the steps after ``embed``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.errors import Mistake
from core.runs.aspects import aspect_path, read_aspect_labels, stored_aspects
from core.runs.manifest import Manifest
from core.runs.parts import digest_of
from core.runs.results import (
    kept_sources,
    read_analysis,
    read_labels,
    read_map,
    read_preview,
    read_query_set,
    read_similarity,
    read_topics,
)
from core.runs.run import Run
from core.runs.steps import STEPS
from core.search import index as text_index

Check = tuple[str, Path, Callable[[], object]]
"""The step that made a file, the file, and what reads it whole or raises a Mistake."""


def check_labels(run: Run, manifest: Manifest) -> Iterator[tuple[Path, str]]:
    """Each source's file, with what is wrong with it, if anything is; the active one is that of documents.parquet."""
    step = manifest.steps.get("label")
    active = str(step.options.get("source")) if step is not None and step.state == "done" else None
    sources = kept_sources(run)
    for source in sources if active is None or active in sources else [*sources, active]:
        problem = ""
        try:
            table = read_labels(run, source)
            problem = _labels_problem(table, int(manifest.corpus["documents"]))
            if not problem and source == active and step is not None:
                if digest_of(run.labels_path(source)) != step.fingerprint:
                    problem = "was made from inputs other than the manifest says"
                elif not run.documents(["topic"])["topic"].equals(table["topic"]):
                    problem = "has topics that differ from those in documents.parquet"
        except Mistake as mistake:
            yield run.labels_path(source), str(mistake)
            continue
        remedy = f"Rebuild it with 'python -m precompute label {run.name} --labels {source} --again'."
        yield run.labels_path(source), f"labels/{source}.parquet {problem}. {remedy}" if problem else ""


def check_aspects(run: Run, manifest: Manifest) -> Iterator[tuple[Path, str]]:
    """The same for labels of other aspects."""
    for aspect, sources in stored_aspects(run).items():
        for source in sources:
            path = aspect_path(run, aspect, source)
            try:
                problem = _labels_problem(read_aspect_labels(run, aspect, source), int(manifest.corpus["documents"]))
            except Mistake as mistake:
                yield path, str(mistake)
                continue
            again = f"python -m precompute label {run.name} --aspect {aspect} --labels {source} --again"
            name = path.relative_to(run.folder).as_posix()
            yield path, f"{name} {problem}. Rebuild it with '{again}'." if problem else ""


def _labels_problem(table: pa.Table, documents: int) -> str:
    if not np.array_equal(table["doc"].to_numpy(), np.arange(documents)):
        return f"does not hold documents 0 to {documents - 1} in order"
    both = pc.equal(pc.is_null(table["topic"]), pc.is_null(table["reason"]))
    if pc.any(both).as_py():
        doc = pc.index(both, True).as_py()
        return f"must have either a topic or a reason for document {doc}"
    return ""


def check_results(run: Run, manifest: Manifest) -> Iterator[tuple[Path, str]]:
    """Each file of the steps that are done, with what is wrong with it, if anything is."""
    if manifest.is_done("search"):
        yield run.search_path, _index(run, manifest)
    if manifest.is_done("project") and run.has(run.preview_path):
        yield run.preview_path, _problem(partial(read_preview, run, 0))
    for path, read in ((run.topics_path, False), (run.original_topics_path, True)):
        if manifest.is_done("analyse"):
            yield path, _problem(partial(read_topics, run, read))
    for step, path, read_whole in (*_figures(run, manifest), *_queries(run, manifest), *_maps(run, manifest)):
        if manifest.is_done(step):
            problem = _problem(read_whole)
            if not problem and digest_of(path) != manifest.steps[step].fingerprint:
                name = f"{path.parent.name}/{path.name}"
                remedy = f"python -m precompute {step} {run.name} --again"
                problem = f"{name} was made from inputs other than the manifest says. Rebuild it with '{remedy}'."
            yield path, problem


def _index(run: Run, manifest: Manifest) -> str:
    step = manifest.steps["search"]
    wrong = text_index.problem(run.inside(run.search_path), int(manifest.corpus["documents"]), step.fingerprint)
    return f"{run.search_path.name} {wrong}. {_again('search', run)}" if wrong else ""


def _figures(run: Run, manifest: Manifest) -> Iterator[Check]:
    if step := manifest.steps.get("analyse"):
        topics = int(step.counts.get("topics", 0))
        for stage in manifest.stages:
            yield "analyse", run.similarity_path(stage), partial(_similarity, run, manifest, stage, topics)
    for maker, facts in STEPS.items():
        for name in facts.tables:
            path = run.analysis_path(name)
            if name in facts.newer and not run.has(path) and f"analysis/{path.name}" not in manifest.files:
                continue  # the run is of an older version
            yield maker, path, partial(read_analysis, run, name)


def _queries(run: Run, manifest: Manifest) -> Iterator[Check]:
    step = manifest.steps.get("retrieve")
    if step is not None and step.counts.get("queries"):
        yield "retrieve", run.queries_path, partial(read_query_set, run)


def _maps(run: Run, manifest: Manifest) -> Iterator[Check]:
    if step := manifest.steps.get("project"):
        for stage in manifest.stages:
            for by_head in (False, True) if step.options.get("by_head") else (False,):
                yield "project", run.map_path(stage, by_head), partial(_map, run, manifest, stage, by_head)


def _similarity(run: Run, manifest: Manifest, stage: int, topics: int) -> None:
    documents = 0
    for values in read_similarity(run, stage, topics):
        documents += len(values)
        if not np.isfinite(values).all():
            raise Mistake(
                f"similarity/stage={stage}.parquet holds a number that is not finite. {_again('analyse', run)}"
            )
    if documents != manifest.corpus["documents"]:
        raise Mistake(
            f"similarity/stage={stage}.parquet has {documents:,} documents, not {manifest.corpus['documents']:,}. "
            f"{_again('analyse', run)}"
        )


def _map(run: Run, manifest: Manifest, stage: int, by_head: bool) -> None:
    found, expected = read_map(run, stage, by_head).num_rows, manifest.corpus["documents"] * manifest.shape.heads
    if found != expected:
        raise Mistake(f"map/stage={stage}.parquet has {found:,} points, not {expected:,}. {_again('project', run)}")


def _again(step: str, run: Run) -> str:
    return f"Rebuild it with 'python -m precompute {step} {run.name} --again'."


def _problem(read: Callable[[], object]) -> str:
    try:
        read()
    except Mistake as mistake:
        return str(mistake)
    return ""
