"""documents.parquet: made from the documents of all parts, read a few texts at a time, given other labels."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.errors import Mistake
from core.runs.files import replacing
from core.runs.parquet import GROUP_ROWS
from core.runs.run import Run
from core.runs.schema import DIGEST, documents_schema
from precompute.steps.embed.staging import documents_path, read_done

_TEXTS = 128
"""Texts that are read at a time; of a megabyte each they still fit."""
_LEARNED = ("tokens", "truncated")
"""Columns that are known only once a document is embedded."""


def texts(run: Run) -> Iterator[str]:
    """The documents' texts in order, never all of them in memory."""
    require_texts(run)
    try:
        # With a buffer size pages are read as they are needed, not whole column chunks.
        with pq.ParquetFile(run.inside(run.documents_path), buffer_size=2**20, page_checksum_verification=True) as file:
            for batch in file.iter_batches(_TEXTS, columns=["text"]):
                yield from batch["text"].to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise Mistake(f"documents.parquet is damaged. Rebuild it with '{run.rebuild}'.") from error


def require_texts(run: Run) -> None:
    """Refuses a run that was published without its texts."""
    if not run.manifest().has_texts:
        raise Mistake(
            f"The run '{run.name}' was published without its texts, and this step needs them. Ask for a copy that "
            "has them."
        )


def has_labels(run: Run, labels: pa.Table, source: str) -> bool:
    """Whether documents.parquet has these labels (core.runs.schema.LABELS) already."""
    before = run.documents(["topic", "label_source", "label_score"])
    return all(before[name].equals(column) for name, column in _label_columns(labels, source).items())


def relabel(run: Run, labels: pa.Table, source: str) -> None:
    """Gives documents.parquet the topics and scores of ``labels``, a row group at a time.

    All other columns stay, and so does the digest of what the file was made from.
    """
    after = _label_columns(labels, source)
    with pq.ParquetFile(run.inside(run.documents_path), page_checksum_verification=True) as file:
        schema, first = file.schema_arrow, 0
        with (
            replacing(run.documents_path) as temporary,
            pq.ParquetWriter(temporary, schema, compression="zstd", write_page_checksum=True) as writer,
        ):
            for group in range(file.num_row_groups):
                table = file.read_row_group(group)
                for name, column in after.items():
                    place = schema.get_field_index(name)
                    table = table.set_column(place, schema.field(place), column.slice(first, len(table)))
                writer.write_table(table, row_group_size=GROUP_ROWS)
                first += len(table)


def _label_columns(labels: pa.Table, source: str) -> dict[str, pa.ChunkedArray]:
    sources = pc.if_else(pc.is_valid(labels["topic"]), pa.scalar(source), pa.scalar(None, pa.string()))
    return {"topic": labels["topic"], "label_source": sources, "label_score": labels["score"]}


def finish_documents(run: Run, parts: int, digest: str) -> dict[str, str]:
    """Writes documents.parquet a part at a time, and returns the kind of each of the corpus's own columns.

    Documents that could not be embedded are left out, and the others numbered without them.
    """
    paths = [run.inside(documents_path(run, number)) for number in range(parts)]
    kinds: dict[str, str] = {}
    for path in paths:
        for extra in _extras(pq.read_table(path, columns=["extra"])):
            for name, value in extra.items():
                kinds[name] = _wider(kinds.get(name), value)
    kinds = {name: kind or "string" for name, kind in kinds.items()}  # a column that is always null
    schema = documents_schema(kinds)
    marked = schema.with_metadata({DIGEST: digest})
    with (
        replacing(run.documents_path) as temporary,
        pq.ParquetWriter(temporary, marked, compression="zstd", write_page_checksum=True) as writer,
    ):
        count = 0
        for number, path in enumerate(paths):
            done = read_done(run, number)
            lived = pc.is_null(done["failed"])
            table = _typed(pq.read_table(path), done, kinds, schema).filter(lived)
            docs = pa.array(range(count, count + len(table)), pa.int32())
            count += len(table)
            writer.write_table(table.set_column(0, schema.field(0), docs), row_group_size=GROUP_ROWS)
    return kinds


def _typed(staged: pa.Table, done: pa.Table, kinds: dict[str, str], schema: pa.Schema) -> pa.Table:
    extras = list(_extras(staged))
    columns = [(done if name in _LEARNED else staged)[name] for name in schema.names if name not in kinds]
    for name, kind in kinds.items():
        values = [_as(extra.get(name), kind) for extra in extras]
        columns.append(pa.array(values, schema.field(name).type))
    return pa.Table.from_arrays(columns, schema=schema)


def _extras(staged: pa.Table) -> Iterator[dict[str, Any]]:
    for text in staged["extra"].to_pylist():
        yield json.loads(text)


def _wider(kind: str | None, value: Any) -> str:
    """The narrowest kind that holds both what was seen so far (None: nothing yet) and ``value``."""
    if value is None:
        return kind or ""
    found = _kind(value)
    if not kind or kind == found:
        return found
    return "number" if {kind, found} == {"integer", "number"} else "string"


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer" if -(2**63) <= value < 2**63 else "string"
    return "number" if isinstance(value, float) else "string"


def _as(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "number":
        return float(value)
    if kind == "string" and not isinstance(value, str):
        return json.dumps(value)
    return value
