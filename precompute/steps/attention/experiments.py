"""From what the experiments gave to rows: scores and relations by head, what they show, and examples to look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.analysis.bootstrap import Interval
from core.analysis.treebank import Pairs, choosing_half, directed
from core.analysis.type_claims import SEEN_AGAIN, SIMILAR, TYPE_OF, ahead, type_claims
from core.analysis.word_attention import ALPHA, adjusted, relation_scores, visible
from core.model.shape import ModelShape
from core.runs.vocabulary import TYPE_EXAMPLES
from precompute.job.step import Rows, add
from precompute.steps.attention.repeated import RepeatedExample
from precompute.steps.attention.tables import Claims
from precompute.steps.attention.treebank import TreebankReading

LEAST_PAIRS = 20
"""Of a half, for a relation to be judged at all."""
_SHORT = 18
"""Words of a sentence that is easily drawn: examples are no longer where there are enough of these."""
_SIMILAR_PAIRS = 4


@dataclass(frozen=True)
class Experiments:
    """What was tried on a model; None where it was impossible."""

    shape: ModelShape
    repeated: dict[str, Interval] | None
    treebank: TreebankReading | None
    examples: Sequence[RepeatedExample]


def score_rows(found: Experiments, rests: np.ndarray) -> Rows:
    """A row for every layer and head of ``attention_scores``; ``rests[layer, head]`` is of the documents."""
    similarity = found.treebank.similarity if found.treebank else None
    p = adjusted(similarity.p) if similarity else None
    rows: Rows = {}
    for at, (layer, head) in enumerate(np.ndindex(found.shape.layers, found.shape.heads)):
        columns: dict[str, float | None] = {"rests": _number(rests[layer, head])}
        for name in ("induction", "duplicate"):
            one = found.repeated[name] if found.repeated else None
            columns[name] = float(one.value[layer, head]) if one else None
            columns[f"{name}_low"] = float(one.low[layer, head]) if one else None
            columns[f"{name}_high"] = float(one.high[layer, head]) if one else None
        for name in ("elsewhere", "induction_unrepeated", "duplicate_unrepeated"):
            columns[name] = float(found.repeated[name].value[layer, head]) if found.repeated else None
        columns["similarity"] = float(similarity.correlation[at]) if similarity else None
        columns["similarity_low"] = float(similarity.low[at]) if similarity else None
        columns["similarity_high"] = float(similarity.high[at]) if similarity else None
        columns["similarity_exchanged"] = float(similarity.exchanged[at]) if similarity else None
        columns["similarity_p"] = float(p[at]) if p is not None else None
        add(rows, layer=layer + 1, head=head + 1, **columns)
    return rows


def relation_rows(found: Experiments, seed: int) -> Rows:
    """A row for every relation, both ways, and head; p adjusted over all of them together."""
    if found.treebank is None:
        return {}
    sentences = found.treebank.sentences
    half = choosing_half(len(sentences), seed)
    scores = {
        name: score
        for name, pairs in directed(sentences).items()
        if (score := relation_scores(found.treebank.attended, pairs, half)) is not None
        and min(score.pairs_chosen, score.pairs_held_out) >= LEAST_PAIRS
    }
    if not scores:
        return {}
    p_adjusted = adjusted(np.stack([score.single for score in scores.values()]))
    rows: Rows = {}
    for number, (name, score) in enumerate(scores.items()):
        for layer, head in np.ndindex(score.held_out.shape):
            p = float(p_adjusted[number, layer, head])
            add(
                rows,
                layer=layer + 1,
                head=head + 1,
                relation=name,
                pairs=score.pairs_held_out,
                chosen=float(score.chosen[layer, head]),
                score=float(score.held_out[layer, head]),
                low=float(score.interval.low[layer, head]),
                high=float(score.interval.high[layer, head]),
                fixed_offset=score.offset.offset,
                offset_score=score.offset.held_out,
                shuffled=float(score.shuffled[layer, head]),
                p=float(score.single[layer, head]),
                p_adjusted=p,
                beyond=p < ALPHA,
            )
    return rows


def claims_of(scores: Rows, relations: Rows) -> Claims:
    """What these rows show, by head."""
    by_head: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for row in _rows(relations):
        by_head.setdefault((row["layer"], row["head"]), []).append(row)
    return {
        (row["layer"], row["head"]): type_claims(row, by_head.get((row["layer"], row["head"]), []))
        for row in _rows(scores)
    }


def example_rows(found: Experiments, relations: Rows, claims: Claims, seed: int) -> Rows:
    """Sentences for every head of a type that experiments show, drawn from the held-out half, hits or not."""
    rows: Rows = {}
    strongest: dict[tuple[int, int, str], str] = {}
    for row in sorted(_rows(relations), key=lambda row: -ahead(row)):
        if row["beyond"]:
            strongest.setdefault((row["layer"], row["head"], TYPE_OF[row["relation"]]), row["relation"])
    drawn: dict[str, list[_Example]] = {}
    for (layer, head), types in claims.items():
        for type_ in types:
            relation = None
            if type_ in SEEN_AGAIN:
                shown = _repeated(found.examples, type_)
            elif type_ == SIMILAR:
                shown = drawn.setdefault(SIMILAR, _similar(found.treebank, seed) if found.treebank else [])
            else:
                relation = strongest[layer, head, type_]
                if relation not in drawn and found.treebank:
                    drawn[relation] = _of_relation(found.treebank, relation, seed)
                shown = drawn[relation]
            for number, one in enumerate(shown, start=1):
                add(
                    rows,
                    layer=layer,
                    head=head,
                    type=type_,
                    example=number,
                    relation=relation,
                    words=one.words,
                    starts=one.starts.tolist(),
                    right=one.right.tolist(),
                    attended=one.attended[layer - 1, head - 1, one.starts].tolist(),
                )
    return rows


@dataclass(frozen=True)
class _Example:
    words: list[str]
    starts: np.ndarray
    right: np.ndarray
    attended: np.ndarray
    """``[layer, head, word]``."""


def _of_relation(reading: TreebankReading, relation: str, seed: int) -> list[_Example]:
    pairs = directed(reading.sentences)[relation]
    pairs = pairs[visible(reading.attended, pairs) & ~choosing_half(len(reading.sentences), seed)[pairs.sentence]]
    found = []
    for number in _drawn(reading, np.unique(pairs.sentence), seed):
        mine: Pairs = pairs[pairs.sentence == number]
        found.append(_Example(_words(reading, number), mine.start, mine.end, reading.attended.plain[number]))
    return found


def _similar(reading: TreebankReading, seed: int) -> list[_Example]:
    """From the words that have the most similar one elsewhere in their sentence."""
    some = np.array([number for number, one in enumerate(reading.cosines) if one.pairs.any()], dtype=np.int64)
    found = []
    for number in _drawn(reading, some, seed):
        rest = np.where(reading.cosines[number].pairs, reading.cosines[number].rest[0], -np.inf)
        starts = np.sort(np.argsort(-rest.max(axis=1), kind="stable")[:_SIMILAR_PAIRS])
        starts = starts[np.isfinite(rest[starts].max(axis=1))]
        found.append(
            _Example(_words(reading, number), starts, rest[starts].argmax(axis=1), reading.attended.plain[number])
        )
    return found


def _repeated(examples: Sequence[RepeatedExample], type_: str) -> list[_Example]:
    after = 1 if type_ == "induction" else 0
    found = []
    for one in examples:
        length = len(one.words) // 2
        starts = np.arange(length, 2 * length - after)
        found.append(_Example(one.words, starts, starts - length + after, one.attended))
    return found


def _drawn(reading: TreebankReading, numbers: np.ndarray, seed: int) -> list[int]:
    """A few sentences by chance, short ones where there are enough."""
    short = np.array([n for n in numbers if len(reading.sentences[n].words) <= _SHORT], dtype=np.int64)
    of = short if len(short) >= TYPE_EXAMPLES else numbers
    return np.sort(np.random.default_rng(seed).permutation(of)[:TYPE_EXAMPLES]).tolist()


def _words(reading: TreebankReading, number: int) -> list[str]:
    return [word.form for word in reading.sentences[number].words]


def _rows(rows: Rows) -> Iterator[dict[str, Any]]:
    for values in zip(*rows.values(), strict=True):
        yield dict(zip(rows, values, strict=True))


def _number(value: Any) -> float | None:
    return None if np.isnan(value) else float(value)
