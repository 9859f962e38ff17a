"""Reading what the steps ``label``, ``analyse`` and ``project`` have left in a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import Mistake
from core.manifest import Manifest
from core.place import Placer
from core.schema import ANALYSIS, LABELS, MAP, check_schema, read_schema, similarity_schema, topics_schema
from core.similarity import own, unit
from core.store import Run


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


def read_topics(run: Run, original: bool = False) -> Topics:
    """The run's topics, or the study's 39 original ones as this run's model sees them."""
    path = run.original_topics_path if original else run.topics_path
    manifest = run.manifest()
    schema = topics_schema({stage: manifest.shape.width(stage) for stage in manifest.stages})
    table = _read(path, schema, _analyse(run))
    return Topics(
        tuple(table["topic"].to_pylist()),
        table["documents"].to_numpy(),
        {stage: _matrix(table[f"stage_{stage}"].combine_chunks()) for stage in manifest.stages},
    )


def read_labels(run: Run, source: str) -> pa.Table:
    """What one source of labels says about every document, in order of ``doc``."""
    return _read(run.labels_path(source), LABELS, f"python -m precompute label {run.name} --labels {source} --again")


def read_similarity(run: Run, stage: int, topics: int) -> Iterator[np.ndarray]:
    """``[doc, 1 + head, topic]`` in float16, some documents at a time, in order."""
    path, rows = run.similarity_path(stage), 1 + run.manifest().shape.heads
    check_schema(path, read_schema(path, _analyse(run)), similarity_schema(rows, topics), _analyse(run))
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
        for group in range(file.num_row_groups):
            column = file.read_row_group(group, columns=["values"])["values"].combine_chunks()
            yield _matrix(column).reshape(-1, rows, topics)
    except (OSError, pa.ArrowException) as error:
        raise _damaged(path, _analyse(run)) from error


def read_own_similarity(run: Run, stage: int, labels: np.ndarray, topics: int) -> np.ndarray:
    """Each document's similarity to its own topic, ``[doc, 1 + head]``: the heat map's cells; NaN without a label."""
    found, start = [], 0
    for values in read_similarity(run, stage, topics):
        found.append(own(values, labels[start : start + len(values)]))
        start += len(values)
    return np.concatenate(found)


def read_analysis(run: Run, name: str) -> pa.Table:
    """One of the tables of core.schema.ANALYSIS."""
    remedy = _project(run) if name == "maps" else _analyse(run)
    return _read(run.analysis_path(name), ANALYSIS[name], remedy)


def read_map(run: Run, stage: int, by_head: bool = False) -> pa.Table:
    """A stage's map, a row a (document, head), in order of the document."""
    return _read(run.map_path(stage, by_head), MAP, _project(run))


def read_placer(run: Run, stage: int, threads: int = 1) -> Placer:
    """The map of a stage, ready to have new head vectors placed on it (see core/place.py).

    With the metric 'cosine' the new vectors are to be normalised first, as the map's were.
    """
    require(run, run.manifest(), "project")
    table, heads = read_map(run, stage), run.manifest().shape.heads
    fitted = table["fitted"].to_numpy().reshape(-1, heads)[:, 0]
    normalised = run.manifest().steps["project"].options.get("metric") == "cosine"
    parts, first = [], 0
    for part in run.vectors(stage):
        rows = part[fitted[first : first + len(part)]].astype(np.float32)
        parts.append(rows.reshape(len(rows) * heads, -1))
        first += len(part)
    vectors = np.concatenate(parts)
    places = np.stack([table["x"].to_numpy(), table["y"].to_numpy()], axis=1)[table["fitted"].to_numpy()]
    return Placer.of(unit(vectors) if normalised else vectors, places, threads)


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


def _read(path: Path, schema: pa.Schema, remedy: str) -> pa.Table:
    check_schema(path, read_schema(path, remedy), schema, remedy)
    try:
        return pq.read_table(path, columns=schema.names, page_checksum_verification=True)
    except (OSError, pa.ArrowException) as error:
        raise _damaged(path, remedy) from error


def _damaged(path: Path, remedy: str) -> Mistake:
    return Mistake(f"{path.parent.name}/{path.name} is damaged. Rebuild it with '{remedy}'.")


def _matrix(column: pa.FixedSizeListArray) -> np.ndarray:
    values: np.ndarray = column.flatten().to_numpy(zero_copy_only=False)
    return values.reshape(len(column), column.type.list_size)
