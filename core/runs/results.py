"""Reading what the steps ``label``, ``analyse`` and ``project`` have left in a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.analysis.similarity import own, unit
from core.analysis.topics import original as original_topics
from core.errors import Mistake
from core.maps.place import Placer
from core.runs.manifest import Manifest
from core.runs.parquet import read_columns, row_groups
from core.runs.row_lookup import RowLookup
from core.runs.run import Run, is_finite
from core.runs.schema import ANALYSIS, LABELS, MAP, PREVIEW, similarity_schema, topics_schema
from core.runs.steps import command, maker_of
from core.runs.table_checks import Sizes, check_rows

MOST_TOPICS = 10_000


@dataclass(frozen=True)
class Topics:
    """Topics in their order, how many documents each has, and by stage their vectors ``[topic, width]``."""

    names: tuple[str, ...]
    documents: np.ndarray
    vectors: dict[int, np.ndarray]


def labels_of(names: Sequence[str | None], topics: Sequence[str]) -> np.ndarray:
    """Topic names as indices into ``topics``; -1 for none, and for one that is not among them."""
    index = {topic: number for number, topic in enumerate(topics)}
    return np.array([index.get(name, -1) if name is not None else -1 for name in names], dtype=np.int64)


def label_codes(names: pa.ChunkedArray, topics: Sequence[str]) -> np.ndarray:
    """``labels_of`` of a column, however long it is."""
    found = pc.index_in(names, value_set=pa.array(topics, pa.string()), skip_nulls=True)
    return np.asarray(pc.fill_null(found, -1).to_numpy().astype(np.int64))


def own_codes(names: pa.ChunkedArray) -> np.ndarray:
    """The same where the topics are those that occur, in alphabetical order."""
    return label_codes(names, sorted(names.drop_null().unique().to_pylist()))


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
    if original and tuple(table["topic"].to_pylist()) != original_topics():
        raise Mistake(f"{path.name} has other topics than FineWeb's 39. Rebuild it with '{_analyse(run)}'.")
    vectors = {stage: _matrix(table[f"stage_{stage}"].combine_chunks()) for stage in manifest.stages}
    if not all(map(is_finite, vectors.values())):
        raise Mistake(f"{path.name} holds a number that is not finite. Rebuild it with '{_analyse(run)}'.")
    return Topics(tuple(table["topic"].to_pylist()), table["documents"].to_numpy(), vectors)


def read_labels(run: Run, source: str) -> pa.Table:
    """What one source of labels says about every document, in order of ``doc``."""
    remedy = command("label", run.name, "--labels", source, "--again")
    return read_columns(run.inside(run.labels_path(source)), LABELS, remedy, int(run.manifest().corpus["documents"]))


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
    remedy = command(maker, run.name, "--again")
    table = read_columns(run.inside(run.analysis_path(name)), ANALYSIS[name], remedy)
    check_rows(name, table, Sizes.of(run.manifest(), maker), remedy)
    return table


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


def read_placer(run: Run, stage: int, threads: int = 1) -> Placer:
    """The map of a stage, ready to have new head vectors placed on it (see core/maps/place.py).

    With the metric 'cosine' the new vectors are to be normalised first, as the map's were.
    """
    require(run, run.manifest(), "project")
    table, heads = read_map(run, stage), run.manifest().shape.heads
    docs = run.vector_docs()
    fitted = table["fitted"].to_numpy().reshape(-1, heads)[docs, 0]
    normalised = run.manifest().steps["project"].options.get("metric") == "cosine"
    parts, first = [], 0
    for part in run.finite_vectors(stage):
        rows = part[fitted[first : first + len(part)]].astype(np.float32)
        parts.append(rows.reshape(len(rows) * heads, -1))
        first += len(part)
    vectors = np.concatenate(parts)
    places = np.stack([table["x"].to_numpy(), table["y"].to_numpy()], axis=1).reshape(-1, heads, 2)
    places = places[docs[fitted]].reshape(-1, 2)
    return Placer.of(unit(vectors) if normalised else vectors, places, threads)


def require(run: Run, manifest: Manifest, step: str) -> None:
    """Refuses a run whose ``step`` has not been done."""
    if not manifest.is_done(step):
        raise Mistake(f"The run '{run.name}' has no finished step '{step}' yet. Run '{command(step, run.name)}'.")


def _analyse(run: Run) -> str:
    return command("analyse", run.name, "--again")


def _project(run: Run) -> str:
    return command("project", run.name, "--again")


def _matrix(column: pa.FixedSizeListArray) -> np.ndarray:
    values: np.ndarray = column.flatten().to_numpy(zero_copy_only=False)
    return values.reshape(len(column), column.type.list_size)
