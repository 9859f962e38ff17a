"""How often a document's labelled topic is its nearest (§3.5), for the full embedding, each head and naive poolings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.analysis.bootstrap import Interval, shares
from core.runs.tables import Row

WITHIN = (1, 5, 10)
"""The labelled topic is the nearest, among the nearest five, among the nearest ten."""


@dataclass(frozen=True)
class TopicMatch:
    """``rate.value[method, k]`` of hits within the nearest ``WITHIN[k]``, and what guessing reaches."""

    rate: Interval
    chance: np.ndarray
    """``[k]``: topics named at random."""
    majority: np.ndarray
    """``[k]``: always the most frequent topics."""
    docs: int


@dataclass(frozen=True)
class Mismatches:
    """Documents whose label is not the nearest topic: indices of topics, and how much nearer the nearest is."""

    docs: np.ndarray
    label: np.ndarray
    nearest: np.ndarray
    rank: np.ndarray
    margin: np.ndarray


def ranks(values: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The labelled topic's rank among the topics, from 1, ``[doc, method]``; equal topics share their mean rank.

    ``values[doc, method, topic]`` are similarities; every document has a label.
    """
    mine = np.take_along_axis(values, labels[:, None, None], axis=2)
    above = (values > mine).sum(axis=2)
    equal = (values == mine).sum(axis=2) - 1
    return (1 + above + equal / 2).astype(np.float32)


def nearest_is_own(values: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """``[doc, method]``: 1 where the labelled topic is the nearest; topics that are equally near share the hit.

    NaN where the labelled topic has no similarity (-inf): it is no reference.
    """
    mine = np.take_along_axis(values, labels[:, None, None], axis=2)
    equal = (values == mine).sum(axis=2)
    hits = np.where((values > mine).any(axis=2), 0.0, 1.0 / np.maximum(equal, 1)).astype(np.float32)
    hits[~np.isfinite(mine[:, :, 0])] = np.nan
    return hits


def topic_match(found: np.ndarray, labels: np.ndarray, topics: int, seed: int = 0) -> TopicMatch:
    """From ``ranks`` of the labelled documents, ``found[doc, method]``, and their ``labels[doc]``."""
    docs, methods = found.shape
    hits = np.stack([found <= k for k in WITHIN], axis=2).reshape(docs, -1)
    rate = shares(hits.astype(np.float32), seed=seed)
    frequent = np.sort(np.bincount(labels, minlength=topics))[::-1]
    within = np.minimum(WITHIN, topics)
    return TopicMatch(
        Interval(*(part.reshape(methods, len(WITHIN)) for part in (rate.value, rate.low, rate.high))),
        chance=within / topics,
        majority=np.array([frequent[:k].sum() for k in within]) / docs,
        docs=docs,
    )


def by_construction(row: Row) -> bool:
    """Of a row of the table ``topic_match``: whether all topics are looked at, so that any label is among them."""
    return bool(row["within"] > 1 and row["chance"] >= 1)


def mismatches(values: np.ndarray, labels: np.ndarray) -> Mismatches:
    """From the full embedding's ``values[doc, topic]`` and ``labels[doc]`` (-1: none)."""
    labelled = np.flatnonzero(labels >= 0)
    values, labels = values[labelled], labels[labelled]
    mine = values[np.arange(len(values)), labels]
    nearest = values.argmax(axis=1)
    margin = values.max(axis=1, initial=-1) - mine
    wrong = margin > 0
    rank = 1 + (values > mine[:, None]).sum(axis=1)
    return Mismatches(labelled[wrong], labels[wrong], nearest[wrong], rank[wrong], margin[wrong])
