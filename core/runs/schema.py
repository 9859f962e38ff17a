"""What every file of a run holds, written out column by column; nothing is inferred from data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import Mistake
from core.runs.vocabulary import ATTENTION_ENDS, ATTENTION_MEASURES

SCHEMA_VERSION = 1
DIGEST = b"headscope.digest"
"""Key of a Parquet file's metadata: what the file was made from. A part with the right digest is not made again."""

VECTOR_TYPES: dict[str, pa.DataType] = {"float16": pa.float16(), "float32": pa.float32(), "int8": pa.int8()}
INT8 = "int8"
STORED_AS = ("float16", INT8)
"""What can be asked for; a run goes over to float32 by itself where float16 does not hold its vectors."""

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
STAGED_DOCUMENTS = pa.schema(
    [field for field in DOCUMENTS if field.name not in ("tokens", "truncated")]
    + [pa.field("extra", pa.string(), nullable=False)]
)
"""While a run is being made: the corpus's own columns as one JSON object, for their types are not known yet."""
FINISHED_DOCUMENTS = pa.schema(
    [
        pa.field("doc", pa.int32(), nullable=False),
        pa.field("tokens", pa.int32(), nullable=False),
        pa.field("truncated", pa.bool_(), nullable=False),
        pa.field("failed", pa.string()),
    ]
)
"""While a run is being made: what was learned of a part's documents; ``failed`` says why one has no vectors."""
FAILED = pa.schema(
    [
        pa.field("place", pa.int32(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
    ]
)
"""``failed.parquet``: documents that were left out, with their places (from 0) among those that were read."""

LABELS = pa.schema(
    [
        pa.field("doc", pa.int32(), nullable=False),
        pa.field("topic", pa.string()),
        pa.field("score", pa.float32()),
        pa.field("reason", pa.string()),
    ]
)
"""``labels/<source>.parquet``: every document, in order; without a topic there is a reason, and only then."""

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


def heads_schema(width: int, dtype: str, heads: int = 1) -> pa.Schema:
    """Of a part of head vectors: ``width`` numbers a document, the heads side by side, not normalised.

    As int8 each of the ``heads`` has a scale, too: what a step of its numbers is worth (core/runs/number_formats.py).
    """
    # The list's values are nullable because Parquet readers give them back so; none is ever null (core/runs/verify.py).
    fields = [pa.field("doc", pa.int32(), nullable=False), _vector("vector", width, VECTOR_TYPES[dtype])]
    return pa.schema([*fields, _vector("scale", heads, pa.float32())] if dtype == INT8 else fields)


def share_basis_schema(hidden: int, dim: int, width: int) -> pa.Schema:
    """Of heads/share_basis.parquet, a row a head: ``Q`` (``hidden × dim``) and ``R`` (``dim × width``), row by row."""
    directions, triangle = (
        _vector(name, size, pa.float32()) for name, size in (("directions", hidden * dim), ("triangle", dim * width))
    )
    return pa.schema([pa.field("head", pa.int16(), nullable=False), directions, triangle])


def _figures(*names: str) -> list[pa.Field]:
    return [pa.field(name, pa.float64()) for name in names]


def _vector(name: str, width: int, type_: pa.DataType) -> pa.Field:
    return pa.field(name, pa.list_(pa.field("element", type_), width), nullable=False)


def topics_schema(widths: Mapping[int, int]) -> pa.Schema:
    """Of topics.parquet, and of the study's original topics: names, and a vector for each stage of ``widths``."""
    fields = [pa.field("topic", pa.string(), nullable=False), pa.field("documents", pa.int32(), nullable=False)]
    return pa.schema(fields + [_vector(f"stage_{stage}", width, pa.float32()) for stage, width in widths.items()])


def queries_schema(widths: Mapping[int, int]) -> pa.Schema:
    """Of retrieval/queries.parquet: what was asked, the documents to be found, and a vector for each stage."""
    fields = [
        pa.field("query", pa.int32(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("aspects", pa.int16(), nullable=False),
        pa.field("relevant", pa.list_(pa.int32()), nullable=False),
    ]
    return pa.schema(fields + [_vector(f"stage_{stage}", width, pa.float32()) for stage, width in widths.items()])


def similarity_schema(rows: int, topics: int) -> pa.Schema:
    """A document's similarities: ``rows`` (the full embedding, then the heads) × ``topics``."""
    return pa.schema([pa.field("doc", pa.int32(), nullable=False), _vector("values", rows * topics, pa.float16())])


MAP = pa.schema(
    [
        pa.field("doc", pa.int32(), nullable=False),
        pa.field("head", pa.int16(), nullable=False),
        pa.field("x", pa.float32(), nullable=False),
        pa.field("y", pa.float32(), nullable=False),
        pa.field("activation", pa.float32(), nullable=False),
        pa.field("fitted", pa.bool_(), nullable=False),
    ]
)
"""``head`` from 1; a point that was not fitted was placed among those that were."""

PREVIEW = pa.schema(
    [
        pa.field("stage", pa.int8(), nullable=False),
        *(MAP.field(name) for name in ("doc", "head", "x", "y")),
    ]
)
"""``map/preview.parquet``: the points of the small maps, all heads of a few documents at every stage."""

_STAGE = pa.field("stage", pa.int8(), nullable=False)
_SLICING = pa.field("slicing", pa.string(), nullable=False)
_HEAD = pa.field("head", pa.int16(), nullable=False)
_TASK = pa.field("task", pa.string(), nullable=False)
_LAYER = pa.field("layer", pa.int16(), nullable=False)
_ASPECT = pa.field("aspect", pa.string(), nullable=False)
_OTHER = pa.field("other", pa.string(), nullable=False)
_TERM = (pa.field("kind", pa.string(), nullable=False), pa.field("layer", pa.int16()), pa.field("head", pa.int16()))

ANALYSIS: dict[str, pa.Schema] = {
    # How often the labelled topic is within the nearest 1, 5, 10; head 0 is the full embedding, null a pooling.
    "topic_match": pa.schema(
        [
            _STAGE,
            _SLICING,
            pa.field("method", pa.string(), nullable=False),
            pa.field("head", pa.int16()),
            pa.field("within", pa.int8(), nullable=False),
            *_figures("rate", "low", "high", "chance", "majority"),
            pa.field("documents", pa.int32(), nullable=False),
        ]
    ),
    "mismatches": pa.schema(
        [
            _STAGE,
            pa.field("doc", pa.int32(), nullable=False),
            pa.field("label", pa.string(), nullable=False),
            pa.field("nearest", pa.string(), nullable=False),
            pa.field("rank", pa.int16(), nullable=False),
            pa.field("margin", pa.float32(), nullable=False),
        ]
    ),
    # Each method's rate less the full embedding's, paired by document.
    "topic_match_differences": pa.schema(
        [
            _STAGE,
            _SLICING,
            pa.field("method", pa.string(), nullable=False),
            pa.field("head", pa.int16()),
            pa.field("within", pa.int8(), nullable=False),
            *_figures("difference", "low", "high"),
        ]
    ),
    # Topic match by examples: head 0 is the full embedding. Only topics with enough documents are references.
    "example_match": pa.schema(
        [
            _STAGE,
            _HEAD,
            *_figures("rate", "low", "high", "chance"),
            pa.field("documents", pa.int32(), nullable=False),
            pa.field("topics", pa.int16(), nullable=False),
        ]
    ),
    # A topic's reference by examples: the sum of its centred documents. Without a topic: the mean of all documents.
    "examples": pa.schema(
        [
            _STAGE,
            pa.field("topic", pa.string()),
            pa.field("documents", pa.int32(), nullable=False),
            pa.field("vector", pa.list_(pa.field("element", pa.float32())), nullable=False),
        ]
    ),
    # Where each head lies among random slices of the same size.
    "null": pa.schema(
        [
            _STAGE,
            pa.field("measure", pa.string(), nullable=False),
            _HEAD,
            *_figures("value", "percentile", "p", "p_adjusted"),
            pa.field("verdict", pa.string(), nullable=False),
        ]
    ),
    # All heads of a stage together against random slices; see core/analysis/null.py.
    "null_summary": pa.schema(
        [
            _STAGE,
            pa.field("measure", pa.string(), nullable=False),
            pa.field("slicings", pa.int32(), nullable=False),
            pa.field("documents", pa.int32(), nullable=False),
            *_figures("heads", "slices", "slices_sd", "slices_low", "slices_high", "slices_least", "slices_most"),
            *_figures("spread", "slices_spread", "slices_spread_high", "spread_p", "flagged"),
            *_figures("largest_slice", "largest_slice_high", "largest_p"),
            pa.field("best_head", pa.int16()),
            *_figures("best", "best_slice", "best_slice_high", "best_p"),
            *_figures("difference", "difference_low", "difference_high"),
        ]
    ),
    # The same architecture with random weights: head 0 is the mean over its heads.
    "untrained": pa.schema(
        [
            _STAGE,
            pa.field("measure", pa.string(), nullable=False),
            _HEAD,
            *_figures("value", "p_adjusted", "spread", "spread_p", "difference", "difference_low", "difference_high"),
            pa.field("documents", pa.int32(), nullable=False),
        ]
    ),
    # Head 0: the accuracy over all heads; a head: its recall.
    "probe": pa.schema(
        [
            _STAGE,
            _SLICING,
            pa.field("split", pa.string(), nullable=False),
            _HEAD,
            *_figures("value", "low", "high", "chance"),
            pa.field("train", pa.int32(), nullable=False),
            pa.field("test", pa.int32(), nullable=False),
        ]
    ),
    "confusion": pa.schema(
        [
            _STAGE,
            _SLICING,
            pa.field("split", pa.string(), nullable=False),
            _HEAD,
            pa.field("predicted", pa.int16(), nullable=False),
            pa.field("samples", pa.int32(), nullable=False),
        ]
    ),
    # Head 0 is the full embedding. Null: there are no labels, or too few.
    "profiles": pa.schema(
        [
            _STAGE,
            _SLICING,
            _HEAD,
            *_figures("mean", "mean_low", "mean_high", "spread", "low_percentile", "positive"),
            *_figures("explained", "explained_by_chance", "selectivity", "selectivity_low", "selectivity_high"),
            pa.field("topic", pa.string()),
            *_figures("gap", "next_gap", "auc", "auc_low", "auc_high", "auc_by_name"),
            *_figures("alignment", "alignment_low", "alignment_high", "alignment_of_random"),
            *_figures("sparsity", "farthest", "activation", "activation_variation"),
            pa.field("role", pa.string()),
            pa.field("roles", pa.list_(pa.string())),
            pa.field("because", pa.string()),
        ]
    ),
    # ``position``: of the head when alike heads stand together.
    "redundancy": pa.schema(
        [
            _STAGE,
            _HEAD,
            pa.field("other", pa.int16(), nullable=False),
            *_figures("cka", "low", "high"),
            pa.field("position", pa.int16(), nullable=False),
        ]
    ),
    "groups": pa.schema(
        [
            _STAGE,
            *_figures("within", "between", "p"),
            pa.field("pairs_within", pa.int32(), nullable=False),
            pa.field("pairs_between", pa.int32(), nullable=False),
        ]
    ),
    "control": pa.schema(
        [
            _STAGE,
            pa.field("measure", pa.string(), nullable=False),
            *_figures("heads", "heads_low", "heads_high", "random", "random_low", "random_high", "chance"),
        ]
    ),
    # Head 0: the map of all heads together.
    "maps": pa.schema(
        [
            _STAGE,
            _HEAD,
            pa.field("points", pa.int32(), nullable=False),
            pa.field("fitted", pa.int32(), nullable=False),
            pa.field("method", pa.string(), nullable=False),
            *_figures("perplexity"),
            pa.field("iterations", pa.int32(), nullable=False),
            *_figures("kl", "kept", "kept_by_chance", "follows_before", "follows"),
        ]
    ),
    # All queries together, by every way to rank and by chance; a metric that no query has is null.
    "retrieval": pa.schema(
        [
            _STAGE,
            _TASK,
            pa.field("way", pa.string(), nullable=False),
            pa.field("metric", pa.string(), nullable=False),
            pa.field("k", pa.int8(), nullable=False),
            *_figures("value", "low", "high"),
            pa.field("queries", pa.int32(), nullable=False),
        ]
    ),
    # ``goes``: its place in the greedy order, 1 goes first; ``kept``: in the smallest set that is enough.
    "importance": pa.schema(
        [
            _STAGE,
            _TASK,
            pa.field("way", pa.string(), nullable=False),
            _HEAD,
            *_figures("lost", "lost_low", "lost_high", "alone", "alone_low", "alone_high", "activation", "score"),
            pa.field("goes", pa.int16(), nullable=False),
            pa.field("kept", pa.bool_(), nullable=False),
        ]
    ),
    # ``heads`` are left; of random orders the mean, and the band that 95 % of them lie in.
    "pruning": pa.schema(
        [
            _STAGE,
            _TASK,
            pa.field("way", pa.string(), nullable=False),
            pa.field("order", pa.string(), nullable=False),
            pa.field("heads", pa.int16(), nullable=False),
            *_figures("value", "low", "high"),
        ]
    ),
    "pruned": pa.schema(
        [
            _STAGE,
            _TASK,
            pa.field("way", pa.string(), nullable=False),
            pa.field("metric", pa.string(), nullable=False),
            pa.field("k", pa.int8(), nullable=False),
            pa.field("heads", pa.int16(), nullable=False),
            *_figures("value", "low", "high", "all", "all_low", "all_high"),
            *_figures("difference", "difference_low", "difference_high"),
            pa.field("claim", pa.string(), nullable=False),
            pa.field("chosen_by", pa.int32(), nullable=False),
            pa.field("told_of", pa.int32(), nullable=False),
        ]
    ),
    # Every way's figures less those of the full embedding, paired by query; ``aspects`` 0 is all queries.
    "way_differences": pa.schema(
        [
            _STAGE,
            _TASK,
            pa.field("way", pa.string(), nullable=False),
            pa.field("metric", pa.string(), nullable=False),
            pa.field("k", pa.int8(), nullable=False),
            pa.field("aspects", pa.int16(), nullable=False),
            pa.field("queries", pa.int32(), nullable=False),
            *_figures("difference", "low", "high"),
        ]
    ),
    # What equally many numbers reach that are chosen otherwise; ``ahead`` is what the kept heads are ahead of them.
    "pruning_rivals": pa.schema(
        [
            _STAGE,
            _TASK,
            pa.field("rival", pa.string(), nullable=False),
            pa.field("heads", pa.int16(), nullable=False),
            *_figures("value", "low", "high", "ahead", "ahead_low", "ahead_high", "p"),
        ]
    ),
    # ``gained`` is against uniform weights; ``strength`` of learned ones, null for the others.
    "weights": pa.schema(
        [
            _STAGE,
            _TASK,
            pa.field("kind", pa.string(), nullable=False),
            *_figures("value", "low", "high", "gained", "gained_low", "gained_high", "strength"),
        ]
    ),
    "head_weights": pa.schema(
        [_STAGE, _TASK, pa.field("kind", pa.string(), nullable=False), _HEAD, *_figures("weight")]
    ),
    # Every measure of core.analysis.layer_measures at every layer; head 0 is the full embedding, or all heads together.
    "layers": pa.schema(
        [_LAYER, _STAGE, _HEAD, pa.field("measure", pa.string(), nullable=False), *_figures("value", "low", "high")]
    ),
    # The curves that are drawn of them over depth: null where the run cannot have the figure.
    "layer_curves": pa.schema(
        [
            _LAYER,
            _STAGE,
            pa.field("measure", pa.string(), nullable=False),
            pa.field("series", pa.string(), nullable=False),
            *_figures("value", "low", "high", "chance", "majority"),
        ]
    ),
    # How well each aspect of the corpus is read from each head of each layer, against random slices; head 0 is the full
    # embedding.
    "layer_aspects": pa.schema(
        [
            _LAYER,
            _STAGE,
            _ASPECT,
            _HEAD,
            *_figures("value", "low", "high", "p_adjusted"),
            pa.field("verdict", pa.string()),
            pa.field("documents", pa.int32(), nullable=False),
            *_figures("chance"),
            pa.field("slicings", pa.int32(), nullable=False),
            *_figures("slices", "slices_sd"),
        ]
    ),
    "layer_profiles": pa.schema(
        [
            _LAYER,
            _STAGE,
            _HEAD,
            *_figures("mean", "mean_low", "mean_high", "alignment", "alignment_low", "alignment_high"),
            *_figures("alignment_of_random", "sparsity"),
            pa.field("topic", pa.string()),
            pa.field("role", pa.string()),
            pa.field("because", pa.string()),
        ]
    ),
    # Where each head of a layer lies among random slices of the same size.
    "layer_null": pa.schema(
        [
            _LAYER,
            _STAGE,
            pa.field("measure", pa.string(), nullable=False),
            _HEAD,
            *_figures("value", "p_adjusted"),
            pa.field("verdict", pa.string(), nullable=False),
        ]
    ),
    # All heads of a layer together against random slices; the lists have one number per slicing.
    "layer_null_summary": pa.schema(
        [
            _LAYER,
            _STAGE,
            pa.field("measure", pa.string(), nullable=False),
            pa.field("slicings", pa.int32(), nullable=False),
            pa.field("documents", pa.int32(), nullable=False),
            *_figures("full", "heads", "slices", "slices_low", "slices_high", "slices_least", "slices_most"),
            *_figures("spread", "slices_spread", "slices_spread_high", "spread_p", "flagged"),
            pa.field("slices_spreads", pa.list_(pa.field("element", pa.float32())), nullable=False),
            pa.field("best_head", pa.int16()),
            *_figures("best", "best_slice", "best_slice_high", "best_p"),
            pa.field("best_slices", pa.list_(pa.field("element", pa.float32()))),
            *_figures("difference", "difference_low", "difference_high"),
        ]
    ),
    # Each topic's gap to the rest, of topics that have enough documents in the sample.
    "layer_topics": pa.schema(
        [
            _LAYER,
            _STAGE,
            _HEAD,
            pa.field("topic", pa.string(), nullable=False),
            *_figures("gap", "low", "high"),
            pa.field("documents", pa.int32(), nullable=False),
        ]
    ),
    # The documents of the sample that are most and least similar to their own topic.
    "layer_documents": pa.schema(
        [
            _LAYER,
            _STAGE,
            _HEAD,
            pa.field("side", pa.string(), nullable=False),
            pa.field("place", pa.int8(), nullable=False),
            pa.field("doc", pa.int32(), nullable=False),
            *_figures("similarity"),
        ]
    ),
    # How well an aspect is read from each head alone (0: the full embedding), and where it lies among random slices.
    "aspects": pa.schema(
        [
            _STAGE,
            _ASPECT,
            pa.field("measure", pa.string(), nullable=False),
            _HEAD,
            *_figures("value", "low", "high", "percentile", "p", "p_adjusted"),
            pa.field("verdict", pa.string()),
        ]
    ),
    "aspect_summary": pa.schema(
        [
            _STAGE,
            _ASPECT,
            pa.field("measure", pa.string(), nullable=False),
            pa.field("source", pa.string(), nullable=False),
            pa.field("classes", pa.int32(), nullable=False),
            pa.field("documents", pa.int32(), nullable=False),
            *_figures("chance", "majority", "penalty", "full_penalty"),
            pa.field("slicings", pa.int32(), nullable=False),
            *_figures("heads", "slices", "slices_sd", "slices_low", "slices_high", "slices_least", "slices_most"),
            *_figures("spread", "slices_spread", "slices_spread_high", "spread_p", "flagged", "largest_p"),
        ]
    ),
    # The values of each aspect: their documents in the corpus, and how many of them were probed.
    "aspect_values": pa.schema(
        [
            _STAGE,
            _ASPECT,
            pa.field("code", pa.int32(), nullable=False),
            pa.field("value", pa.string(), nullable=False),
            pa.field("documents", pa.int32(), nullable=False),
            pa.field("sampled", pa.int32(), nullable=False),
        ]
    ),
    # Do two aspects go together in the corpus (Cramér's V), and in random slices (correlation of the accuracies)?
    "aspect_pairs": pa.schema(
        [
            _STAGE,
            _ASPECT,
            _OTHER,
            pa.field("documents", pa.int32(), nullable=False),
            *_figures("cramers_v", "correlation"),
        ]
    ),
    # An aspect among documents that have the same value of the other one.
    "aspect_within": pa.schema(
        [
            _STAGE,
            _ASPECT,
            _OTHER,
            _HEAD,
            *_figures("value", "low", "high", "chance", "slices", "slices_low", "slices_high"),
            pa.field("documents", pa.int32(), nullable=False),
        ]
    ),
    # What the probe says of every document that it was not trained on: the full embedding first, then every head.
    "aspect_documents": pa.schema(
        [
            _STAGE,
            _ASPECT,
            pa.field("doc", pa.int32(), nullable=False),
            pa.field("code", pa.int32(), nullable=False),
            pa.field("predicted", pa.list_(pa.field("element", pa.int16())), nullable=False),
        ]
    ),
    # Each term's signed part of the embedding's length, over a sample: those of one document add up to 1. ``kind`` is
    # one of core.model.ledger.KINDS, or a sum of terms (core.analysis.embedding_parts); see there for layer and head.
    "parts": pa.schema(
        [
            *_TERM,
            *_figures("mean", "low", "high", "spread", "explained", "explained_by_chance"),
            pa.field("documents", pa.int32(), nullable=False),
        ]
    ),
    # By topic: the mean, and its gap to all other labelled documents with the gap's interval.
    "part_topics": pa.schema(
        [
            *_TERM,
            pa.field("topic", pa.string(), nullable=False),
            *_figures("mean", "gap", "low", "high"),
            pa.field("documents", pa.int32(), nullable=False),
        ]
    ),
    # What each term adds to the cosine of two random documents; 95 % of pairs lie between ``low`` and ``high``.
    "pair_parts": pa.schema([*_TERM, *_figures("mean", "low", "high"), pa.field("pairs", pa.int32(), nullable=False)]),
    # Every layer and head, both from 1; see core/analysis/attention_measures.py. Null: impossible, as "next" if causal.
    "attention": pa.schema(
        [
            _LAYER,
            _HEAD,
            *_figures(*(measure + end for measure in ATTENTION_MEASURES for end in ATTENTION_ENDS)),
            pa.field("type", pa.string(), nullable=False),
            pa.field("types", pa.list_(pa.string())),
            pa.field("because", pa.string(), nullable=False),
        ]
    ),
    # Every head of the layers that were swept, key/value groups (``head`` is their number) and whole layers (head 0): a
    # measure without it, the change against the unchanged model, and that of as large removals in random directions.
    "ablation": pa.schema(
        [
            _LAYER,
            pa.field("kind", pa.string(), nullable=False),
            _HEAD,
            pa.field("measure", pa.string(), nullable=False),
            pa.field("documents", pa.int32(), nullable=False),
            *_figures("plain", "value", "change", "low", "high"),
            *_figures("noise", "noise_low", "noise_high", "p", "p_adjusted"),
            pa.field("verdict", pa.string()),
        ]
    ),
    "ablation_noise": pa.schema(
        [
            _LAYER,
            pa.field("kind", pa.string(), nullable=False),
            pa.field("draw", pa.int32(), nullable=False),
            pa.field("measure", pa.string(), nullable=False),
            *_figures("change"),
        ]
    ),
    # More and more heads off, measured on the half of the sample on which they were not chosen; which heads are off is
    # there for the greedy order. No rows where the step was not asked to prune.
    "ablation_pruning": pa.schema(
        [
            pa.field("order", pa.string(), nullable=False),
            pa.field("removed", pa.int32(), nullable=False),
            pa.field("off_layers", pa.list_(pa.field("element", pa.int16()))),
            pa.field("off_heads", pa.list_(pa.field("element", pa.int16()))),
            pa.field("enough", pa.bool_(), nullable=False),
            *_figures("value", "low", "high", "lost", "lost_low", "lost_high"),
        ]
    ),
    # The documents that move most without a head, in degrees, with their nearest ones and topics before and after.
    "ablation_moved": pa.schema(
        [
            _LAYER,
            _HEAD,
            pa.field("place", pa.int8(), nullable=False),
            pa.field("doc", pa.int32(), nullable=False),
            *_figures("angle"),
            pa.field("before", pa.list_(pa.field("element", pa.int32())), nullable=False),
            pa.field("after", pa.list_(pa.field("element", pa.int32())), nullable=False),
            pa.field("topic_before", pa.string()),
            pa.field("topic_after", pa.string()),
        ]
    ),
    # The average pattern: ``share`` of a head's attention at each distance, the first token's left out.
    "attention_patterns": pa.schema(
        [
            _LAYER,
            _HEAD,
            pa.field("offset", pa.int16(), nullable=False),
            *_figures("share", "shuffled"),
        ]
    ),
    # By head: the share of tokens that rest on the first one, the experiment with repeated random tokens
    # (core/analysis/induction.py), and whether attention follows similar words (core/analysis/word_similarity.py).
    "attention_scores": pa.schema(
        [
            _LAYER,
            _HEAD,
            *_figures("rests", "elsewhere"),
            *_figures(
                *(name + end for name in ("induction", "duplicate") for end in ("", "_low", "_high", "_unrepeated"))
            ),
            *_figures(*(f"similarity{end}" for end in ("", "_low", "_high", "_exchanged", "_p"))),
        ]
    ),
    # All types of each head, the strongest first, with what decided each.
    "attention_claims": pa.schema(
        [
            _LAYER,
            _HEAD,
            pa.field("nth", pa.int16(), nullable=False),
            pa.field("type", pa.string(), nullable=False),
            *_figures("strength"),
            pa.field("because", pa.string(), nullable=False),
        ]
    ),
    # How often a head's most attended other word is the right one: see core/analysis/word_attention.py.
    "relations": pa.schema(
        [
            _LAYER,
            _HEAD,
            pa.field("relation", pa.string(), nullable=False),
            pa.field("pairs", pa.int32(), nullable=False),
            *_figures("chosen", "score", "low", "high"),
            pa.field("fixed_offset", pa.int32(), nullable=False),
            *_figures("offset_score", "shuffled", "p", "p_adjusted"),
            pa.field("beyond", pa.bool_(), nullable=False),
        ]
    ),
    # Sentences for the heads of a type; indices of words from 0, −1 where no other word is attended to.
    "relation_examples": pa.schema(
        [
            _LAYER,
            _HEAD,
            pa.field("type", pa.string(), nullable=False),
            pa.field("example", pa.int16(), nullable=False),
            pa.field("relation", pa.string()),
            pa.field("words", pa.list_(pa.string()), nullable=False),
            *(pa.field(name, pa.list_(pa.int32()), nullable=False) for name in ("starts", "right", "attended")),
        ]
    ),
}
"""``analysis/<name>.parquet``."""


def check_schema(path: Path, found: pa.Schema, expected: pa.Schema, rebuild: str) -> None:
    """Refuses a file that lacks a column or has it in another type; further columns are no harm."""
    name = short_name(path)
    for field in expected:
        index = found.get_field_index(field.name)
        if index < 0:
            raise Mistake(f"{name} has no column '{field.name}'. Rebuild it with '{rebuild}'.")
        if not _same_type(found.field(index).type, field.type):
            raise Mistake(
                f"{name} has the column '{field.name}' as {found.field(index).type}, not {field.type}. "
                f"Rebuild it with '{rebuild}'."
            )


def short_name(path: Path) -> str:
    """A file of a run as people know it, with the folder where the name alone says little."""
    return "/".join(path.parts[-3:] if path.parent.name.startswith("stage=") else path.parts[-1:])


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
