"""The kept heads, to use elsewhere: a file for core/retrieval/apply.py, and the corpus's vectors pruned."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import streamlit as st

from core.model.share_space import ShareSpace
from core.model.stages import SHARE
from core.retrieval.apply import WAYS, Kept, prune
from core.retrieval.turned import TurnedHeads
from core.runs.schema import heads_schema
from pages.shared.data import RunState
from pages.shared.notices import shows_mistakes
from pages.use.retrieval_lab.state import LabView

_SNIPPET = """
import numpy as np
from apply import prune, read_kept          # core/retrieval/apply.py: one file, NumPy only

kept = read_kept("heads.json")
docs, query = prune(doc_vectors, kept), prune(query_vectors, kept)   # same model, same stage
best = np.argsort(-(docs @ query[0]), kind="stable")[:10]
"""


@shows_mistakes
def export_section(shown: LabView) -> None:
    st.subheader("Export", anchor="export")
    if shown.stage == SHARE:
        _export_turned(shown.state, shown.turned())
        return
    way = shown.ways[0]
    if way not in WAYS or way == "embedding":
        way = "weighted" if way in ("mean", "weighted") else "full"
    kept = kept_heads(shown.state, shown.stage, shown.weights, way)
    st.markdown(
        f"{len(kept.weights)} head{'s' if len(kept.weights) != 1 else ''} with weights, for ranking by **{way}**"
        + ("" if way == shown.ways[0] else f" (“{shown.ways[0]}” is not a product of two vectors)")
        + ". `core/retrieval/apply.py` applies them to vectors of the same model made anywhere. It needs only NumPy."
    )
    assert shown.state.manifest is not None
    sampled = shown.state.manifest.is_sampled
    with st.container(horizontal=True, gap="small"):
        _file("Heads and weights (JSON)", kept.to_json(), "heads.json", "application/json")
        _file(
            f"Pruned vectors of {'the sample' if sampled else 'the corpus'} (Parquet)",
            lambda: pruned_parquet(shown.state, shown.stage, kept),
            "pruned.parquet",
            "application/vnd.apache.parquet",
        )
    st.code(_SNIPPET.strip(), language="python")


def _file(label: str, data: str | Callable[[], bytes], name: str, kind: str, key: str | None = None) -> None:
    """A button that saves a file without running the page again."""
    st.download_button(label, data, name, kind, key=key or name, on_click="ignore", icon=":material/download:")


_TURN_SNIPPET = """
import numpy as np
from apply import read_kept, turn           # core/retrieval/apply.py: one file, NumPy only

kept, directions = read_kept("heads.json"), np.load("directions.npy")
docs = turn(doc_shares, kept, directions, doc_embeddings)     # stages 4 and 3 of the same model
query = turn(query_shares, kept, directions, query_embedding)
best = np.argsort(-(docs @ query[0]), kind="stable")[:10]
"""


def _export_turned(state: RunState, turned: TurnedHeads) -> None:
    """At stage 4: weights, whether the rest counts, and the directions that shares are added up in."""
    kept = kept_heads(state, SHARE, turned.weights, "embedding", turned.rest)
    st.markdown(
        f"The embedding {'rest + ' if turned.rest else ''}Σ weight × share. `core/retrieval/apply.py` computes it from "
        "stored shares of the same model. It needs only NumPy."
    )
    with st.container(horizontal=True, gap="small"):
        _file("Heads and weights (JSON)", kept.to_json(), "heads.json", "application/json", key="turned.json")
        directions = partial(directions_file, turned.space)
        _file("Directions (NumPy)", directions, "directions.npy", "application/octet-stream")
    st.code(_TURN_SNIPPET.strip(), language="python")


def directions_file(space: ShareSpace) -> bytes:
    """``[head, hidden, dim]`` in float32, as ``numpy.load`` reads it."""
    stream = io.BytesIO()
    np.save(stream, space.directions.astype(np.float32), allow_pickle=False)
    return stream.getvalue()


def kept_heads(state: RunState, stage: int, weights: np.ndarray, way: str, rest: bool = True) -> Kept:
    """What the file says."""
    assert state.manifest is not None
    chosen = {int(head) + 1: float(weights[head]) for head in np.flatnonzero(weights > 0)}
    return Kept(state.manifest.model["name"], stage, state.manifest.shape.heads, chosen, way, rest)


def pruned_parquet(state: RunState, stage: int, kept: Kept) -> bytes:
    """``doc`` and ``vector`` as in heads/, but only what is kept, weighted and of length 1; a part at a time."""
    stream = io.BytesIO()
    assert state.manifest is not None
    width = len(kept.weights) * (state.manifest.shape.width(stage) // kept.heads)
    schema = heads_schema(width, "float32").with_metadata({"headscope.kept": kept.to_json()})
    docs, first = state.run.vector_docs(), 0
    with pq.ParquetWriter(stream, schema, compression="zstd") as writer:
        for part in state.run.vectors(stage):
            values = pa.array(prune(part, kept).reshape(-1))
            column = pa.FixedSizeListArray.from_arrays(values, type=schema.field("vector").type)
            own = pa.array(docs[first : first + len(part)], pa.int32())
            writer.write_table(pa.Table.from_arrays([own, column], schema=schema))
            first += len(part)
    return stream.getvalue()
