"""``heads/share_basis.parquet``: from the numbers of stage 4 to the embedding's own space, once per run."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from core.errors import Mistake
from core.model.shape import ModelShape
from core.model.share_space import ShareSpace
from core.model.stages import SHARE
from core.runs.manifest import Manifest
from core.runs.parquet import read_columns
from core.runs.parts import digest_of, write_table
from core.runs.results import Topics
from core.runs.run import Run
from core.runs.schema import share_basis_schema

_SKEW = 1e-4
"""How far columns of ``Q`` may be from orthonormal in float32."""


def write_share_space(run: Run, space: ShareSpace, digest: str) -> None:
    """Writes it unless it is there; ``digest`` is the fingerprint of the step ``embed``."""
    if digest_of(run.share_basis_path) == digest:
        return
    heads, hidden, dim = space.directions.shape
    schema = share_basis_schema(hidden, dim, space.triangle.shape[2])
    columns = [pa.array(np.arange(1, heads + 1, dtype=np.int16))]
    for name, values in (("directions", space.directions), ("triangle", space.triangle)):
        flat = pa.array(np.ascontiguousarray(values, dtype=np.float32).reshape(-1))
        columns.append(pa.FixedSizeListArray.from_arrays(flat, type=schema.field(name).type))
    write_table(run.share_basis_path, pa.Table.from_arrays(columns, schema=schema), digest)


def read_share_space(run: Run, manifest: Manifest | None = None) -> ShareSpace:
    """Of a run that stores stage 4; damaged, it is refused with the command that rebuilds it."""
    shape = (manifest or run.manifest()).shape
    hidden, dim, width = _sizes(shape)
    schema = share_basis_schema(hidden, dim, width)
    table = read_columns(run.inside(run.share_basis_path), schema, run.rebuild, shape.heads)
    directions, triangle = (
        table[name].combine_chunks().flatten().to_numpy(zero_copy_only=False).reshape(shape.heads, *axes)
        for name, axes in (("directions", (hidden, dim)), ("triangle", (dim, width)))
    )
    # Not a product of all: numbers of a stranger may not be finite, and NaN is not below anything.
    skew = np.abs(directions.transpose(0, 2, 1) @ directions - np.eye(dim)).max(initial=0)
    if not (np.isfinite(triangle).all() and skew < _SKEW):
        raise Mistake(f"heads/share_basis.parquet is damaged. Rebuild it with '{run.rebuild}'.")
    return ShareSpace(directions, triangle)


def space_of(run: Run, manifest: Manifest, stage: int) -> ShareSpace | None:
    """What the rows of ``stage`` need to be added up and sliced at random; None where rows are enough."""
    return read_share_space(run, manifest) if stage == SHARE else None


def full_topics(run: Run, topics: Topics, stage: int) -> np.ndarray:
    """The topics' full embeddings at ``stage``: ``[topic, width]``."""
    space = space_of(run, run.manifest(), stage)
    return topics.vectors[stage] if space is None else space.full(topics.vectors[stage])


def basis_problem(run: Run, manifest: Manifest) -> str:
    """What is wrong with the file of a run that stores stage 4; empty where nothing is."""
    try:
        read_share_space(run, manifest)
    except Mistake as mistake:
        return str(mistake)
    if digest_of(run.share_basis_path) != manifest.steps["embed"].fingerprint:
        return f"heads/share_basis.parquet was made from other settings. Rebuild it with '{run.rebuild}'."
    return ""


def _sizes(shape: ModelShape) -> tuple[int, int, int]:
    return shape.hidden, min(shape.head_dim, shape.hidden), shape.head_dim
