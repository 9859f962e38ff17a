"""What the layer sweep measures at every layer, stage and head: one table for the job, the files and the page."""

from __future__ import annotations

from dataclasses import dataclass

from core.model.stages import HEADS, RANDOM

DOCUMENTS = 300
"""Of the sample, unless another number is asked for."""
MOST, LEAST = "most", "least"
SIDES = (MOST, LEAST)
TO_READ = 5
"""Documents that are kept of each side: those most and least similar to their own topic in a head."""


@dataclass(frozen=True)
class Measure:
    """What is measured, in words, and the curves that are drawn of it over depth."""

    name: str
    sentence: str
    series: dict[str, str]
    """Name of a curve -> what it is of."""
    band: str = "95 % interval"
    """What the space around a curve is."""
    labels: bool = False
    """Whether documents need a topic for it."""
    top: float | None = 1.0
    """The end of its scale, if it has one."""
    in_percent: bool = False
    """Whether people see it as a share of a hundred."""


FULL, WITHIN_GROUP, BETWEEN_GROUPS = "full", "within", "between"
DIFFERENCE = "difference"
"""Heads less random slices, paired: a figure of its own, not drawn among the curves."""
MEASURES: dict[str, Measure] = {
    "topic_match": Measure(
        "Topic match",
        "How often the labelled topic is the nearest of all topic names.",
        {FULL: "full embedding", HEADS: "one head alone, mean", RANDOM: "random slice alone, mean"},
        labels=True,
        in_percent=True,
    ),
    "selectivity": Measure(
        "Topic selectivity",
        "How much of the variation in documents' similarity to their own topic the topics explain, beyond chance. Each "
        "topic's mean similarity to all documents is subtracted first.",
        {FULL: "full embedding", HEADS: "heads, median", RANDOM: "random slices, median"},
        band="95 % CI of the full embedding; lowest to highest of the heads and slices",
        labels=True,
    ),
    "probe": Measure(
        "Probe accuracy",
        "How often the probe identifies the head from its vector, in documents that it has not seen.",
        {HEADS: "heads", RANDOM: "random slices", DIFFERENCE: "heads less random slices, paired by split"},
        in_percent=True,
    ),
    "groups": Measure(
        "Key/value groups (CKA)",
        "How much more alike heads are if they share a key/value head.",
        {WITHIN_GROUP: "pairs that share a key/value head", BETWEEN_GROUPS: "pairs that do not"},
    ),
    "activation": Measure("Activation", "The mean length of a head's vector.", {HEADS: "heads, mean"}, top=None),
}
CURVES = tuple((measure, series) for measure, found in MEASURES.items() for series in found.series)
"""Every curve of every measure."""
