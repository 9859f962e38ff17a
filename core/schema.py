"""What every file of a run holds, written out column by column; nothing is inferred from data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import Mistake

SCHEMA_VERSION = 1
DIGEST = b"headscope.digest"
"""Key of a Parquet file's metadata: what the file was made from. A part with the right digest is not made again."""

VECTOR_TYPES: dict[str, pa.DataType] = {"float16": pa.float16(), "float32": pa.float32()}

DOCUMENTS = pa.schema(
    [
        pa.field("doc", pa.int32(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("title", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("url", pa.string()),
        pa.field("tokens", pa.int32(), nullable=False),
        pa.field("truncated", pa.bool_(), nullable=False),
        pa.field("topic", pa.string()),
        pa.field("label_source", pa.string()),
        pa.field("label_score", pa.float32()),
    ]
)
STAGED_DOCUMENTS = DOCUMENTS.append(pa.field("extra", pa.string(), nullable=False))
"""While a run is being made: the corpus's own columns as one JSON object, for their types are not known yet."""

EXTRA_TYPES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "string": pa.string(),
}


def documents_schema(extra: Mapping[str, str]) -> pa.Schema:
    """Of documents.parquet; ``extra`` names the corpus's own columns and their kind, a key of EXTRA_TYPES."""
    schema = DOCUMENTS
    for name, kind in extra.items():
        schema = schema.append(pa.field(name, EXTRA_TYPES[kind]))
    return schema


def heads_schema(width: int, dtype: str) -> pa.Schema:
    """Of a part of head vectors: ``width`` numbers a document, the heads side by side, not normalised."""
    # The list's values are nullable because Parquet readers give them back so; none is ever null (see core/verify.py).
    return pa.schema(
        [
            pa.field("doc", pa.int32(), nullable=False),
            pa.field("vector", pa.list_(pa.field("element", VECTOR_TYPES[dtype]), width), nullable=False),
        ]
    )


def check_schema(path: Path, found: pa.Schema, expected: pa.Schema, rebuild: str) -> None:
    """Refuses a file that lacks a column or has it in another type; further columns are no harm."""
    name = "/".join(path.parts[-3:] if path.parent.name.startswith("stage=") else path.parts[-1:])
    for field in expected:
        index = found.get_field_index(field.name)
        if index < 0:
            raise Mistake(f"{name} has no column '{field.name}'. Rebuild it with '{rebuild}'.")
        if not _same_type(found.field(index).type, field.type):
            raise Mistake(
                f"{name} has the column '{field.name}' as {found.field(index).type}, not {field.type}. "
                f"Rebuild it with '{rebuild}'."
            )


def read_schema(path: Path, rebuild: str) -> pa.Schema:
    """A Parquet file's schema, or a sentence that says what is wrong with the file."""
    try:
        return pq.read_schema(path)
    except FileNotFoundError as error:
        raise Mistake(f"{path.name} is missing. Rebuild it with '{rebuild}'.") from error
    except (OSError, pa.ArrowException) as error:
        raise Mistake(f"{path.name} cannot be read: it is damaged. Rebuild it with '{rebuild}'.") from error


def _same_type(found: pa.DataType, expected: pa.DataType) -> bool:
    if pa.types.is_fixed_size_list(expected):
        return (
            pa.types.is_fixed_size_list(found)
            and found.list_size == expected.list_size
            and found.value_type == expected.value_type
        )
    return bool(found == expected)
