"""What kind of attention a head has, by written rules; what decided it is kept with the verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from core.analysis.attention_measures import ENDS, MEASURES
from core.analysis.rules import Rule, Verdict, judged
from core.analysis.type_claims import TypeClaim
from core.analysis.wording import percent

MIXED = "mixed"


@dataclass(frozen=True)
class AttentionEvidence:
    """One head's measures by the columns' names; NaN where a measure is impossible, as looking ahead may be."""

    figures: Mapping[str, float]
    claims: Mapping[str, TypeClaim] = field(default_factory=dict)
    """Types that experiments have shown."""

    @classmethod
    def of(cls, row: Mapping[str, object], claims: Mapping[str, TypeClaim] | None = None) -> AttentionEvidence:
        """From a row of ``analysis/attention.parquet``, and for the tokens that rest, ``rests``."""
        names = [*(measure + end for measure in MEASURES for end in ENDS), "rests"]
        return cls({name: _or_nan(row.get(name)) for name in names}, claims or {})

    def __call__(self, name: str) -> float:
        return self.figures[name]

    def times_shuffled(self, measure: str) -> float:
        """How many times what shuffled positions give."""
        shuffled = self(f"{measure}_shuffled")
        return self(measure) / shuffled if shuffled > 0 else float("nan")

    def surely(self, measure: str, least: float, low: float) -> bool:
        """Whether the mean is at least ``least``, and its interval above ``low``."""
        return self(measure) >= least and self(f"{measure}_low") >= low

    def strength(self, type_: str) -> float:
        """How far beyond its baseline a type is that competes for being the first; 0 for those that do not."""
        if type_ in self.claims:
            return self.claims[type_].strength
        measure = _COMPETE.get(type_)
        return self(measure) - self(f"{measure}_shuffled") if measure else 0.0


_COMPETE = {"previous token": "previous", "next token": "next"}
"""The measures of those other types that are as particular as what experiments show."""


def _shown(sentence: str, type_: str) -> Rule[AttentionEvidence]:
    """A type that an experiment shows: see core/analysis/type_claims.py."""
    return Rule(sentence, lambda e: type_ in e.claims, lambda e: e.claims[type_].because if type_ in e.claims else "")


def _share(measure: str, words: str) -> Callable[[AttentionEvidence], str]:
    return lambda e: (
        f"{percent(e(measure))} of its attention {words} ({percent(e(f'{measure}_low'))} to "
        f"{percent(e(f'{measure}_high'))}); "
        f"shuffled {percent(e(f'{measure}_shuffled'), 1)}"
    )


_BEYOND = (
    "more often than the best fixed offset and than the same head on shuffled sentences (held-out half of the "
    "treebank, 5 % false discoveries)."
)
_REPEATED = (
    "at least 20 % of the attention (95 % CI above 10 %), and 10 times what other tokens get and what this "
    "distance gets where nothing is repeated."
)
RULES: dict[str, Rule[AttentionEvidence]] = {
    **{
        name: _shown(sentence, name)
        for name, sentence in {
            "subject–verb": f"From a subject to its verb, or back, {_BEYOND}",
            "verb–object": f"From an object to its verb, or back, {_BEYOND}",
            "modifier": "From a determiner, adjective, possessive, preposition or auxiliary to the word that it "
            f"belongs to, or back, {_BEYOND}",
            "coreference": f"From a pronoun to what it stands for, or back, {_BEYOND}",
            "induction": f"From a repeated random token to the token after its first occurrence: {_REPEATED}",
            "duplicate token": f"From a repeated random token to its first occurrence: {_REPEATED}",
            "semantic similarity": "Attention between words follows the cosine of their input embeddings beyond "
            "distance: correlation at least 0.2 (95 % CI above 0.15), and higher than with words exchanged.",
        }.items()
    },
    "previous token": Rule(
        "At least 40 % of the attention goes to the token before (95 % CI above 30 %).",
        lambda e: e.surely("previous", 0.4, 0.3),
        _share("previous", "is on the token before"),
    ),
    "next token": Rule(
        "At least 40 % of the attention goes to the token after (95 % CI above 30 %); impossible in a causal model.",
        lambda e: e.surely("next", 0.4, 0.3),
        _share("next", "is on the token after"),
    ),
    "sink": Rule(
        "It rests on the first token in these texts, whatever it is: at least half of its attention (95 % CI "
        "above 40 %). This does not say what it does in other texts.",
        lambda e: e.surely("first", 0.5, 0.4),
        lambda e: (
            _share("first", "rests on the first token in these texts")(e)
            + (f"; more than half of it from {percent(e('rests'))} of their tokens" if e("rests") >= 0 else "")
        ),
    ),
    "delimiter": Rule(
        "At least half of the attention goes to special tokens, punctuation and line breaks (95 % CI above 40 %), "
        "and at least twice what shuffled positions give.",
        lambda e: e.surely("delimiters", 0.5, 0.4) and e.times_shuffled("delimiters") >= 2,
        _share("delimiters", "is on delimiters"),
    ),
    "rare token": Rule(
        "Rare tokens get at least 1.5 times their share of the text (95 % CI above 1.25 times).",
        lambda e: e.surely("rare", 1.5 * e("rare_shuffled"), 1.25 * e("rare_shuffled")),
        lambda e: (
            f"{percent(e('rare'))} of its attention is on rare tokens ({percent(e('rare_low'))} to "
            f"{percent(e('rare_high'))}), "
            f"{e.times_shuffled('rare'):.1f} times their share of {percent(e('rare_shuffled'))}"
        ),
    ),
    "local": Rule(
        "At least 60 % of the attention stays within 8 tokens (95 % CI above 50 %), and at least twice what "
        "shuffled positions give.",
        lambda e: e.surely("window", 0.6, 0.5) and e.times_shuffled("window") >= 2,
        _share("window", "is within 8 tokens"),
    ),
    "long-range": Rule(
        "It looks at least 1.2 times as far as shuffled positions would (95 % CI above 1.1 times).",
        lambda e: e.surely("distance", 1.2 * e("distance_shuffled"), 1.1 * e("distance_shuffled")),
        lambda e: (
            f"mean distance {e('distance'):.0f} tokens ({e('distance_low'):.0f} to {e('distance_high'):.0f}); "
            f"shuffled {e('distance_shuffled'):.0f}"
        ),
    ),
    "broad": Rule(
        "It spreads evenly over many tokens: entropy at least 0.8 of the maximum (95 % CI above 0.75).",
        lambda e: e.surely("entropy", 0.8, 0.75),
        lambda e: f"entropy {e('entropy'):.2f} ({e('entropy_low'):.2f} to {e('entropy_high'):.2f}) of the maximum",
    ),
}
"""In order: the first that holds is the type, but for those that compete: the strongest of them is. The more particular
come first."""
FAMILIES = {
    "positional": ("previous token", "next token", "sink", "delimiter", "local", "long-range"),
    "syntactic": ("subject–verb", "verb–object", "modifier"),
    "semantic": ("coreference", "semantic similarity", "rare token"),
    "task": ("induction", "duplicate token"),
    "none": ("broad", "mixed"),
}
FAMILY_OF = {type_: family for family, types in FAMILIES.items() for type_ in types}

MIXED_SENTENCE = "It meets no type's criteria: its attention is divided."
TYPES = (*RULES, MIXED)


def type_of(evidence: AttentionEvidence) -> Verdict:
    """The types of a head with these measures, the strongest first; without a name it is MIXED."""
    found = judged(RULES, evidence, lambda e: because(e, MIXED))
    names = tuple(sorted(found.names, key=lambda name: -evidence.strength(name)))
    return Verdict(names, "; ".join(because(evidence, name) for name in names) or found.because)


def because(evidence: AttentionEvidence, type_: str) -> str:
    """What decided one type."""
    if type_ in RULES:
        return RULES[type_].because(evidence)
    shares = {"previous": "token before", "first": "first token", "delimiters": "delimiters", "window": "within 8"}
    figures = ", ".join(f"{words} {percent(evidence(measure))}" for measure, words in shares.items())
    return f"no rule holds: {figures}, entropy {evidence('entropy'):.2f}"


def sentence(type_: str) -> str:
    """The rule in words."""
    return RULES[type_].sentence if type_ in RULES else MIXED_SENTENCE


def _or_nan(value: object) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")
