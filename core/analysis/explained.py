"""The cosine of two texts as a sum, in words and as a grid, beside what random pairs of documents have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.model.ledger import Explanation, Term
from core.runs.tables import Row

KIND_NAMES: Mapping[str, str] = {
    "head": "heads",
    "mlp": "feed-forward blocks",
    "embedding": "embeddings",
    "bias": "biases",
}
"""The kinds of core.model.ledger in the order in which people are shown them."""
PLACES = 4
"""Decimals of tables and grids; sentences have 2."""
NAMED = 2
"""Heads that a sentence names."""


@dataclass(frozen=True)
class Baseline:
    """What each term adds to the cosine of two random documents of a run."""

    terms: tuple[Term, ...]
    mean: np.ndarray
    """``[term]``: they add up to ``cosine``."""
    low: np.ndarray
    high: np.ndarray
    """``[term]``: 95 % of random pairs lie between them."""
    cosine: float
    cosine_low: float
    cosine_high: float
    pairs: int

    @classmethod
    def of(cls, rows: Iterable[Row], terms: tuple[Term, ...]) -> Baseline | None:
        """From the rows of the table ``pair_parts``; None where they are not those of a model with these terms."""
        by_term = {(row["kind"], row["layer"], row["head"]): row for row in rows}
        found = [by_term.get((term.kind, term.layer, term.head)) for term in terms]
        whole = by_term.get(("total", None, None))
        if whole is None or any(row is None for row in found):
            return None
        mean, low, high = (np.array([row[name] for row in found if row]) for name in ("mean", "low", "high"))
        return cls(terms, mean, low, high, whole["mean"], whole["low"], whole["high"], int(whole["pairs"]))


@dataclass(frozen=True)
class TermGrid:
    """One number per term, by where in the model the term is; 0 where the model has no such term."""

    heads: np.ndarray
    """``[layer, head]``."""
    blocks: np.ndarray
    """``[layer]``: feed-forward blocks."""
    biases: np.ndarray
    """``[layer]``."""
    embedding: float
    final_bias: float

    @classmethod
    def of(cls, terms: Sequence[Term], values: np.ndarray) -> TermGrid:
        layers = max(term.layer or 0 for term in terms)
        heads = np.zeros((layers, max(term.head or 0 for term in terms)))
        columns = {"mlp": np.zeros(layers), "bias": np.zeros(layers)}
        single = {"embedding": 0.0, "bias": 0.0}
        for term, value in zip(terms, values.tolist(), strict=True):
            if term.layer is None:
                single[term.kind] = value
            elif term.head is None:
                columns[term.kind][term.layer - 1] = value
            else:
                heads[term.layer - 1, term.head - 1] = value
        return cls(heads, columns["mlp"], columns["bias"], single["embedding"], single["bias"])

    @property
    def layers(self) -> np.ndarray:
        """``[layer]``: all that a layer adds."""
        return np.asarray(self.heads.sum(axis=1) + self.blocks + self.biases)


REST = Term("rest")
"""All terms that are not stored, together."""


def from_stored(
    coordinates: tuple[np.ndarray, np.ndarray],
    outputs: tuple[np.ndarray, np.ndarray],
    onto: tuple[np.ndarray, np.ndarray],
    layer: int,
) -> Explanation:
    """What the heads of one layer add to the cosine of two documents, without the model; the last term is the rest.

    ``coordinates`` are stage 4 of both, ``[head, dim]``, ``outputs`` stage 3, ``[hidden]``, and ``onto`` the outputs
    as every head sees them, ``[head, dim]`` (``ShareSpace.coordinates``).
    """
    x, y = (output.astype(np.float64) for output in outputs)
    lengths = float(np.linalg.norm(x) * np.linalg.norm(y))
    values = ((coordinates[0] * onto[1]).sum(axis=1) + (coordinates[1] * onto[0]).sum(axis=1)) / (2 * lengths)
    cosine = float(x @ y) / lengths
    terms = (*(Term("head", layer, head) for head in range(1, len(values) + 1)), REST)
    return Explanation(cosine, terms, np.append(values, cosine - values.sum()))


def stored_summary(found: Explanation) -> str:
    """``0.39, of which the heads of layer 6 add 0.26, most from …``."""
    heads = list(range(len(found.terms) - 1))
    of_heads, rest = rounded_to_sum([found.values[heads].sum(), found.values[-1]], found.cosine, 2)
    return (
        f"{signed(found.cosine)}, of which {signed(of_heads)} from the heads of layer {found.terms[0].layer}"
        f"{_most(heads, found)}; {signed(rest)} from all other terms."
    )


def term_name(term: Term) -> str:
    """``layer 6 head 11``."""
    if term == REST:
        return "all other terms"
    if term.kind == "embedding":
        return "embeddings"
    if term.layer is None:
        return "final bias"
    what = {"head": f"head {term.head}", "mlp": "feed-forward block", "bias": "biases"}[term.kind]
    return f"layer {term.layer} {what}"


def by_kind(terms: Sequence[Term], values: np.ndarray) -> dict[str, float]:
    """What the terms of each kind add up to, in the order of KIND_NAMES."""
    kinds = np.array([term.kind for term in terms])
    return {kind: float(values[kinds == kind].sum()) for kind in KIND_NAMES}


def rounded_to_sum(values: Sequence[float] | np.ndarray, total: float, places: int = PLACES) -> np.ndarray:
    """``values`` rounded such that they add up to ``total``, rounded as well: none moves by a whole last place or more.

    ``values`` add up to ``total`` but for much less than a last place.
    """
    unit = 10.0**places
    exact = np.asarray(values, dtype=np.float64) * unit
    units = np.floor(exact)
    left = round(float(round(total * unit) - units.sum()))
    order = np.argsort(units - exact, kind="stable")  # the largest remainders first
    if 0 <= left <= len(units):
        units[order[:left]] += 1
    return np.asarray((units + 0.0) / unit)


def signed(value: float, places: int = 2, plus: bool = False) -> str:
    """With a real minus sign, and none before 0.00."""
    text = f"{value:{'+' if plus else ''}.{places}f}".replace("-", "−")
    return text.replace("−", "").replace("+", "") if not text.strip("+−0.") else text


def summary(found: Explanation) -> str:
    """``0.49, of which 0.34 from heads, most from layer 6 head 11 (0.06) …``; its parts add up to the cosine shown."""
    sums = by_kind(found.terms, found.values)
    shown = rounded_to_sum([*sums.values()], found.cosine, 2)
    parts = []
    for kind, value in zip(sums, shown, strict=True):
        part = f"{signed(value)} from {KIND_NAMES[kind]}"
        if kind == "head":
            part += _most([at for at, term in enumerate(found.terms) if term.kind == "head"], found)
        if value or kind == "head":
            parts.append(part)
    return f"{signed(found.cosine)}, of which {'; '.join(parts)}."


def _most(heads: Sequence[int], found: Explanation) -> str:
    order = sorted(heads, key=lambda at: -found.values[at])[:NAMED]
    named = [f"{term_name(found.terms[at])} ({signed(found.values[at])})" for at in order if found.values[at] > 0]
    return f", most from {' and '.join(named)}" if named else ""


def against_random(found: Explanation, baseline: Baseline) -> str:
    """What the pair has beyond random pairs of documents, and which terms have it."""
    more = found.cosine - baseline.cosine
    beyond = found.values - baseline.mean
    side = 1 if more >= 0 else -1
    order = np.argsort(-side * beyond, kind="stable")[:NAMED]
    named = [f"{term_name(found.terms[at])} ({signed(float(beyond[at]), plus=True)})" for at in order]
    heads = np.array([term.kind == "head" for term in found.terms])
    above = int((found.values > baseline.high)[heads].sum())
    return (
        f"Two random documents of this corpus have {signed(baseline.cosine)} on average (95 % of pairs: "
        f"{signed(baseline.cosine_low)} to {signed(baseline.cosine_high)}). Of the difference of "
        f"{signed(more, plus=True)}, most comes from {' and '.join(named)}. {above} of {int(heads.sum())} heads add "
        f"more than in 97.5 % of random pairs; of a random pair, {0.025 * heads.sum():.0f} would."
    )
