"""What the page is about, computed once a rerun: a document's part at a stage, against the run's corpus."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from core.analysis.document_profile import Consensus, Profile, consensus, profile
from core.retrieval.head_index import NearestByHead, nearest_by_head
from core.retrieval.votes import DEPTH, Ballot, vote
from pages.shared.corpus import say, yardstick
from pages.shared.data import RunState, head_index, topics, vector_docs
from pages.shared.embedding import Reading

NEIGHBOURS = 6
MEASURES: dict[str, str] = {"percentile": "Percentile", "cosine": "Raw cosine"}
"""What the profile's cells are, and what heads vote by; the same keys as core.analysis.document_profile.BY."""


@dataclass(frozen=True)
class Shown:
    """``head`` counts from 1, ``part`` from 0: the beginning, then the chunks."""

    state: RunState
    name: str
    reading: Reading
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
        return vote(self.nearest.docs[1:], say(self.state, self.stage), NEIGHBOURS)


def row_name(row: int) -> str:
    """Row 0 of a profile is the full embedding."""
    return f"head {row}" if row else "full embedding"
