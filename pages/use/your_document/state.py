"""What the page is about, computed once per rerun: a document against the corpus, and what its profile says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from core.analysis.document_profile import Consensus, Profile, Reliability, Yardstick, consensus, profile
from core.analysis.wording import plural
from core.retrieval.head_index import NearestByHead, nearest_by_head
from core.retrieval.votes import DEPTH, Ballot, vote
from pages.shared.corpus import EXAMPLES, NAMES, reliability, vote_weights, yardstick
from pages.shared.data import RunState, head_index, vector_docs
from pages.shared.embedding import EmbeddedText
from pages.shared.figures.reliability import right_for
from pages.shared.heads_in_address import heads_named
from pages.shared.text import shortened

NEIGHBOURS = 6
MEASURES: dict[str, str] = {"percentile": "Percentile", "cosine": "Raw cosine"}
"""What the profile's cells are, and by names what heads vote by; the same keys as core.analysis.document_profile.BY."""
REFERENCES: dict[str, str] = {EXAMPLES: "Examples", NAMES: "Topic names"}


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
    reference: str = NAMES

    @property
    def text(self) -> str:
        return self.reading.parts[self.part].text

    def vectors(self, stage: int) -> np.ndarray:
        """``[head, dim]``."""
        return self.reading.vectors[stage][self.part]

    @property
    def yardstick(self) -> Yardstick:
        return yardstick(self.state, self.stage, self.reference)

    @property
    def topics(self) -> tuple[str, ...]:
        """Those of the profile: by examples, the ones that have enough of them."""
        return self.yardstick.names

    @cached_property
    def reliability(self) -> Reliability | None:
        return reliability(self.state, self.stage, self.reference)

    @cached_property
    def profile(self) -> Profile:
        return profile(self.vectors(self.stage), self.yardstick)

    @cached_property
    def consensus(self) -> Consensus:
        return self.votes(self.profile)

    def votes(self, found: Profile) -> Consensus:
        """By examples always for the nearest topic: that is what a head's reliability is measured by."""
        return consensus(found, "cosine" if self.reference == EXAMPLES else self.measure, self.reliability)

    def cells(self, found: Profile) -> np.ndarray:
        """``[1 + head, topic]`` in the chosen measure."""
        return found.percentiles if self.measure == "percentile" else found.cosines

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
"""Below this percentile, no topic is claimed."""
EVERY_TOPIC = 85.0
"""From this median over the topics on a document is near to them all: common where cosines are not centred."""


def voting_heads(given: np.ndarray) -> str:
    """The heads whose vote makes a difference: at least a hundredth of what the document got."""
    return heads_named([int(head) + 1 for head in np.flatnonzero(given >= 0.01 * max(given.sum(), 1e-12))])


def consensus_sentences(
    found: Profile, votes: Consensus, topics: Sequence[str], reliability: Reliability | None = None
) -> list[str]:
    """What the full embedding says, how the heads vote, and what the most reliable head says."""
    order = [int(topic) for topic in votes.order[:3]]
    highest = float(found.percentiles[0, order[0]])
    puts = "puts it with" if highest >= STANDS_OUT else "finds no topic that stands out; the nearest is"
    first = f"The full embedding {puts} {_name(topics, order[0])}, {standing(highest)}"
    then = [_name(topics, topic) for topic in order[1:]]
    said = [first + (f"; then come {' and '.join(then)}." if then else ".")]
    usual = float(np.median(found.percentiles[0]))
    if usual >= EVERY_TOPIC or usual <= 100 - EVERY_TOPIC:
        side = "nearer to" if usual > 50 else "farther from"
        said.append(f"But it is {side} nearly every topic than most of the corpus is, so this says little.")
    if reliability is None:
        return said + _counted(votes, topics)
    return said + _weighted(votes, topics, reliability)


def _counted(votes: Consensus, topics: Sequence[str]) -> list[str]:
    """Votes of equal weight, in a run without labels: which heads agree, and what the others say instead."""
    heads, agree = len(votes.choices), len(votes.voters(votes.first))
    if agree == heads:
        return [f"All {heads} heads vote for the same topic."]
    named = [
        f"{heads_named(sorted(votes.voters(topic)))} for {_name(topics, topic)}"
        for topic in by_share(votes)
        if topic != votes.first
    ]
    more = f"; and {plural(len(named) - 4, 'more topic')}" if len(named) > 4 else ""
    return [
        f"{_count(agree, heads)} for "
        f"it{'' if agree else ': it is what they add up to, but no single head votes for it'}.",
        f"Elsewhere: {'; '.join(named[:4])}{more}.",
    ]


WORTH_NAMING = 0.1
"""Share of the weighted votes from which a topic is named beside the first."""


def _weighted(votes: Consensus, topics: Sequence[str], reliability: Reliability) -> list[str]:
    """The topics' shares of the weighted votes, and the most reliable head: no list of heads that are mostly wrong."""
    silent = [int(head) + 1 for head in np.flatnonzero(votes.weights <= 0)]
    voting = len(votes.weights) - len(silent)
    if not voting:
        return ["No head is better than chance on this corpus, so their votes are not counted."]
    most, *others = by_share(votes)
    if not others and most == votes.first:
        said = ["The only head with a vote agrees." if voting == 1 else f"All {voting} heads with a vote agree."]
    else:
        if votes.shares[most] < 0.5:
            opening = "The heads do not agree with each other"
        else:
            opening = "The heads mostly agree" if most == votes.first else "The heads mostly disagree"
        named = [most, *(topic for topic in others[:2] if votes.shares[topic] >= WORTH_NAMING)]
        if votes.first not in named:
            named.append(votes.first)
        agreed = "it" if most == votes.first else "the full embedding's choice"
        shares = [
            f"{100 * votes.shares[topic]:.0f} % {'of the votes are ' if topic == most else ''}for "
            f"{agreed if topic == votes.first else _name(topics, topic)}"
            for topic in named
        ]
        said = [f"{opening}: weighted by how often each is right on the corpus, {', '.join(shares)}."]
    best = int(np.argmax(votes.weights)) + 1
    choice = int(votes.choices[best - 1])
    votes_for = "agrees with the full embedding" if choice == votes.first else f"votes for {_name(topics, choice)}"
    said.append(
        f"The most reliable head, {best} ({right_for(reliability.rates[best])}; the full embedding for "
        f"{100 * reliability.rates[0]:.0f}), {votes_for}."
    )
    if silent:
        verb = "is no better than chance and has" if len(silent) == 1 else "are no better than chance and have"
        said.append(f"{heads_named(silent).capitalize()} {verb} no vote.")
    return said


def by_share(votes: Consensus) -> list[int]:
    """The topics that get votes, most first."""
    return [int(topic) for topic in np.argsort(-votes.shares, kind="stable") if votes.shares[topic] > 0]


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
