"""Where a head's type of attention and its topic role meet: do selective heads attend broadly?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb, nan

BROAD, SELECTIVE = "broad", "selective"


@dataclass(frozen=True)
class Head:
    """One head at the layer and stage of a run's figures; ``role`` is None where none holds."""

    type: str
    role: str | None
    entropy: float


@dataclass(frozen=True)
class Meeting:
    """How often each type meets each role, and the selective heads against the others."""

    counts: Mapping[tuple[str, str | None], int]
    selective: int
    selective_broad: int
    others: int
    others_broad: int
    p: float
    """Fisher's exact test, two-sided: how likely so uneven a table is if type and role had nothing to do."""
    selective_entropy: float
    others_entropy: float
    """Means; NaN where there is no such head."""

    @property
    def sentence(self) -> str:
        """The answer, with its counts."""
        if not self.selective:
            return f"None of the {self.others} heads is selective at this stage, so that there is nothing to compare."
        said = (
            f"Of {_heads(self.selective, 'selective ')} {self.selective_broad} attend"
            f"{'s' if self.selective_broad == 1 else ''} broadly"
        )
        if not self.others:
            return f"{said}; there are no others to compare with."
        clear = "" if self.p < 0.05 else ", which may well be chance"
        return (
            f"{said}, of the {_heads(self.others, 'other ')} {self.others_broad} (Fisher's exact test: "
            f"p = {self.p:.2f}{clear}). Their mean entropy is {self.selective_entropy:.2f}, the others' "
            f"{self.others_entropy:.2f}."
        )


def meeting(heads: Sequence[Head]) -> Meeting:
    """Of the heads of one layer."""
    mine = [head for head in heads if head.role == SELECTIVE]
    others = [head for head in heads if head.role != SELECTIVE]
    broad = [sum(head.type == BROAD for head in group) for group in (mine, others)]
    return Meeting(
        Counter((head.type, head.role) for head in heads),
        len(mine),
        broad[0],
        len(others),
        broad[1],
        exact_test(broad[0], len(mine), broad[1], len(others)),
        *(sum(head.entropy for head in group) / len(group) if group else nan for group in (mine, others)),
    )


def exact_test(hits: int, of: int, other_hits: int, of_others: int) -> float:
    """Fisher's exact test: the share of all tables with the same margins that are no more likely than this one."""
    total, drawn = of + of_others, hits + other_hits
    ways = {k: comb(of, k) * comb(of_others, drawn - k) for k in range(max(0, drawn - of_others), min(of, drawn) + 1)}
    return sum(count for count in ways.values() if count <= ways[hits]) / comb(total, drawn)


def _heads(count: int, kind: str) -> str:
    return f"{count} {kind}head{'' if count == 1 else 's'}"
