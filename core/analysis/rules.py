"""Written rules that give a head a name, and what decided it: roles, and kinds of attention."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

Evidence = TypeVar("Evidence")


@dataclass(frozen=True)
class Rule(Generic[Evidence]):
    sentence: str
    holds: Callable[[Evidence], bool]
    because: Callable[[Evidence], str]


@dataclass(frozen=True)
class Verdict:
    """``names`` of all rules that hold, in their order, and the numbers that decided."""

    names: tuple[str, ...]
    because: str

    @property
    def name(self) -> str | None:
        """Of the first rule that holds; None if none does."""
        return self.names[0] if self.names else None


def judged(rules: Mapping[str, Rule[Evidence]], evidence: Evidence, otherwise: Callable[[Evidence], str]) -> Verdict:
    """What the rules say; ``otherwise`` gives the numbers of a head that meets none."""
    names = tuple(name for name, rule in rules.items() if rule.holds(evidence))
    return Verdict(names, "; ".join(rules[name].because(evidence) for name in names) or otherwise(evidence))
