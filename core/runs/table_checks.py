"""Are the rows of ``analysis/`` such as the run can have? A file may have the right columns and other rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.errors import Mistake
from core.model.stages import SLICINGS
from core.runs import vocabulary as known
from core.runs.manifest import Manifest


@dataclass(frozen=True)
class Sizes:
    """What a run's tables are made of."""

    stages: tuple[int, ...]
    documents: int
    heads: int
    topics: int
    labelled: int
    layers: int

    @classmethod
    def of(cls, manifest: Manifest, maker: str = "analyse") -> Sizes:
        """``maker`` is the step that made a table: one that works on a sample has other counts than ``analyse``."""
        steps = [manifest.steps[name] for name in ("analyse", maker) if name in manifest.steps]
        counts = {name: count for step in steps for name, count in step.counts.items()}
        return cls(
            manifest.swept_stages if maker == "layers" else manifest.stages,
            int(manifest.corpus["documents"]),
            manifest.shape.heads,
            int(counts.get("topics", 0)),
            int(counts.get("labelled", 0)),
            manifest.shape.layers,
        )


@dataclass(frozen=True)
class Layout:
    """``each(sizes)`` rows ``per`` stage or layer, whole or, if ``may_lack``, none at all; at most so many if not
    ``exact``.

    ``keys`` tell rows apart; with whole counts and keys in their ranges, every combination is there once.
    """

    keys: tuple[str, ...]
    each: Callable[[Sizes], int]
    exact: bool = True
    may_lack: Callable[[Sizes], bool] = lambda sizes: False
    older: Callable[[Sizes], int] | None = None
    """Rows in runs of older versions, whole as well."""
    never_null: tuple[str, ...] = ()
    """Figures that are never missing."""
    per: str = "stage"
    """The first key, a row of PER: whose every value has ``each(sizes)`` rows; empty: the whole run."""


PER: dict[str, Callable[[Sizes], tuple[int, ...]]] = {
    "stage": lambda sizes: sizes.stages,
    "layer": lambda sizes: tuple(range(1, sizes.layers + 1)),
    "": lambda sizes: (0,),
}

