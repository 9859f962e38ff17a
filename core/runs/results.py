"""Reading what the steps ``label``, ``analyse`` and ``project`` have left in a run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.errors import Mistake
from core.model.stages import SHARE
from core.runs.labels import LABEL_SOURCES, Labels, own
from core.runs.manifest import Manifest
from core.runs.parquet import RowLookup, read_columns, row_groups
from core.runs.parts import is_finite
from core.runs.run import Run
from core.runs.schema import ANALYSIS, LABELS, MAP, PREVIEW, queries_schema, similarity_schema, topics_schema
from core.runs.steps import STEPS, maker_of
from core.runs.table_checks import Sizes, check_rows
from core.runs.tables import Row, Tables
from core.runs.vocabulary import MOST_QUERIES, SIDE_BY_SIDE, TOPICS_SHA256

MOST_TOPICS = 10_000


@dataclass(frozen=True)
class Topics:
    """Topics in their order, how many documents each has, and by stage their vectors ``[topic, width]``."""

    names: tuple[str, ...]
    documents: np.ndarray
    vectors: dict[int, np.ndarray]


def read_topics(run: Run, original: bool = False) -> Topics:
    """The run's topics, or the study's 39 original ones as this run's model sees them."""
    path = run.original_topics_path if original else run.topics_path
    manifest = run.manifest()
    schema = topics_schema({stage: manifest.shape.width(stage) for stage in manifest.stages})
    table = read_columns(run.inside(path), schema, _analyse(run))
    if not 1 <= len(table) <= MOST_TOPICS or len(table["topic"].unique()) != len(table):
        raise Mistake(
            f"{path.name} has {len(table):,} topics, and must have 1 to {MOST_TOPICS:,} different ones. Rebuild it "
            f"with '{_analyse(run)}'."
        )
    if original and hashlib.sha256("\n".join(table["topic"].to_pylist()).encode()).hexdigest() != TOPICS_SHA256:
        raise Mistake(f"{path.name} has topics other than FineWeb's 39. Rebuild it with '{_analyse(run)}'.")
    vectors = {stage: _matrix(table[f"stage_{stage}"].combine_chunks()) for stage in manifest.stages}
    if not all(map(is_finite, vectors.values())):
        raise Mistake(f"{path.name} holds a number that is not finite. Rebuild it with '{_analyse(run)}'.")
    return Topics(tuple(table["topic"].to_pylist()), table["documents"].to_numpy(), vectors)


def read_labels(run: Run, source: str) -> pa.Table:
    """What one source of labels says about every document, in order of ``doc``."""
    remedy = f"python -m precompute label {run.name} --labels {source} --again"
    return read_columns(run.inside(run.labels_path(source)), LABELS, remedy, int(run.manifest().corpus["documents"]))


def kept_sources(run: Run) -> list[str]:
    """The sources whose labels the run has, in the order of LABEL_SOURCES."""
    return [source for source in LABEL_SOURCES if run.has(run.labels_path(source))]


def kept_labels(run: Run, source: str) -> Labels:
    table = read_labels(run, source)
    return Labels(source, table["topic"], table["reason"])


def all_labels(run: Run) -> list[Labels]:
    return [kept_labels(run, source) for source in kept_sources(run)]


def read_similarity(run: Run, stage: int, topics: int) -> Iterator[np.ndarray]:
    """``[doc, 1 + head, topic]`` in float16, some documents at a time, in order."""
    manifest, path = run.manifest(), run.inside(run.similarity_path(stage))
    rows, count = 1 + manifest.shape.heads, int(manifest.corpus["documents"])
    for group in row_groups(path, similarity_schema(rows, topics), _analyse(run), count, ["values"]):
        yield _matrix(group["values"].combine_chunks()).reshape(-1, rows, topics)


def read_own_similarity(run: Run, stage: int, labels: np.ndarray, topics: int) -> np.ndarray:
    """Each document's similarity to its own topic, ``[doc, 1 + head]``: the heat map's cells; NaN without a label."""
    found, start = [], 0
    for values in read_similarity(run, stage, topics):
        found.append(own(values, labels[start : start + len(values)]))
        start += len(values)
    return np.concatenate(found)


