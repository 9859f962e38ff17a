"""What is asked of the step ``attention``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from core.errors import Mistake
from core.runs.manifest import Manifest
from precompute.job.fingerprint import fingerprint
from precompute.job.topic_vectors import TopicModel

ALGORITHM = 1
"""Raised whenever the same inputs give other figures."""
DOCUMENTS, TOKENS = 100, 256
_LEAST_TOKENS = 8


@dataclass(frozen=True)
class AttentionConfig:
    cache: Path
    run: str
    documents: int = DOCUMENTS
    """A sample by topic; all of them where there are fewer."""
    tokens: int = TOKENS
    """Texts are cut to so many: attention takes memory by their square."""
    seed: int = 0
    again: bool = False
    model: TopicModel = field(default_factory=TopicModel)

    def __post_init__(self) -> None:
        if self.documents < 1:
            raise Mistake(f"--documents {self.documents} leaves nothing to look at. Give 1 or more.")
        if self.tokens < _LEAST_TOKENS:
            raise Mistake(f"--pattern-tokens {self.tokens} is too few. Give {_LEAST_TOKENS} or more (usual: {TOKENS}).")

    @property
    def options(self) -> dict[str, object]:
        """What was asked for, without the defaults."""
        asked = {name: getattr(self, name) for name in ("documents", "tokens", "seed")}
        return {name: value for name, value in asked.items() if value != getattr(AttentionConfig, name)}

    def inputs(self, manifest: Manifest) -> str:
        """The fingerprint of all that decides the figures; other labels would merely choose other documents."""
        settings = [self.documents, self.tokens, self.seed]
        return fingerprint({"algorithm": ALGORITHM, "embed": manifest.steps["embed"].fingerprint, "settings": settings})