_INTERVAL = ("low", "high", "chance")
_WAYS = (*known.WAYS, known.CHANCE)
_CURVES = sum(map(len, known.LAYER_CURVES.values()))
LAYOUTS: dict[str, Layout] = {
    "topic_match": Layout(
        ("slicing", "method", "head", "within"),
        lambda sizes: 2 * (1 + sizes.heads + len(known.HEAD_POOLINGS)) * len(known.WITHIN),
        may_lack=lambda sizes: not sizes.labelled,
        never_null=("rate", *_INTERVAL, "majority"),
    ),
    "mismatches": Layout(("doc",), lambda sizes: sizes.documents, exact=False),
    "probe": Layout(
        ("slicing", "split", "head"),
        lambda sizes: 2 * len(known.SPLITS) * (1 + sizes.heads),
        may_lack=lambda sizes: True,
        never_null=("value", *_INTERVAL),
    ),
    "confusion": Layout(
        ("slicing", "split", "head", "predicted"),
        lambda sizes: 2 * len(known.SPLITS) * sizes.heads**2,
        may_lack=lambda sizes: True,
    ),
    "profiles": Layout(("slicing", "head"), lambda sizes: 2 * (1 + sizes.heads)),
    "redundancy": Layout(("head", "other"), lambda sizes: sizes.heads**2),
    "groups": Layout((), lambda sizes: 1, exact=False, never_null=("within", "between", "p")),
    "control": Layout(("measure",), lambda sizes: 50, exact=False),
    "topic_match_differences": Layout(
        ("slicing", "method", "head", "within"),
        lambda sizes: 2 * (sizes.heads + len(known.HEAD_POOLINGS)) * len(known.WITHIN),
        may_lack=lambda sizes: not sizes.labelled,
        never_null=("difference", "low", "high"),
    ),
    "example_match": Layout(
        ("head",), lambda sizes: 1 + sizes.heads, may_lack=lambda sizes: True, never_null=("rate", "low", "high")
    ),
    "examples": Layout(("topic",), lambda sizes: 1 + sizes.topics),
    "null": Layout(
        ("measure", "head"),
        lambda sizes: len(known.NULL_MEASURES) * sizes.heads,
        exact=False,
        never_null=("value", "percentile", "p", "p_adjusted"),
    ),
    "null_summary": Layout(
        ("measure",), lambda sizes: len(known.NULL_MEASURES), exact=False, never_null=("heads", "slices", "spread_p")
    ),
    "untrained": Layout(
        ("measure", "head"),
        lambda sizes: len(known.NULL_MEASURES) * (1 + sizes.heads) + 1,
        exact=False,
        never_null=("value",),
    ),
    "aspects": Layout(
        ("aspect", "measure", "head"),
        lambda sizes: known.MOST_ASPECTS * len(known.ASPECT_MEASURES) * (1 + sizes.heads),
        exact=False,
        never_null=("value",),
    ),
    "aspect_summary": Layout(
        ("aspect", "measure"),
        lambda sizes: known.MOST_ASPECTS * len(known.ASPECT_MEASURES),
        exact=False,
        never_null=("chance", "majority", "heads", "slices", "slices_sd", "spread_p", "flagged"),
    ),
    "aspect_values": Layout(
        ("aspect", "code"), lambda sizes: known.MOST_ASPECTS * known.MOST_ASPECT_VALUES, exact=False
    ),
    "aspect_pairs": Layout(
        ("aspect", "other"),
        lambda sizes: known.MOST_ASPECTS**2,
        exact=False,
        never_null=("cramers_v", "correlation"),
    ),
    "aspect_within": Layout(
        ("aspect", "other", "head"),
        lambda sizes: known.MOST_ASPECTS**2 * (1 + sizes.heads),
        exact=False,
        never_null=("value", "chance", "slices"),
    ),
    "aspect_documents": Layout(("aspect", "doc"), lambda sizes: known.MOST_ASPECTS * sizes.documents, exact=False),
    "attention": Layout(("head",), lambda sizes: sizes.heads, per="layer"),
    "attention_patterns": Layout(("head", "offset"), lambda sizes: sizes.heads * (2 * known.FARTHEST + 1), per="layer"),
    "attention_scores": Layout(("head",), lambda sizes: sizes.heads, per="layer"),
    "attention_claims": Layout(
        ("head", "nth"), lambda sizes: sizes.heads * len(known.ATTENTION_TYPES), exact=False, per="layer"
    ),
    "relations": Layout(
        ("head", "relation"),
        lambda sizes: sizes.heads * len(known.ATTENTION_RELATIONS),
        exact=False,
        never_null=("score", "offset_score", "shuffled", "p_adjusted"),
        per="layer",
    ),
    "relation_examples": Layout(
        ("head", "type", "example"),
        lambda sizes: sizes.heads * len(known.ATTENTION_TYPES) * known.TYPE_EXAMPLES,
        exact=False,
        per="layer",
    ),
    "ablation": Layout(
        ("kind", "head", "measure"),
        lambda sizes: (2 * sizes.heads + 1) * (len(known.ABLATION_MEASURES) + known.MOST_ASPECTS),
        exact=False,
        never_null=("plain", "value", "change", "low", "high"),
        per="layer",
    ),
    "ablation_noise": Layout(
        ("kind", "draw", "measure"),
        lambda sizes: 2 * known.MOST_DRAWS * (len(known.ABLATION_MEASURES) + known.MOST_ASPECTS),
        exact=False,
        never_null=("change",),
        per="layer",
    ),
    "ablation_pruning": Layout(
        ("order", "removed"),
        lambda sizes: len(known.ABLATION_ORDERS) * (sizes.layers * sizes.heads + 1),
        exact=False,
        never_null=("value", "low", "high", "lost"),
        per="",
    ),
    "ablation_moved": Layout(
        ("head", "place"), lambda sizes: sizes.heads * known.MOVED, exact=False, never_null=("angle",), per="layer"
    ),
    "maps": Layout(("head",), lambda sizes: 1 + sizes.heads, exact=False, never_null=("kl", "kept", "kept_by_chance")),
    "retrieval": Layout(
        ("task", "way", "metric", "k"),
        lambda sizes: len(known.TASKS) * len(_WAYS) * len(known.METRICS) * known.DEPTH,
        exact=False,
    ),
    "importance": Layout(
        ("task", "way", "head"),
        lambda sizes: len(known.TASKS) * len(known.WAYS) * sizes.heads,
        exact=False,
        never_null=("lost", "lost_low", "lost_high", "alone", "alone_low", "alone_high", "activation", "score"),
    ),
    "pruning": Layout(
        ("task", "way", "order", "heads"),
        lambda sizes: len(known.TASKS) * len(known.WAYS) * len(known.ORDERS) * sizes.heads,
        exact=False,
        never_null=("value", "low", "high"),
    ),
    "pruned": Layout(
        ("task", "way"), lambda sizes: len(known.TASKS) * len(known.WAYS), exact=False, never_null=("value", "all")
    ),
    "way_differences": Layout(
        ("task", "way", "metric", "k", "aspects"),
        lambda sizes: len(known.TASKS) * len(known.WAYS) * 2 * known.MOST_QUERIES,
        exact=False,
        never_null=("difference",),
    ),
    "pruning_rivals": Layout(
        ("task", "rival"),
        lambda sizes: len(known.TASKS) * len(known.RIVALS),
        exact=False,
        never_null=("value", "ahead", "p"),
    ),
    "weights": Layout(
        ("task", "kind"),
        lambda sizes: len(known.TASKS) * len(known.WEIGHT_KINDS),
        exact=False,
        never_null=("value", "gained"),
    ),
    "head_weights": Layout(
        ("task", "kind", "head"),
        lambda sizes: len(known.TASKS) * len(known.WEIGHT_KINDS) * sizes.heads,
        exact=False,
        never_null=("weight",),
    ),
    "layers": Layout(("layer", "head", "measure"), lambda sizes: _cells(sizes) * len(known.LAYER_CURVES)),
    "layer_curves": Layout(
        ("layer", "measure", "series"),
        lambda sizes: sizes.layers * _CURVES,
        older=lambda sizes: sizes.layers * (_CURVES - known.LATER_LAYER_CURVES),
    ),
    "layer_aspects": Layout(
        ("layer", "aspect", "head"),
        lambda sizes: _cells(sizes) * known.MOST_ASPECTS,
        exact=False,
        never_null=("value", "chance", "slices", "slices_sd"),
    ),
    "layer_profiles": Layout(("layer", "head"), lambda sizes: _cells(sizes), may_lack=lambda sizes: not sizes.labelled),
    "layer_null": Layout(
        ("layer", "measure", "head"),
        lambda sizes: sizes.layers * len(known.LAYER_NULL_MEASURES) * sizes.heads,
        exact=False,
        never_null=("value", "p_adjusted"),
    ),
    "layer_null_summary": Layout(
        ("layer", "measure"),
        lambda sizes: sizes.layers * len(known.LAYER_NULL_MEASURES),
        exact=False,
        never_null=("heads", "slices", "spread", "spread_p", "flagged"),
    ),
    "parts": Layout(
        ("kind", "head"), lambda sizes: _parts(sizes), exact=False, never_null=("mean", "low", "high"), per="layer"
    ),
    "part_topics": Layout(
        ("kind", "head", "topic"),
        lambda sizes: _parts(sizes) * sizes.topics,
        exact=False,
        never_null=("mean", "gap"),
        per="layer",
    ),
    "pair_parts": Layout(
        ("kind", "head"), lambda sizes: _parts(sizes), exact=False, never_null=("mean", "low", "high"), per="layer"
    ),
    "layer_topics": Layout(
        ("layer", "head", "topic"), lambda sizes: _cells(sizes) * sizes.topics, exact=False, never_null=("gap",)
    ),
    "layer_documents": Layout(
        ("layer", "head", "side", "place"),
        lambda sizes: _cells(sizes) * len(known.SIDES) * known.TO_READ,
        exact=False,
        never_null=("similarity",),
    ),
}
"""The same names as core.runs.schema.ANALYSIS."""

