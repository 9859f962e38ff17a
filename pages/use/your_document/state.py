"""What the page is about, computed once per rerun: a document against the corpus, and what its profile says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from core.analysis.document_profile import Consensus, Profile, consensus, profile
from core.retrieval.head_index import NearestByHead, nearest_by_head
from core.retrieval.votes import DEPTH, Ballot, vote
from pages.shared.corpus import vote_weights, yardstick
from pages.shared.data import RunState, head_index, topics, vector_docs
from pages.shared.embedding import EmbeddedText
from pages.shared.heads_in_address import heads_named
from pages.shared.text import shortened

NEIGHBOURS = 6
MEASURES: dict[str, str] = {"percentile": "Percentile", "cosine": "Raw cosine"}
"""What the profile's cells are, and what heads vote by; the same keys as core.analysis.document_profile.BY."""


@dataclass(frozen=True)
class DocumentView:
    """``head`` counts from 1, ``part`` from 0: the beginning, then the chunks."""

    state: RunState
    name: str
    reading: EmbeddedText
    part: int
    stage: int
    head: int
    measure: str = "percentile"

    @property
    def text(self) -> str:
        return self.reading.parts[self.part].text

    def vectors(self, stage: int) -> np.ndarray:
        """``[head, dim]``."""
        return self.reading.vectors[stage][self.part]

    @property
    def topics(self) -> tuple[str, ...]:
        return topics(self.state).names

    @cached_property
    def profile(self) -> Profile:
        return profile(self.vectors(self.stage), yardstick(self.state, self.stage))

    @cached_property
    def consensus(self) -> Consensus:
        return consensus(self.profile, self.measure)

    @cached_property
    def nearest(self) -> NearestByHead:
        """Of the full embedding and of every head, as many as may vote."""
        found = head_index(self.state, self.stage).cosines(self.vectors(self.stage))
        near = nearest_by_head(found, max(DEPTH, NEIGHBOURS))
        return NearestByHead(vector_docs(self.state)[near.docs], near.similarity)

    @cached_property
    def ballot(self) -> Ballot:
        return vote(self.nearest.docs[1:], vote_weights(self.state, self.stage), NEIGHBOURS)


def row_name(row: int) -> str:
    """Row 0 of a profile is the full embedding."""
    return f"head {row}" if row else "full embedding"


_NAME = 60
STANDS_OUT = 75.0
"""A percentile below this is no ground to say that a document is about something."""
EVERY_TOPIC = 85.0
"""From this median over the topics on a document is near to them all: common where cosines are not centred."""


def voting_heads(given: np.ndarray) -> str:
    """The heads whose vote makes a difference: at least a hundredth of what the document got."""
    return heads_named([int(head) + 1 for head in np.flatnonzero(given >= 0.01 * max(given.sum(), 1e-12))])


def consensus_sentences(found: Profile, votes: Consensus, topics: Sequence[str]) -> list[str]:
    """What the full embedding says, how many heads agree, and what the others say instead."""
    order = [int(topic) for topic in votes.order[:3]]
    highest = float(found.percentiles[0, order[0]])
    puts = "puts it with" if highest >= STANDS_OUT else "finds no topic that stands out; first comes"
    first = f"The full embedding {puts} {_name(topics, order[0])}, {standing(highest)}"
    then = [_name(topics, topic) for topic in order[1:]]
    said = [first + (f"; then come {' and '.join(then)}." if then else ".")]
    heads, agree = len(votes.choices), len(votes.choices) - len(votes.dissent)
    usual = float(np.median(found.percentiles[0]))
    if usual >= EVERY_TOPIC or usual <= 100 - EVERY_TOPIC:
        side = "nearer to" if usual > 50 else "farther from"
        said.append(f"But it is {side} nearly every topic than most of the corpus is, so that this says little.")
    if not votes.dissent:
        said.append(f"All {heads} heads vote for the same topic.")
        return said
    said.append(
        f"{_count(agree, heads)} for it{'' if agree else ': it is what they add up to, and no single head says it'}."
    )
    others = [int(topic) for topic in np.argsort(-votes.counts, kind="stable") if votes.counts[topic]]
    named = [
        f"{heads_named(voters(votes, topic))} for {_name(topics, topic)}" for topic in others if topic != votes.first
    ]
    said.append(f"Elsewhere: {'; '.join(named[:4])}{f'; and {len(named) - 4} more topics' if len(named) > 4 else ''}.")
    return said


def voters(votes: Consensus, topic: int) -> list[int]:
    """Heads, from 1, that vote for a topic."""
    return [int(head) + 1 for head in np.flatnonzero(votes.choices == topic)]


def standing(percentile: float) -> str:
    """Where a percentile lies, in words: a share of the corpus, never "more than 100 %"."""
    whole = round(float(percentile))
    if whole >= 100:
        return "nearer than all of the corpus"
    if whole <= 0:
        return "farther than all of the corpus"
    return f"nearer than {whole} % of the corpus"


def _count(agree: int, heads: int) -> str:
    if not agree:
        return f"None of the {heads} heads votes"
    return f"{agree} of {heads} heads vote{'s' if agree == 1 else ''}"


def _name(topics: Sequence[str], topic: int) -> str:
    return f"“{shortened(topics[topic], _NAME)}”"
