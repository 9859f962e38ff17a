"""What is asked of the step ``ablate``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

from core.analysis.ablation_effects import LEAST_RANDOM
from core.analysis.probe import LEAST_DOCS
from core.analysis.topics import AUTO
from core.errors import Mistake, listed
from core.runs.labels import COLUMN
from core.runs.vocabulary import MOST_DRAWS
from precompute.job.fingerprint import fingerprint
from precompute.job.topic_vectors import TopicModel

ALGORITHM = 2
"""Raised whenever the same inputs give other figures."""
DOCUMENTS = 300
MOST_RANDOM, FEWEST_RANDOM, FREEDOM = 12, 4, 90
"""Random removals per layer by default: at most and at least so many, and enough for so many degrees of freedom in all
layers together. Their variances are pooled in part, so that deep models need fewer per layer."""
HOW = {"zero": "by zeros", "mean": "by their mean output over the sample"}
"""What replaces a head's output."""
_LEAST_TOKENS = 8


@dataclass(frozen=True)
class AblateConfig:
    cache: Path
    run: str
    documents: int = DOCUMENTS
    """A sample by topic; all of them where there are fewer."""
    how: str = "zero"
    queries: Path | None = None
    """None: those that ``retrieve`` stored."""
    layers: tuple[int, ...] = ()
    """From 1; all if empty."""
    random: int | None = None
    """Random removals per layer, and as many of the size of a key/value group; None: ``draws`` says."""
    prune: int = 0
    """Heads that are switched off one after another, at most; 0: the step does not prune."""
    tokens: int | None = None
    """Texts are cut to so many; None: as they were embedded."""
    topics: str = AUTO
    centre: bool = False
    seed: int = 0
    again: bool = False
    model: TopicModel = field(default_factory=TopicModel)

    def __post_init__(self) -> None:
        if self.documents < LEAST_DOCS:
            raise Mistake(f"--documents {self.documents} is too few to measure anything: give at least {LEAST_DOCS}.")
        if self.how not in HOW:
            raise Mistake(f"--how {self.how} is unknown. Choose one of {listed(HOW)}.")
        if self.random is not None and self.random < LEAST_RANDOM:
            raise Mistake(f"--random {self.random} is too few for a noise floor: give at least {LEAST_RANDOM}.")
        if self.random is not None and self.random > MOST_DRAWS:
            raise Mistake(f"--random {self.random} is too many: give at most {MOST_DRAWS:,}.")
        if self.prune < 0:
            raise Mistake(f"--prune must be at least 1, not {self.prune}.")
        if self.prune and self.how != "zero":
            raise Mistake("--prune replaces outputs by zeros. Leave out --how mean.")
        if self.tokens is not None and self.tokens < _LEAST_TOKENS:
            raise Mistake(f"--tokens {self.tokens} is too few. Give {_LEAST_TOKENS} or more.")

    def draws(self, layers: int) -> int:
        """Random removals per layer where so many layers are swept."""
        if self.random is not None:
            return self.random
        return min(MOST_RANDOM, max(FEWEST_RANDOM, 1 + ceil(FREEDOM / layers)))

    def options(self, source: str | None) -> dict[str, object]:
        """What was asked for and whose labels there were, without the defaults; of a file of queries only its name."""
        names = ("documents", "how", "layers", "random", "prune", "tokens", "centre", "seed")
        asked = {name: getattr(self, name) for name in names}
        found = {name: value for name, value in asked.items() if value != getattr(AblateConfig, name)}
        if "layers" in found:
            found["layers"] = list(self.layers)
        if self.queries is not None:
            found["queries"] = self.queries.name
        return found if source in (None, COLUMN) else {**found, "label_source": source}

    def inputs(self, made_from: Mapping[str, object], queries: object) -> str:
        """The fingerprint of all that decides the figures."""
        settings = [self.documents, self.how, list(self.layers), self.random, self.tokens, self.centre, self.seed]
        settings += [self.prune] if self.prune else []
        return fingerprint({"algorithm": ALGORITHM, **made_from, "queries": queries, "settings": settings})
