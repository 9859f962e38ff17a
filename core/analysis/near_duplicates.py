"""Documents that share half of their word sequences: a probe uses one of each group, or it would recognise copies."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

WORDS = 5
"""Per sequence."""
SHARED = 0.5
"""Of the shorter document's sequences."""
_COMMON = 20
"""Documents: a sequence that more of them have is a formula (a cookie notice), and no sign of a copy."""


def first_of_each(texts: Sequence[str]) -> np.ndarray:
    """``[doc]``: whether no earlier document is a near-duplicate of this one, or of one that is."""
    sequences = [_sequences(text) for text in texts]
    having: dict[int, list[int]] = defaultdict(list)
    for doc, own in enumerate(sequences):
        for sequence in own:
            having[sequence].append(doc)
    group = np.arange(len(texts))
    shared: Counter[tuple[int, int]] = Counter()
    for docs in having.values():
        if len(docs) <= _COMMON:
            shared.update((first, second) for at, second in enumerate(docs) for first in docs[:at])
    for (first, second), count in shared.items():
        if count >= SHARED * min(len(sequences[first]), len(sequences[second])):
            one, other = sorted((group[first], group[second]))
            group[group == other] = one
    return np.asarray(group == np.arange(len(texts)))


def _sequences(text: str) -> set[int]:
    words = text.lower().split()
    return {hash(tuple(words[at : at + WORDS])) for at in range(max(1, len(words) - WORDS + 1))}
