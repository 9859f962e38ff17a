"""A head's role, by written rules; the numbers that decided are stored with the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.analysis.rules import Rule, Verdict, judged
from core.analysis.wording import percent


@dataclass(frozen=True)
class RoleEvidence:
    """One head's numbers, as far as roles need them; see core/analysis/profiles.py for what they mean."""

    mean: float
    mean_low: float
    mean_high: float
    spread: float
    low_percentile: float
    positive: float
    topic: str | None
    gap: float
    next_gap: float
    auc: float
    auc_low: float
    auc_by_name: float
    """The same topic's documents against the rest, all by their similarity to that topic's name."""
    alignment: float
    alignment_low: float
    alignment_of_random: float
    """The largest of as many random slices: a slice of the embedding follows the whole to some extent anyway."""
    sparsity: float
    farthest: float
    against_slices: Mapping[str, str] | None = None
    """By measure: whether the head is above, within or below random slices; None where that was not computed."""


RULES: dict[str, Rule[RoleEvidence]] = {
    "selective": Rule(
        "One topic's documents stand out: AUC at least 0.9 (95 % CI above 0.8) by their own topics and at least 0.75 "
        "by that topic's name, and a gap of at least 0.05 and 1.5 times the next topic's.",
        lambda e: (
            e.auc >= 0.9
            and e.auc_low >= 0.8
            and e.auc_by_name >= 0.75
            and e.gap >= 0.05
            and e.gap >= 1.5 * max(0.0, e.next_gap)  # in this order: without a second topic it is NaN, and 0 counts
        ),
        lambda e: (
            f"{e.topic}: gap {e.gap:.2f} (next topic {_or_unknown(e.next_gap)}), AUC {e.auc:.2f} "
            f"(95 % CI from {e.auc_low:.2f}), by the topic's name {e.auc_by_name:.2f}; chance 0.50"
        ),
    ),
    "sparse": Rule(
        "Single documents stand out: the 2 % farthest from the median account for at least half of the squared "
        "deviation (0.14 in a normal distribution), and one is at least 0.1 away.",
        lambda e: e.sparsity >= 0.5 and e.farthest >= 0.1,
        lambda e: (
            f"2 % of the documents account for {percent(e.sparsity)} of the deviation (normal: 14 %), up to "
            f"{e.farthest:.2f}"
        ),
    ),
    "uniform": Rule(
        "Hardly varies: the standard deviation over documents is below 0.02.",
        lambda e: e.spread < 0.02,
        lambda e: f"standard deviation {e.spread:.3f}, mean {e.mean:.2f}",
    ),
    "avoiding": Rule(
        "Negative for nearly all documents: at least nine in ten, with the mean's 95 % CI below 0.",
        lambda e: e.mean_high < 0 and e.positive <= 0.1,
        lambda e: f"mean {e.mean:.2f} ({e.mean_low:.2f} to {e.mean_high:.2f}), {percent(1 - e.positive)} not above 0",
    ),
    "aligned": Rule(
        "Ranks a topic's documents as the full embedding does: rank correlation at least 0.5, with its 95 % CI above "
        "the largest of as many random slices.",
        lambda e: e.alignment >= 0.5 and e.alignment_low > e.alignment_of_random,
        lambda e: (
            f"rank correlation {e.alignment:.2f} (95 % CI from {e.alignment_low:.2f}), "
            f"random slices at most {e.alignment_of_random:.2f}"
        ),
    ),
    "general": Rule(
        "High for nearly all documents: 95 % have a similarity above 0.1, whatever their topic.",
        lambda e: e.low_percentile >= 0.1,
        lambda e: f"mean {e.mean:.2f}, 95 % of the documents above {e.low_percentile:.2f}",
    ),
}
"""In order: the first that holds is the role. The more particular come first."""

BEYOND: dict[str, tuple[str, str]] = {
    "selective": ("selectivity", "above"),
    "sparse": ("sparsity", "above"),
    "uniform": ("spread", "below"),
    "avoiding": ("mean", "below"),
    "aligned": ("alignment", "above"),
    "general": ("mean", "above"),
}
"""By role: the measure in which the head must also lie beyond random slices, and on which side."""


def role_of(evidence: RoleEvidence) -> Verdict:
    """The role of a head with these numbers; one that random slices show as well is not claimed."""
    seen = evidence.against_slices
    rules = {name: rule for name, rule in RULES.items() if seen is None or seen.get(BEYOND[name][0]) == BEYOND[name][1]}
    return judged(rules, evidence, _no_role)


def _no_role(e: RoleEvidence) -> str:
    return (
        f"no rule holds: mean {e.mean:.2f}, spread {e.spread:.2f}, best topic AUC {_or_unknown(e.auc)}, "
        f"rank correlation {e.alignment:.2f} (random slices at most {e.alignment_of_random:.2f})"
    )


def _or_unknown(value: float) -> str:
    return "unknown" if value != value else f"{value:.2f}"
