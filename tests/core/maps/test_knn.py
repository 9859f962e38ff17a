"""Nearest points: an index is shared by all sessions, so that no search may change how another one looks."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.maps.neighbours import Index


class Watched:
    """A faiss index that writes down, at each search, through how many cells another search would look just then."""

    def __init__(self, index: Any) -> None:
        self.index, self.seen = index, list[int]()

    def search(self, *args: Any, **kwargs: Any) -> Any:
        self.seen.append(self.index.nprobe)
        return self.index.search(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.index, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("index", "seen"):
            object.__setattr__(self, name, value)
        else:
            setattr(self.index, name, value)


def test_a_search_through_all_cells_does_not_widen_others() -> None:
    vectors = np.random.default_rng(0).normal(size=(600, 4)).astype(np.float32)
    index = Index(vectors, exact=False)
    watched = Watched(index._index)
    index._index = watched
    before = watched.index.nprobe
    found = index.search(vectors[:5], 500)  # more than 16 of 48 cells hold
    assert len(watched.seen) == 2
    assert watched.seen == [before, before]
    exact = Index(vectors, exact=True).search(vectors[:5], 500)
    np.testing.assert_allclose(found.distances, exact.distances, atol=1e-4)


def test_few_neighbours_are_found_within_the_nearest_cells() -> None:
    vectors = np.random.default_rng(1).normal(size=(2_000, 4)).astype(np.float32)
    found, exact = (Index(vectors, exact=exact).search(vectors, 5).points for exact in (False, True))
    assert (found == exact).mean() > 0.95