_FIRST_HEAD = dict.fromkeys(
    (
        *("null", "layer_null", "confusion", "redundancy", "importance", "head_weights", "attention"),
        *("attention_patterns", "attention_scores", "attention_claims", "relations", "relation_examples"),
        *("parts", "part_topics", "pair_parts"),
    ),
    1,
) | {"ablation_moved": 1}
"""The least ``head``, where it is not 0, the full embedding or all heads together."""
_TEXTS = {"slicing": SLICINGS, "split": known.SPLITS, "type": known.ATTENTION_TYPES}
_METHODS = ("full", "head", *known.HEAD_POOLINGS)
_RETRIEVAL = {
    "task": known.TASKS,
    "way": _WAYS,
    "metric": known.METRICS,
    "order": known.ORDERS,
    "kind": known.WEIGHT_KINDS,
    "claim": known.CLAIMS,
}
_OWN_TEXTS: dict[str, dict[str, tuple[object, ...]]] = {
    "topic_match": {"within": known.WITHIN, "method": _METHODS},
    "topic_match_differences": {"within": known.WITHIN, "method": _METHODS},
    "null": {"measure": known.NULL_MEASURES, "verdict": known.NULL_VERDICTS},
    "null_summary": {"measure": known.NULL_MEASURES},
    "untrained": {"measure": (*known.NULL_MEASURES, "groups")},
    "aspects": {"measure": known.ASPECT_MEASURES, "verdict": known.NULL_VERDICTS},
    "aspect_summary": {"measure": known.ASPECT_MEASURES},
    "layers": {"measure": tuple(known.LAYER_CURVES)},
    "layer_curves": {
        "measure": tuple(known.LAYER_CURVES),
        "series": tuple({series for curves in known.LAYER_CURVES.values() for series in curves}),
    },
    "layer_null": {"measure": known.LAYER_NULL_MEASURES, "verdict": known.NULL_VERDICTS},
    "layer_aspects": {"verdict": known.NULL_VERDICTS},
    "layer_null_summary": {"measure": known.LAYER_NULL_MEASURES},
    "layer_documents": {"side": known.SIDES},
    "relations": {"relation": known.ATTENTION_RELATIONS},
    "relation_examples": {"relation": known.ATTENTION_RELATIONS},
    "ablation": {
        "kind": known.ABLATION_KINDS,
        "measure": known.ABLATION_MEASURES,
        "verdict": known.NULL_VERDICTS,
    },
    "ablation_pruning": {"order": known.ABLATION_ORDERS},
    "ablation_noise": {"kind": known.ABLATION_KINDS, "measure": known.ABLATION_MEASURES},
    **{name: {"kind": known.PART_KINDS} for name in ("parts", "part_topics", "pair_parts")},
}
"""By table: the values that a column of it may have."""


