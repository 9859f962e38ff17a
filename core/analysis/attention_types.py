"""What kind of attention a head has, by written rules; what decided it is kept with the verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from core.analysis.attention_measures import ENDS, MEASURES
from core.analysis.rules import Rule, Verdict, judged

MIXED = "mixed"


@dataclass(frozen=True)
class AttentionEvidence:
    """One head's measures by the columns' names; NaN where a measure is impossible, as looking ahead may be."""

    figures: Mapping[str, float]

    @classmethod
    def of(cls, row: Mapping[str, object]) -> AttentionEvidence:
        """From a row of ``analysis/attention.parquet``."""
        names = [measure + end for measure in MEASURES for end in ENDS]
        return cls({name: _or_nan(row.get(name)) for name in names})

    def __call__(self, name: str) -> float:
        return self.figures[name]

    def times_shuffled(self, measure: str) -> float:
        """How many times what shuffled positions give."""
        shuffled = self(f"{measure}_shuffled")
        return self(measure) / shuffled if shuffled > 0 else float("nan")

    def surely(self, measure: str, least: float, low: float) -> bool:
        """Whether the mean is at least ``least``, and its interval above ``low``."""
        return self(measure) >= least and self(f"{measure}_low") >= low


def _share(measure: str, words: str) -> Callable[[AttentionEvidence], str]:
    return lambda e: (
        f"{e(measure):.0%} of its attention {words} ({e(f'{measure}_low'):.0%} to {e(f'{measure}_high'):.0%}); "
        f"shuffled {e(f'{measure}_shuffled'):.1%}"
    )


RULES: dict[str, Rule[AttentionEvidence]] = {
    "previous token": Rule(
        "At least 40 % of the attention goes to the token before (its interval above 30 %).",
        lambda e: e.surely("previous", 0.4, 0.3),
        _share("previous", "is on the token before"),
    ),
    "next token": Rule(
        "At least 40 % of the attention goes to the token after (its interval above 30 %); impossible in a causal "
        "model.",
        lambda e: e.surely("next", 0.4, 0.3),
        _share("next", "is on the token after"),
    ),
    "sink": Rule(
        "At least half of the attention rests on the text's first token, whatever it is (its interval above 40 %).",
        lambda e: e.surely("first", 0.5, 0.4),
        _share("first", "rests on the first token"),
    ),
    "delimiter": Rule(
        "At least half of the attention goes to special tokens, punctuation and line breaks (its interval above 40 %), "
        "and at least twice what shuffled positions give.",
        lambda e: e.surely("delimiters", 0.5, 0.4) and e.times_shuffled("delimiters") >= 2,
        _share("delimiters", "is on delimiters"),
    ),
    "rare token": Rule(
        "Rare tokens get at least half as much again as their share of the text (its interval above a quarter).",
        lambda e: e.surely("rare", 1.5 * e("rare_shuffled"), 1.25 * e("rare_shuffled")),
        lambda e: (
            f"{e('rare'):.0%} of its attention is on rare tokens ({e('rare_low'):.0%} to {e('rare_high'):.0%}), "
            f"{e.times_shuffled('rare'):.1f} times their share of {e('rare_shuffled'):.0%}"
        ),
    ),
    "local": Rule(
        "At least 60 % of the attention stays within 8 tokens (its interval above 50 %), and at least twice what "
        "shuffled positions give.",
        lambda e: e.surely("window", 0.6, 0.5) and e.times_shuffled("window") >= 2,
        _share("window", "is within 8 tokens"),
    ),
    "long-range": Rule(
        "It looks at least a fifth farther than shuffled positions would (its interval above a tenth).",
        lambda e: e.surely("distance", 1.2 * e("distance_shuffled"), 1.1 * e("distance_shuffled")),
        lambda e: (
            f"mean distance {e('distance'):.0f} tokens ({e('distance_low'):.0f} to {e('distance_high'):.0f}); "
            f"shuffled {e('distance_shuffled'):.0f}"
        ),
    ),
    "broad": Rule(
        "It looks at many tokens alike: entropy at least 0.8 of what is possible (its interval above 0.75).",
        lambda e: e.surely("entropy", 0.8, 0.75),
        lambda e: f"entropy {e('entropy'):.2f} ({e('entropy_low'):.2f} to {e('entropy_high'):.2f}) of what is possible",
    ),
}
"""In order: the first that holds is the type. The more particular come first."""

MIXED_SENTENCE = "It meets no type's criteria: its attention is divided."
TYPES = (*RULES, MIXED)


def type_of(evidence: AttentionEvidence) -> Verdict:
    """The types of a head with these measures; without a name it is MIXED."""
    return judged(RULES, evidence, lambda e: because(e, MIXED))


def because(evidence: AttentionEvidence, type_: str) -> str:
    """What decided one type."""
    if type_ in RULES:
        return RULES[type_].because(evidence)
    shares = {"previous": "token before", "first": "first token", "delimiters": "delimiters", "window": "within 8"}
    figures = ", ".join(f"{words} {evidence(measure):.0%}" for measure, words in shares.items())
    return f"no rule holds: {figures}, entropy {evidence('entropy'):.2f}"


def sentence(type_: str) -> str:
    """The rule in words."""
    return RULES[type_].sentence if type_ in RULES else MIXED_SENTENCE


def _or_nan(value: object) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")
