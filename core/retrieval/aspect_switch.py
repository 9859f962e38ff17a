"""Switching an aspect: head weights that bring documents of the same genre closer, say, and leave the topic aside.

Every pair of documents says which heads tell its aspects: the weights are the regression, without negative ones, of
"same value of what is followed, not of what is ignored" on the heads' cosines. Closed form: no steps to tune.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from core.analysis.bootstrap import near_best
from core.errors import Mistake, listed
from core.retrieval.head_index import largest_in_rows

FOLLOW, NEUTRAL, IGNORE = "follow", "neutral", "ignore"
POSITIONS = (FOLLOW, NEUTRAL, IGNORE)
PLACES = 10
"""Documents of a ranking that are judged."""
STRENGTHS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)
"""How much what is ignored counts against what is followed; the learning half decides."""
_RIDGE = 0.3
"""How strongly weights are drawn to equal ones, in variances of a head's cosines."""


def learn_weights(cosines: np.ndarray, labels: Mapping[str, np.ndarray], positions: Mapping[str, str]) -> np.ndarray:
    """``[head]`` weights in hundredths, not negative, 1 on average, from ``cosines[head, doc, doc]``.

    ``labels[aspect][doc]`` are codes, -1 for none. The largest of ``STRENGTHS`` is taken that costs what is followed no
    more than one standard error of the best. Where nothing is followed, the heads' plain mean is, and the neutral
    aspects are what must not suffer.
    """
    check_positions(positions, labels)
    heads, docs = len(cosines), cosines.shape[1]
    wanted, unwanted = ([name for name in labels if positions.get(name) == each] for each in (FOLLOW, IGNORE))
    if not wanted and not unwanted:
        return np.ones(heads)
    seen = _apart_from_own(cosines).reshape(heads, -1)
    gram = seen @ seen.T / (docs * max(docs - 1, 1))
    size = float(np.diag(gram).mean())
    if size == 0:
        return np.ones(heads)
    gram /= size

    def pull(names: list[str]) -> np.ndarray:
        """``[head]``: how each head's cosine goes with the aspects, each counting as much as the heads can tell it."""
        found = [seen @ _contrast(labels[name]).ravel() for name in names]
        return np.asarray(np.mean([_standardised(gram, each) for each in found], axis=0))

    towards = pull(wanted) if wanted else _standardised(gram, gram.sum(axis=1))
    if not unwanted:
        return _fitted(gram, towards)
    away = pull(unwanted)
    found = [_fitted(gram, towards - strength * away) for strength in STRENGTHS]
    judged = wanted or [name for name in labels if name not in unwanted]
    return found[_strongest(cosines, {name: labels[name] for name in judged}, found)]


def check_positions(positions: Mapping[str, str], known: Mapping[str, object]) -> None:
    for name, position in positions.items():
        if name not in known:
            raise Mistake(f"There is no aspect called '{name}'. Choose one of: {listed(known)}.")
        if position not in POSITIONS:
            raise Mistake(f"'{position}' is not a position of an aspect. Choose one of: {listed(POSITIONS)}.")


def first_others(scores: np.ndarray, places: int = PLACES) -> np.ndarray:
    """``[doc, place]``: the other documents that come first by ``scores[doc, doc]``."""
    scores = scores.copy()
    np.fill_diagonal(scores, -np.inf)
    return largest_in_rows(scores, min(places, len(scores) - 1))


def same_value_share(ranked: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """``[doc]``: how many of ``ranked[doc, place]`` have the document's value; NaN for a document without."""
    share = (codes[ranked] == codes[:, None]).sum(axis=1) / max(ranked.shape[1], 1)
    return np.asarray(np.where(codes >= 0, share, np.nan))


def _apart_from_own(values: np.ndarray) -> np.ndarray:
    """``values[head, doc, doc]`` less their mean over the other documents; 0 for a document with itself."""
    docs = values.shape[1]
    own = np.arange(docs)
    found = values.astype(np.float32)
    found[:, own, own] = 0
    found -= found.sum(axis=2, keepdims=True) / max(docs - 1, 1)
    found[:, own, own] = 0
    return found


def _contrast(codes: np.ndarray) -> np.ndarray:
    """``[doc, doc]``: which pairs have the same value, standardised over pairs; 0 where either has none."""
    known = (codes >= 0)[:, None] & (codes >= 0)
    np.fill_diagonal(known, False)
    same = codes[:, None] == codes
    rate = same[known].mean() if known.any() else 0.0
    spread = np.sqrt(rate * (1 - rate))
    return np.where(known, (same - rate) / spread, 0).astype(np.float32) if spread else np.zeros(known.shape)


def _standardised(gram: np.ndarray, pull: np.ndarray) -> np.ndarray:
    """Scaled so that the best combination of heads would fit it with a size of 1."""
    size = np.sqrt(max(float(pull @ np.linalg.solve(gram + _RIDGE * np.eye(len(gram)), pull)), 0.0))
    return pull / size if size else pull


def _fitted(gram: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Least squares under weights from 0 upwards, drawn to the equal weights that fit best."""
    from scipy.optimize import nnls

    heads = len(gram)
    equal = max(float(target.sum() / gram.sum()), 0.0) if gram.sum() > 0 else 0.0
    root = np.linalg.cholesky(gram.astype(np.float64) + _RIDGE * np.eye(heads))
    found, _ = nnls(root.T, np.linalg.solve(root, target + _RIDGE * equal))
    if not found.any():
        return np.ones(heads)
    weights: np.ndarray = np.round(found * heads / found.sum(), 2)
    return weights


def _strongest(cosines: np.ndarray, judged: Mapping[str, np.ndarray], weights: list[np.ndarray]) -> int:
    """The last of ``weights`` whose rankings find as much of what is judged as the best ones."""
    if not judged:
        return len(weights) - 1
    found = []
    for each in weights:
        ranked = first_others(np.tensordot(each.astype(np.float32), cosines, 1))
        found.append(np.stack([same_value_share(ranked, codes) for codes in judged.values()]))
    shares = np.stack(found, axis=-1)  # [aspect, doc, strength]
    whole = shares[:, ~np.isnan(shares).any(axis=(0, 2))].mean(axis=0)
    return int(np.flatnonzero(near_best(whole))[-1]) if len(whole) else 0