def _named(table: str, column: str, values: pa.ChunkedArray) -> set[object]:
    """The column's values; those that name an aspect of the corpus can be any."""
    found = set(values.unique().to_pylist())
    if table in ("ablation", "ablation_noise") and column == "measure":
        found = {name for name in found if not name.startswith(known.ABLATION_ASPECT)}
    return found


def _are_documents(values: pa.ChunkedArray, sizes: Sizes) -> bool:
    return not values.null_count and pc.min(values).as_py() >= 0 and pc.max(values).as_py() < sizes.documents


def _cells(sizes: Sizes) -> int:
    """Of a stage's grid of layers and heads, the full embedding included."""
    return sizes.layers * (1 + sizes.heads)


def _parts(sizes: Sizes) -> int:
    """Rows per layer: its heads, their sum, block and biases; at most six more belong to no layer."""
    return sizes.heads + 3 + 6


def check_rows(name: str, table: pa.Table, sizes: Sizes, remedy: str) -> None:
    """Refuses a table with rows that are missing, twice there, or of what the run does not have."""
    layout = LAYOUTS[name]
    wrong = _wrong_count(layout, table, sizes) or _wrong_values(name, layout, table, sizes)
    if wrong:
        raise Mistake(f"{name}.parquet {wrong}. Rebuild it with '{remedy}'.")


