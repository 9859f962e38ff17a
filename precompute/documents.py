"""From the documents of all parts to documents.parquet, with the corpus's own columns in types of their own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from core.files import replacing
from core.schema import DIGEST, documents_schema
from core.store import Run


def finish_documents(run: Run, parts: int, digest: str) -> dict[str, str]:
    """Writes documents.parquet a part at a time, and returns the kind of each of the corpus's own columns."""
    paths = [run.staging / f"part-{number:05d}.parquet" for number in range(parts)]
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
        for path in paths:
            writer.write_table(_typed(pq.read_table(path), kinds, schema))
    return kinds


def _typed(staged: pa.Table, kinds: dict[str, str], schema: pa.Schema) -> pa.Table:
    extras = list(_extras(staged))
    columns = [staged[name] for name in staged.column_names if name != "extra"]
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