def read_analysis(run: Run, name: str) -> pa.Table:
    """One of the tables of core.runs.schema.ANALYSIS."""
    maker = maker_of(name)
    remedy = f"python -m precompute {maker} {run.name} --again"
    table = read_columns(run.inside(run.analysis_path(name)), ANALYSIS[name], remedy)
    check_rows(name, table, Sizes.of(run.manifest(), maker), remedy)
    return _shares_side_by_side(table) if "way" in table.column_names else table


def _shares_side_by_side(table: pa.Table) -> pa.Table:
    """Version 0.2.0 ranked by the shares of stage 4 side by side where it says 'full'."""
    if pc.any(pc.equal(table["way"], SIDE_BY_SIDE)).as_py():
        return table
    older = pc.and_(pc.equal(table["way"], "full"), pc.equal(table["stage"], SHARE))
    at = table.column_names.index("way")
    return table.set_column(at, table.schema.field(at), pc.if_else(older, SIDE_BY_SIDE, table["way"]))


@dataclass(frozen=True)
class StoredExamples:
    """What core.analysis.examples.Examples is made of, at one stage."""

    names: tuple[str, ...]
    mean: np.ndarray
    """``[head, dim]``: of all documents."""
    sums: np.ndarray
    """``[topic, head, dim]``: of each topic's centred documents."""
    counts: np.ndarray
    """``[topic]``."""


def read_examples(run: Run, stage: int) -> StoredExamples:
    """One stage of the table ``examples``, topics in their order; runs of older versions do not have it."""
    shape, names = run.manifest().shape, read_topics(run).names
    table = read_analysis(run, "examples")
    table = table.filter(pc.equal(table["stage"], stage))
    found = {row["topic"]: row for row in table.select(["topic", "documents"]).to_pylist()}
    vectors = table["vector"].combine_chunks()
    values = vectors.flatten().to_numpy(zero_copy_only=False)
    lengths = pc.list_value_length(vectors).to_numpy(zero_copy_only=False)
    if [*found] != [None, *names] or (lengths != shape.width(stage)).any() or not np.isfinite(values).all():
        raise Mistake(f"examples.parquet is damaged at stage {stage}. Rebuild it with '{_analyse(run)}'.")
    mean, *sums = values.reshape(len(found), shape.heads, -1)
    counts = np.array([found[name]["documents"] for name in names])
    return StoredExamples(names, mean, np.stack(sums), counts)


def read_mismatches(run: Run, stage: int) -> pa.Table:
    """One stage's rows of the table ``mismatches``, ``label`` and ``nearest`` as dictionaries.

    There is a row for a good part of all documents at every stage: this table alone is not read whole.
    """
    name, remedy, found = "mismatches", _analyse(run), []
    schema, sizes = ANALYSIS[name], Sizes.of(run.manifest(), maker_of(name))
    known = pa.array(read_topics(run).names, pa.string())
    for group in row_groups(run.inside(run.analysis_path(name)), schema, remedy):
        check_rows(name, group, sizes, remedy)
        strange = (pc.invert(pc.is_in(group[column], value_set=known)) for column in ("label", "nearest"))
        if any(pc.any(each).as_py() for each in strange):
            raise Mistake(f"{name}.parquet has topics that topics.parquet does not have. Rebuild it with '{remedy}'.")
        own = group.filter(pc.equal(group["stage"], stage))
        for column in ("label", "nearest"):
            at = own.schema.get_field_index(column)
            own = own.set_column(at, column, own[column].dictionary_encode())
        found.append(own)
    if not found:
        return schema.empty_table()
    return pa.concat_tables(found).unify_dictionaries()


def read_map(run: Run, stage: int, by_head: bool = False) -> pa.Table:
    """A stage's map, a row a (document, head), in order of the document."""
    manifest, path = run.manifest(), run.inside(run.map_path(stage, by_head))
    heads, docs = manifest.shape.heads, int(manifest.corpus["documents"])
    table = read_columns(path, MAP, _project(run), docs * heads)
    order = np.array_equal(table["doc"].to_numpy(), np.repeat(np.arange(docs), heads))
    if not order or not np.array_equal(table["head"].to_numpy(), np.tile(np.arange(1, heads + 1), docs)):
        raise Mistake(f"map/{path.name} is not in order of documents and heads. Rebuild it with '{_project(run)}'.")
    if not all(np.isfinite(table[name].to_numpy()).all() for name in ("x", "y", "activation")):
        raise Mistake(f"map/{path.name} holds a number that is not finite. Rebuild it with '{_project(run)}'.")
    return table