def _wrong_count(layout: Layout, table: pa.Table, sizes: Sizes) -> str:
    places = len(PER[layout.per](sizes))
    whole = layout.each(sizes) * places
    right = {whole, layout.older(sizes) * places} if layout.older else {whole}
    if layout.exact and len(table) not in right and (len(table) or not layout.may_lack(sizes)):
        return f"has {len(table):,} rows, not {whole:,}"
    if len(table) > whole:
        return f"has {len(table):,} rows, more than {whole:,}"
    keys = [*([layout.per] if layout.per else []), *layout.keys]
    return "has duplicate rows" if len(table.select(keys).group_by(keys).aggregate([])) != len(table) else ""


def _wrong_values(name: str, layout: Layout, table: pa.Table, sizes: Sizes) -> str:
    lowest = _FIRST_HEAD.get(name, 0)
    ranges = {
        "doc": (0, sizes.documents - 1),
        "head": (lowest, sizes.heads),
        "other": (1, sizes.heads),
        "predicted": (1, sizes.heads),
        "position": (0, sizes.heads - 1),
        "rank": (1, sizes.topics),
        "samples": (0, 2**31),
        "code": (0, known.MOST_ASPECT_VALUES - 1),
        "heads": (1, sizes.heads),
        "goes": (1, sizes.heads),
        "k": (1, known.DEPTH),
        "query": (0, known.MOST_QUERIES - 1),
        "aspects": (0, 2**15),
        "layer": (1, sizes.layers),
        "place": (1, known.MOVED if name == "ablation_moved" else known.TO_READ),
        "draw": (1, known.MOST_DRAWS),
        "removed": (0, sizes.layers * sizes.heads),
        "offset": (-known.FARTHEST, known.FARTHEST),
    }
    by_size = {key: values(sizes) for key, values in PER.items()}
    allowed = {**by_size, **_TEXTS, **_RETRIEVAL, **_OWN_TEXTS.get(name, {})}
    for column in table.column_names:
        values = table[column].drop_null()
        if not len(values):
            continue
        if column in ranges and pa.types.is_integer(values.type):
            low, high = ranges[column]
            if pc.min(values).as_py() < low or pc.max(values).as_py() > high:
                return f"has '{column}' values outside {low} to {high}"
        if column in allowed and not _named(name, column, values) <= set(allowed[column]):
            return f"has '{column}' values that are not known"
        if pa.types.is_fixed_size_list(values.type) or pa.types.is_list(values.type):
            values = pc.list_flatten(values)
            if name == "ablation_moved" and len(values) and not _are_documents(values, sizes):
                return f"names documents in '{column}' that the run does not have"
        if pa.types.is_floating(values.type) and np.isinf(values.to_numpy()).any():
            return f"has a number in '{column}' that is not finite"
    missing = next((column for column in layout.never_null if table[column].null_count), None)
    return f"has missing values in '{missing}'" if missing else ""
