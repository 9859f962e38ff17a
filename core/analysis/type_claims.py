"""What experiments say of a head's type: relations between words, repeated tokens, similar words.

Each type is claimed only beyond its baselines, and says by how much.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from core.analysis.treebank import REVERSED
from core.analysis.wording import percent

_BOTH = {
    "subject–verb": ("subject → verb",),
    "verb–object": ("object → verb",),
    "modifier": (
        *("determiner → noun", "adjective → noun", "possessive → noun"),
        *("preposition → its object", "auxiliary → verb"),
    ),
    "coreference": ("pronoun → antecedent",),
}
RELATIONS_OF = {type_: (*names, *(REVERSED[name] for name in names)) for type_, names in _BOTH.items()}
"""By type: its relations, both ways."""
TYPE_OF = {relation: type_ for type_, relations in RELATIONS_OF.items() for relation in relations}
SEEN_AGAIN = {"induction": "the token after its first occurrence", "duplicate token": "its first occurrence"}
"""By type: what it attends to from a token's second occurrence."""
SIMILAR = "semantic similarity"
LEAST, LEAST_LOW, TIMES = 0.2, 0.1, 10
"""Of attention to a repeated token: the mean, the lower end of its interval, and how many times the baselines."""
LEAST_CORRELATION, LEAST_CORRELATION_LOW = 0.2, 0.15


@dataclass(frozen=True)
class TypeClaim:
    """A type that holds."""

    strength: float
    """How far the head is beyond its best baseline, as a share (or as a correlation)."""
    because: str


def type_claims(scores: Mapping[str, Any], relations: Iterable[Mapping[str, Any]]) -> dict[str, TypeClaim]:
    """From one head's row of ``attention_scores`` and its rows of ``relations``; nothing where they are missing."""
    return {**_by_relations(relations), **_by_repetition(scores), **_by_similarity(scores)}


def ahead(row: Mapping[str, Any]) -> float:
    """By how much a row of ``relations`` is beyond the better of its baselines, on the held-out half."""
    return float(row["score"] - max(row["offset_score"], row["shuffled"]))


def _by_relations(rows: Iterable[Mapping[str, Any]]) -> dict[str, TypeClaim]:
    found: dict[str, TypeClaim] = {}
    for row in sorted((row for row in rows if row["beyond"]), key=ahead, reverse=True):
        type_ = TYPE_OF[row["relation"]]
        if type_ in found:
            first = found[type_]
            found[type_] = TypeClaim(first.strength, f"{first.because}; also {row['relation']} {percent(row['score'])}")
            continue
        because = (
            f"{row['relation']}: the right word gets most of its attention in {percent(row['score'])} of "
            f"{row['pairs']} held-out pairs ({percent(row['low'])} to {percent(row['high'])}); fixed offset "
            f"{signed(row['fixed_offset'])} {percent(row['offset_score'])}, shuffled sentences "
            f"{percent(row['shuffled'])}"
        )
        found[type_] = TypeClaim(ahead(row), because)
    return found


def _by_repetition(scores: Mapping[str, Any]) -> dict[str, TypeClaim]:
    found = {}
    for type_, words in SEEN_AGAIN.items():
        measure = type_.split()[0]
        value, low, other, unrepeated = (
            scores.get(name) for name in (measure, f"{measure}_low", "elsewhere", f"{measure}_unrepeated")
        )
        if value is None or low is None or other is None or unrepeated is None:
            continue
        baseline = max(other, unrepeated)
        if value >= LEAST and low >= LEAST_LOW and low >= TIMES * baseline:
            because = (
                f"{percent(value)} of its attention from a repeated random token is on {words} ({percent(low)} to "
                f"{percent(scores[f'{measure}_high'])}); on another token {percent(other, 1)}, at this distance "
                "without repetition "
                f"{percent(unrepeated, 1)}"
            )
            found[type_] = TypeClaim(value - baseline, because)
    return found


def _by_similarity(scores: Mapping[str, Any]) -> dict[str, TypeClaim]:
    value, low, p = (scores.get(name) for name in ("similarity", "similarity_low", "similarity_p"))
    if value is None or low is None or p is None:
        return {}
    if value < LEAST_CORRELATION or low < LEAST_CORRELATION_LOW or p >= 0.05:
        return {}
    because = (
        "its attention to words follows the similarity of their input embeddings beyond distance: correlation "
        f"{value:.2f} ({low:.2f} to {scores['similarity_high']:.2f}); words exchanged "
        f"{round(scores['similarity_exchanged'], 2) + 0.0:.2f}"
    )
    return {SIMILAR: TypeClaim(value - max(0.0, scores["similarity_exchanged"]), because)}


def signed(offset: int) -> str:
    return f"{'−' if offset < 0 else '+'}{abs(offset)}"
