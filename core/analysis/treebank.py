"""Gold relations between the words of a treebank, and how far one fixed offset gets on each.

A user's treebank needs HEAD and DEPREL; pronouns count where MISC has ``Antecedent=ID``, the word that they stand for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from core.analysis.conllu import Sentence

Rule = Callable[[Sentence, int], int | None]
"""A word's right word, or None where the relation does not start from it."""


def _arc(deprel: str, verb: bool = False, not_under: str = "") -> Rule:
    """Arcs of this type or a subtype; with ``verb`` none to the predicate of a copula, as *cold* in *it was cold*."""

    def rule(sentence: Sentence, index: int) -> int | None:
        word = sentence.words[index]
        if word.head is None or not _is(word.deprel, deprel):
            return None
        if verb and any(other.head == word.head and _is(other.deprel, "cop") for other in sentence.words):
            return None
        return None if not_under and _is(sentence.words[word.head].deprel, not_under) else word.head

    return rule


RELATIONS: dict[str, Rule] = {
    "subject → verb": _arc("nsubj", verb=True),
    "object → verb": _arc("obj"),
    "determiner → noun": _arc("det"),
    "adjective → noun": _arc("amod"),
    "preposition → its object": _arc("case", not_under="nmod:poss"),  # the 's of a possessor is not a preposition
    "auxiliary → verb": _arc("aux", verb=True),
    "possessive → noun": _arc("nmod:poss"),
    "pronoun → antecedent": lambda sentence, index: sentence.words[index].antecedent,
}

REVERSED = {
    "subject → verb": "verb → subject",
    "object → verb": "verb → object",
    "determiner → noun": "noun → determiner",
    "adjective → noun": "noun → adjective",
    "preposition → its object": "object → its preposition",
    "auxiliary → verb": "verb → auxiliary",
    "possessive → noun": "noun → possessive",
    "pronoun → antecedent": "antecedent → pronoun",
}
"""The same relations read the other way: from the verb to its subject."""


@dataclass(frozen=True)
class Pairs:
    """Word pairs of one relation; all ``[pair]``."""

    sentence: np.ndarray
    start: np.ndarray
    end: np.ndarray

    def __len__(self) -> int:
        return len(self.sentence)

    def __getitem__(self, chosen: np.ndarray) -> Pairs:
        return Pairs(self.sentence[chosen], self.start[chosen], self.end[chosen])

    @property
    def offset(self) -> np.ndarray:
        return self.end - self.start

    @property
    def reversed(self) -> Pairs:
        """The relation read the other way: from the verb to its subject."""
        return Pairs(self.sentence, self.end, self.start)


@dataclass(frozen=True)
class OffsetBaseline:
    """The best fixed offset, and the share of pairs that it gets right in each half."""

    offset: int
    chosen: float
    held_out: float


def pairs(sentences: Sequence[Sentence], relation: str) -> Pairs:
    rule = RELATIONS[relation]
    found = [
        (number, start, end)
        for number, sentence in enumerate(sentences)
        for start in range(len(sentence.words))
        if (end := rule(sentence, start)) is not None
    ]
    return Pairs(*np.array(found, dtype=np.int64).reshape(-1, 3).T)


def directed(sentences: Sequence[Sentence]) -> dict[str, Pairs]:
    """The pairs of every relation, by its name in RELATIONS and by that in REVERSED."""
    found = {relation: pairs(sentences, relation) for relation in RELATIONS}
    return {**found, **{REVERSED[relation]: one.reversed for relation, one in found.items()}}


def choosing_half(sentences: int, seed: int = 0) -> np.ndarray:
    """``[sentence]``: whether it belongs to the half that choices are made on; the others are held out."""
    return np.random.default_rng(seed).permutation(sentences) < sentences // 2


def best_offset(found: Pairs) -> int:
    """The commonest distance from a word to its right word; the nearer one where two are as common."""
    counts = Counter(int(offset) for offset in found.offset)
    return min(counts, key=lambda offset: (-counts[offset], abs(offset), offset), default=0)


def offset_baseline(found: Pairs, choosing: np.ndarray) -> OffsetBaseline:
    """``choosing[pair]`` marks the pairs that the offset is chosen on."""
    offset = best_offset(found[choosing])
    hits = found.offset == offset
    return OffsetBaseline(offset, float(hits[choosing].mean()), float(hits[~choosing].mean()))


def _is(deprel: str, wanted: str) -> bool:
    return deprel == wanted or deprel.startswith(wanted + ":")
