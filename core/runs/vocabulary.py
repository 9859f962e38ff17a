"""What the columns of a run's tables may hold, beside the schema: storage knows no analysis.

A test compares these names with the tables of core.analysis and core.retrieval that write them.
"""

from __future__ import annotations

from core.model.stages import HEADS, RANDOM

TOPICS_SHA256 = "c16bf9c35b218653959a953423b45baef37735a9e632962daa8e53d25d88bfa8"
"""Of FineWeb's 39 topics, joined by line breaks (core.analysis.topics.original)."""

WITHIN = (1, 5, 10)
HEAD_POOLINGS = ("mean of vectors", "mean of cosines", "max of cosines")
SPLITS = ("sample", "document")
NULL_MEASURES = (
    *("names", "examples", "neighbour", "selectivity", "alignment", "mean", "spread", "sparsity"),
    "probe",
)
"""What heads are compared with random slices by."""
NULL_VERDICTS = ("above", "within", "below")

ATTENTION_MEASURES = (
    *("previous", "same", "next", "first", "delimiters"),
    *("distance", "entropy", "window", "rare"),
)
ATTENTION_ENDS = ("", "_low", "_high", "_shuffled")
"""Of the names of columns: a measure's mean, its interval, and what shuffled positions give."""
ATTENTION_TYPES = (
    *("subject–verb", "verb–object", "modifier", "coreference", "induction", "duplicate token", "semantic similarity"),
    *("previous token", "next token", "sink", "delimiter", "rare token"),
    *("local", "long-range", "broad", "mixed"),
)
ATTENTION_RELATIONS = (
    *("subject → verb", "object → verb", "determiner → noun", "adjective → noun"),
    *("preposition → its object", "auxiliary → verb", "possessive → noun", "pronoun → antecedent"),
    *("verb → subject", "verb → object", "noun → determiner", "noun → adjective"),
    *("object → its preposition", "verb → auxiliary", "noun → possessive", "antecedent → pronoun"),
)
"""Relations between words, then the same ones read the other way."""
TYPE_EXAMPLES = 5
FARTHEST = 32
"""Tokens between the ends of an attention pattern and its middle."""

ASPECT_MEASURES = ("accuracy", "balanced", "neighbours")
"""What a head is said to carry an aspect by."""
MOST_ASPECTS, MOST_ASPECT_VALUES = 24, 10_000

LAYER_CURVES = {
    "topic_match": ("full", HEADS, RANDOM),
    "selectivity": ("full", HEADS, RANDOM),
    "probe": (HEADS, RANDOM, "difference"),
    "groups": ("within", "between"),
    "activation": (HEADS,),
}
LATER_LAYER_CURVES = 1
"""Of these, how many runs of older versions do not have: the probe's difference."""
LAYER_NULL_MEASURES = ("names", "examples", "selectivity", "alignment", "mean", "spread", "sparsity")
"""What heads are compared with random slices by at every layer."""
PART_KINDS = ("embedding", "head", "mlp", "bias", "heads", "mlps", "biases", "total")
"""Terms of an embedding, and sums of them."""
SIDES = ("most", "least")
TO_READ = 5
"""Documents of each side."""

ABLATION_KINDS = ("head", "group", "layer")
ABLATION_MEASURES = ("names", "examples", "same topic", "queries", "angle")
ABLATION_ASPECT = "aspect:"
"""What a measure begins with that is of one of the corpus's aspects, whose name follows."""
ABLATION_ORDERS = ("greedy", "angle", "share", "random")
"""In which heads are switched off one after another."""
MOST_DRAWS = 1_000
"""Random removals per layer."""
MOVED = 10
"""Documents that are listed for each head that is switched off."""

TASKS = ("queries", "same topic", "topic match")
SIDE_BY_SIDE = "side by side"
WAYS = ("full", "mean", "max", "weighted", "voting", "decay", "distance", "split", "fusion", SIDE_BY_SIDE)
CHANCE = "chance"
METRICS = ("success", "category", "all found", "weighted", "ndcg", "mrr")
ORDERS = ("greedy", "activation", "random")
WEIGHT_KINDS = ("uniform", "mrag", "learned")
RIVALS = ("random slices", "random heads", "random dimensions", "first dimensions", "PCA")
CLAIMS = ("better", "worse", "no difference shown")
DEPTH = 32
MOST_QUERIES = 20_000
