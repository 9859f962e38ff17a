"""Several readers at once, on a real server and in Streamlit's own protocol: no error, and nobody sees another's."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pages.shared.data import document_vectors, head_index, run_state
from tests.support.session_client import SessionClient
from tests.support.session_walk import PAGES, WITH_MODEL, Walker, step, words_for

READERS = 8


async def _walk(address: str, number: int, words: list[str]) -> Walker:
    others = [word.encode() for word in words if word != words[number]]
    walker = Walker(SessionClient(address, foreign=lambda: others), words[number], random.Random(number), "demo")
    await walker.reader.open(run="demo")
    # All pages among them; three bring documents, and everybody looks for a word of their own.
    for name in (list(PAGES)[number % len(PAGES)], "your document" if number < 3 else "find a document"):
        await step(walker, name, WITH_MODEL)
    return walker


async def _all(address: str) -> list[Walker]:
    words = words_for(READERS)
    walkers = await asyncio.gather(*(_walk(address, number, words) for number in range(READERS)))
    # The check itself can fail: who searches what it was sent for its own word finds it.
    curious = walkers[0]
    curious.reader.foreign = lambda: [curious.word.encode()]
    await curious.turn("your_document")
    for walker in walkers:
        await walker.reader.close()
    return list(walkers)


def test_a_stage_s_vectors_are_held_once_and_read_only(bare_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADSCOPE_CACHE", str(bare_cache))
    state = run_state("bare")
    found = head_index(state, 2).vectors
    assert found is head_index(run_state("bare"), 2).vectors, "another session's"
    assert not found.flags.writeable
    for head in (1, 4):
        np.testing.assert_array_equal(found[:, head - 1], state.run.head_vectors(2, head))
    np.testing.assert_array_equal(found[3], document_vectors(state, 2, 3))


def test_readers_at_once_see_all_pages_and_nobody_another_s_document(
    serve: Callable[..., str], analysed_cache: Path
) -> None:
    walkers = asyncio.run(_all(serve(analysed_cache)))
    curious, *others = [walker.reader.seen.errors for walker in walkers]
    assert others == [[]] * (READERS - 1)
    assert curious
    assert set(curious) == {f"another reader's word: {walkers[0].word}"}
    assert all(len(walker.reader.pages) == 13 for walker in walkers), "the navigation has reached everybody"