@dataclass(frozen=True)
class Preview:
    """What small maps show: all heads of a few documents, ``docs[doc]`` and by stage ``places[doc, head, 2]``."""

    docs: np.ndarray
    places: dict[int, np.ndarray]


def read_preview(run: Run, count: int) -> Preview:
    """Some ``count`` points a stage: those that the job has put aside, or in an older run a sample of the maps."""
    manifest = run.manifest()
    heads, docs = manifest.shape.heads, int(manifest.corpus["documents"])
    if not run.has(run.preview_path):
        chosen = np.sort(np.random.default_rng(0).permutation(docs)[: max(1, count // heads)])
        return Preview(chosen, {stage: read_places(run, stage)[chosen] for stage in manifest.stages})
    table = read_columns(run.inside(run.preview_path), PREVIEW, _project(run))
    stages = len(manifest.stages)
    own, shown = table["doc"].to_numpy(), len(table) // (heads * stages)
    chosen, places = own[: shown * heads : heads], np.stack([table[axis].to_numpy() for axis in ("x", "y")], axis=1)
    whole = np.array_equal(own, np.tile(np.repeat(chosen, heads), stages)) and (chosen < docs).all()
    order = np.array_equal(table["head"].to_numpy(), np.tile(np.arange(1, heads + 1), shown * stages))
    if not shown or not whole or not order or (chosen < 0).any() or not np.isfinite(places).all():
        raise Mistake(f"map/{run.preview_path.name} is damaged. Rebuild it with '{_project(run)}'.")
    return Preview(chosen, dict(zip(manifest.stages, places.reshape(stages, shown, heads, 2), strict=True)))


def read_places(run: Run, stage: int) -> np.ndarray:
    """``[doc, head, 2]`` of all documents."""
    table = read_map(run, stage)
    found = np.stack([table["x"].to_numpy(), table["y"].to_numpy()], axis=1)
    return found.reshape(-1, run.manifest().shape.heads, 2)


def map_lookup(run: Run, stage: int) -> RowLookup:
    """Single points of a stage's map: row ``doc * heads + head``, heads from 0."""
    manifest, path = run.manifest(), run.inside(run.map_path(stage))
    return RowLookup(path, MAP, _project(run), int(manifest.corpus["documents"]) * manifest.shape.heads)


def similarity_lookup(run: Run, stage: int, topics: int) -> RowLookup:
    """Single documents' similarities, as in ``read_similarity``: row ``doc``."""
    manifest, path = run.manifest(), run.inside(run.similarity_path(stage))
    schema = similarity_schema(1 + manifest.shape.heads, topics)
    return RowLookup(path, schema, _analyse(run), int(manifest.corpus["documents"]))


@dataclass(frozen=True)
class FittedMap:
    """The points that a stage's map was fitted to: ``vectors[point, dim]`` and ``places[point, 2]``."""

    vectors: np.ndarray
    """With the metric 'cosine' normalised, as those of new points must be."""
    places: np.ndarray


def read_fitted_map(run: Run, stage: int) -> FittedMap:
    """What ``core.maps.place.Placer`` places new head vectors by."""
    manifest = run.manifest()
    require(run, manifest, "project")
    heads, docs = manifest.shape.heads, run.vector_docs()
    fitted = read_map(run, stage)["fitted"].to_numpy().reshape(-1, heads)[docs, 0]
    parts, first = [], 0
    for part in run.finite_vectors(stage):
        rows = part[fitted[first : first + len(part)]].astype(np.float32)
        parts.append(rows.reshape(len(rows) * heads, -1))
        first += len(part)
    vectors = np.concatenate(parts)
    if manifest.steps["project"].options.get("metric") == "cosine":
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, norms, out=vectors, where=norms > 0)
    return FittedMap(vectors, read_places(run, stage)[docs[fitted]].reshape(-1, 2))


def read_tables(run: Run) -> Tables:
    """Of a run that has been analysed; its maps too if there are some."""
    manifest = run.manifest()
    require(run, manifest, "analyse")
    names = ["topic_match", "probe", "profiles", "redundancy", "groups", "control"]
    names += [name for name in STEPS["analyse"].newer if name != "examples" and run.has(run.analysis_path(name))]
    if manifest.is_done("project"):
        names.append("maps")
    topics = read_columns(run.inside(run.topics_path), topics_schema({}), _analyse(run)).to_pylist()
    return Tables(manifest, {"topics": topics, **{name: read_analysis(run, name).to_pylist() for name in names}})


def read_retrieval(run: Run) -> dict[str, list[Row]]:
    """The tables of retrieval that a report is made from; none where the run's heads have not been judged."""
    if not run.manifest().is_done("retrieve"):
        return {}
    added = [name for name in STEPS["retrieve"].newer if run.has(run.analysis_path(name))]
    return {name: read_analysis(run, name).to_pylist() for name in ("retrieval", "pruned", "weights", *added)}


def read_aspects(run: Run) -> dict[str, list[Row]]:
    """The tables of aspects but for the documents'; none where the run's aspects have not been probed."""
    if not run.manifest().is_done("aspects"):
        return {}
    names = (name for name in STEPS["aspects"].tables if name != "aspect_documents")
    return {name: read_analysis(run, name).to_pylist() for name in names}


def read_ablation(run: Run) -> dict[str, list[Row]]:
    """The tables of ablation that a report is made from; none where no head has been switched off."""
    if not run.manifest().is_done("ablate"):
        return {}
    return {name: read_analysis(run, name).to_pylist() for name in ("ablation", "ablation_noise")}


@dataclass(frozen=True)
class QuerySet:
    """What was asked, ``[query]`` each."""

    texts: tuple[str, ...]
    relevant: tuple[tuple[int, ...], ...]
    """Documents that should be found, at least one each."""
    aspects: np.ndarray
    vectors: dict[int, np.ndarray]
    """By stage ``[query, head, dim]``."""


def read_query_set(run: Run) -> QuerySet | None:
    """None where the run was judged by its topics alone."""
    manifest = run.manifest()
    step = manifest.steps.get("retrieve")
    count = int(step.counts.get("queries", 0)) if step is not None else 0
    if not count:
        return None
    remedy = f"python -m precompute retrieve {run.name} --again"
    shape = manifest.shape
    schema = queries_schema({stage: shape.width(stage) for stage in manifest.stages})
    if count > MOST_QUERIES:
        raise Mistake(f"queries.parquet has more than {MOST_QUERIES:,} queries. Rebuild it with '{remedy}'.")
    table = read_columns(run.inside(run.queries_path), schema, remedy, count)
    relevant = tuple(tuple(docs) for docs in table["relevant"].to_pylist())
    documents = int(manifest.corpus["documents"])
    if not all(docs and all(doc is not None and 0 <= doc < documents for doc in docs) for docs in relevant):
        raise Mistake(f"queries.parquet names documents that the run does not have. Rebuild it with '{remedy}'.")
    vectors = {}
    for stage in manifest.stages:
        values = table[f"stage_{stage}"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        if not np.isfinite(values).all():
            raise Mistake(f"queries.parquet holds a number that is not finite. Rebuild it with '{remedy}'.")
        vectors[stage] = values.reshape(count, shape.heads, -1)
    return QuerySet(tuple(table["text"].to_pylist()), relevant, table["aspects"].to_numpy(), vectors)


def require(run: Run, manifest: Manifest, step: str) -> None:
    """Refuses a run whose ``step`` has not been done."""
    if not manifest.is_done(step):
        raise Mistake(
            f"The run '{run.name}' has no finished step '{step}' yet. Run 'python -m precompute {step} {run.name}'."
        )


def _analyse(run: Run) -> str:
    return f"python -m precompute analyse {run.name} --again"


def _project(run: Run) -> str:
    return f"python -m precompute project {run.name} --again"


def _matrix(column: pa.FixedSizeListArray) -> np.ndarray:
    values: np.ndarray = column.flatten().to_numpy(zero_copy_only=False)
    return values.reshape(len(column), column.type.list_size)
