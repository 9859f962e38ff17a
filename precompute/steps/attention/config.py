"""What is asked of the step ``attention``."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from core.analysis.conllu import OWN, Sentence, read_treebank
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
    treebank: Path | None = None
    """A CoNLL-U file; None for the sentences that come with Headscope."""
    seed: int = 0
    again: bool = False
    model: TopicModel = field(default_factory=TopicModel)

    def __post_init__(self) -> None:
        if self.documents < 1:
            raise Mistake(f"--documents must be at least 1, not {self.documents}.")
        if self.tokens < _LEAST_TOKENS:
            raise Mistake(f"--pattern-tokens {self.tokens} is too few. Give {_LEAST_TOKENS} or more (usual: {TOKENS}).")

    @property
    def options(self) -> dict[str, object]:
        """What was asked for, without the defaults."""
        asked = {name: getattr(self, name) for name in ("documents", "tokens", "seed")}
        given = {name: value for name, value in asked.items() if value != getattr(AttentionConfig, name)}
        return given if self.treebank is None else {**given, "treebank": self.treebank.name}

    def sentences(self) -> list[Sentence]:
        return read_treebank(self.treebank or OWN)

    def inputs(self, manifest: Manifest) -> str:
        """The fingerprint of all that decides the figures; other labels would merely choose other documents."""
        settings = [self.documents, self.tokens, self.seed]
        inputs = {"algorithm": ALGORITHM, "embed": manifest.steps["embed"].fingerprint, "settings": settings}
        if self.treebank is not None:
            inputs["treebank"] = self._digest(self.treebank)
        return fingerprint(inputs)

    def _digest(self, treebank: Path) -> str:
        try:
            return hashlib.sha256(treebank.read_bytes()).hexdigest()
        except OSError as error:
            raise Mistake(
                f"The treebank '{treebank.name}' could not be read ({error.strerror}). Give a CoNLL-U file."
            ) from error
