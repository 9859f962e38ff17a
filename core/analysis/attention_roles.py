"""Where a head's type of attention and its topic role meet: do selective heads attend broadly?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb, nan

import numpy as np

PERMUTATIONS = 2_000
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
            return f"None of the {self.others} heads is selective at this stage, so there is nothing to compare."
        said = (
            f"Of {_heads(self.selective, 'selective ')} {self.selective_broad} attend"
            f"{'s' if self.selective_broad == 1 else ''} broadly"
        )
        if not self.others:
            return f"{said}; there are no others to compare with."
        clear = "" if self.p < 0.05 else ", which may be chance"
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


@dataclass(frozen=True)
class Association:
    """Whether knowing a head's type says anything about its role."""

    heads: int
    bits: float
    """Mutual information of type and role."""
    shuffled: float
    """The mean of it with roles shuffled among the heads of each layer: few heads share some by chance."""
    p: float
    expected: Mapping[tuple[str, str | None], float]
    """Heads of a type and a role by chance: the mean over shuffles."""

    @property
    def sentence(self) -> str:
        says = "Types and roles are related" if self.p < 0.05 else "Types and roles are not shown to be related"
        return (
            f"{says}: over {_heads(self.heads, '')} they share {self.bits:.2f} bits, with roles shuffled within each "
            f"layer {self.shuffled:.2f} (permutation p = {self.p:.3f})."
        )


def association(heads: Sequence[tuple[int, str, str | None]], seed: int = 0) -> Association | None:
    """Of ``(layer, type, role)`` of heads; None where all have one type, or all one role."""
    types, roles = sorted({type_ for _, type_, _ in heads}), sorted({role for *_, role in heads}, key=str)
    if len(types) < 2 or len(roles) < 2:
        return None
    ordered = sorted(heads, key=lambda head: head[0])
    layer = np.array([at for at, _, _ in ordered])
    mine = np.array([types.index(type_) for _, type_, _ in ordered])
    theirs = np.array([roles.index(role) for *_, role in ordered])
    size = (len(types), len(roles))
    chance = np.random.default_rng(seed)
    # Layers are whole numbers: sorted by them and a share of 1, heads stay within their layer.
    orders = np.argsort(layer + chance.random((PERMUTATIONS, len(layer))), axis=1)
    drawn = _tables(mine, theirs[orders], size)
    found, shuffled = _bits(_tables(mine, theirs[None], size))[0], _bits(drawn)
    expected = {
        (type_, role): float(drawn[:, at, of].mean()) for at, type_ in enumerate(types) for of, role in enumerate(roles)
    }
    p = (1 + (shuffled >= found - 1e-12).sum()) / (1 + PERMUTATIONS)
    return Association(len(heads), float(found), float(shuffled.mean()), float(p), expected)


def _tables(mine: np.ndarray, theirs: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """``[draw, type, role]``: how often each meets each, of ``theirs[draw, head]``."""
    cells = (np.arange(len(theirs))[:, None] * size[0] + mine) * size[1] + theirs
    return np.bincount(cells.ravel(), minlength=len(theirs) * size[0] * size[1]).reshape(-1, *size)


def _bits(tables: np.ndarray) -> np.ndarray:
    """``[draw]``: the mutual information of ``tables[draw, type, role]``."""
    share = tables / tables.sum(axis=(1, 2), keepdims=True)
    alone = share.sum(axis=2, keepdims=True) * share.sum(axis=1, keepdims=True)
    logs = np.log2(np.divide(share, alone, out=np.ones_like(share), where=share > 0))
    return (share * logs).sum(axis=(1, 2))


def exact_test(hits: int, of: int, other_hits: int, of_others: int) -> float:
    """Fisher's exact test: the share of all tables with the same margins that are no more likely than this one."""
    total, drawn = of + of_others, hits + other_hits
    ways = {k: comb(of, k) * comb(of_others, drawn - k) for k in range(max(0, drawn - of_others), min(of, drawn) + 1)}
    return sum(count for count in ways.values() if count <= ways[hits]) / comb(total, drawn)


def _heads(count: int, kind: str) -> str:
    return f"{count} {kind}head{'' if count == 1 else 's'}"
