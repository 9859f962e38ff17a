"""Documents that cannot be embedded are found by halving, so that those around them are embedded all the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from core.errors import Mistake
from core.model.embedder import Embedded
from core.model.shape import ModelShape

ENOUGH = 32
"""Failures in one part that are looked for even if fewer are allowed; beyond, it is not the documents' fault."""


class Died(Exception):
    """The process that was to embed has died, and says no more than how."""


class Unusable(Exception):
    """The device can no longer be used by this process; the next one may go on."""


@dataclass(frozen=True)
class Survivors:
    """What could be embedded of some documents."""

    embedded: list[Embedded]
    """Of those that could be, in order."""
    failed: dict[int, str]
    """Why the others could not be, by their positions."""

    def joined(self, shape: ModelShape, shares: bool = False) -> Embedded:
        """All in one; ``shape`` says what none looks like, with ``shares`` at stage 4, too."""
        found = self.embedded or [_none(shape, shares)]
        if len(found) == 1:
            return found[0]
        return Embedded(
            attention=np.concatenate([one.attention for one in found], axis=1),
            projected=np.concatenate([one.projected for one in found], axis=1),
            output=np.concatenate([one.output for one in found]),
            tokens=np.concatenate([one.tokens for one in found]),
            truncated=np.concatenate([one.truncated for one in found]),
            shares=np.concatenate([one.stage(4) for one in found])[None] if shares else None,
        )


def embed_surviving(embed: Callable[[list[str]], Embedded], texts: Sequence[str], allowed: int) -> Survivors:
    """Embeds all texts that can be; refuses where more than ``allowed`` (and ENOUGH) fail, or all of several."""
    found = Survivors([], {})
    _embed(embed, list(texts), 0, max(allowed, ENOUGH), found)
    if len(texts) > 1 and len(found.failed) == len(texts):
        raise Mistake(f"No document of a part of {len(texts)} could be embedded. {found.failed[0]}")
    return found


def _embed(embed: Callable[[list[str]], Embedded], texts: list[str], first: int, most: int, found: Survivors) -> None:
    try:
        found.embedded.append(embed(texts))
        return
    except (Unusable, KeyboardInterrupt):
        raise
    except Exception as error:
        # A process may have been killed for another reason: alone, a document has a second try.
        reason = _why(embed, texts, error, found)
    if reason is None:
        return
    if len(texts) == 1:
        found.failed[first] = reason
        if len(found.failed) > most:
            raise Mistake(
                f"More than {most} documents of one part could not be embedded. The last: {reason} If that is "
                "expected, raise --max-failures."
            )
        return
    half = len(texts) // 2
    _embed(embed, texts[:half], first, most, found)
    _embed(embed, texts[half:], first + half, most, found)


def _why(embed: Callable[[list[str]], Embedded], texts: list[str], error: Exception, found: Survivors) -> str | None:
    """The reason; None if a second try went well."""
    if isinstance(error, Died) and len(texts) == 1:
        try:
            found.embedded.append(embed(texts))
            return None
        except Exception as again:
            error = again
    said = str(error).strip().splitlines()
    reason = said[0][:300] if said else type(error).__name__
    return reason if isinstance(error, (Mistake, Died)) else f"{type(error).__name__}: {reason}"


def _none(shape: ModelShape, shares: bool) -> Embedded:
    def rows(*axes: int) -> np.ndarray:
        return np.empty(axes, dtype=np.float32)

    return Embedded(
        rows(1, 0, shape.width(1)),
        rows(1, 0, shape.width(2)),
        rows(0, shape.width(3)),
        np.empty(0, dtype=np.int32),
        np.empty(0, dtype=bool),
        shares=rows(1, 0, shape.width(4)) if shares else None,
    )
