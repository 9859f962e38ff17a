"""Products of many stored vectors with one query, head by head; float16 is multiplied without being converted first.

A float16's bits, moved into the place of a float32's, are the same number times 2**-112. The query takes that factor
back, so that every product is exact in float32, at several times the speed of NumPy's conversion.
"""

from __future__ import annotations

import itertools
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

_BLOCK = 64
"""Documents at a time: what they need while they are multiplied stays in the processor's cache."""
_FRACTION = 23 - 10
_WITHOUT_COPIED_SIGN = np.int32(-0x70000001)
"""All bits but those that a negative number's sign has filled on its way up."""
_FACTOR = np.float32(2.0**112)
_WORTH_A_THREAD = 2**23
"""Numbers whose products take longer than a thread's start."""


def products(vectors: np.ndarray, query: np.ndarray) -> np.ndarray:
    """``vectors[doc, head, dim]`` times ``query[head, dim]``: ``[head, doc]`` in float32.

    A document's products do not depend on where it stands, to the last bit; a matrix product's would, for it treats the
    last rows of a block in another way. Vectors are finite, and the query's numbers below 10,000.
    """
    docs, heads, _ = vectors.shape
    query = np.ascontiguousarray(query, dtype=np.float32)
    found = np.empty((heads, docs), dtype=np.float32)
    threads = min(len(os.sched_getaffinity(0)), 1 + vectors.size // _WORTH_A_THREAD)
    if threads == 1:
        _multiply(vectors, query, found)
        return found
    edges = np.linspace(0, docs, threads + 1).astype(int)
    with ThreadPoolExecutor(threads) as pool:  # NumPy lets other threads go on while it computes
        jobs = [
            pool.submit(_multiply, vectors[start:end], query, found[:, start:end])
            for start, end in itertools.pairwise(edges)
        ]
        for job in jobs:
            job.result()
    return found


def _multiply(vectors: np.ndarray, query: np.ndarray, out: np.ndarray) -> None:
    docs, heads, dims = vectors.shape
    half = vectors.dtype == np.float16
    bits = np.empty((_BLOCK, heads, dims), dtype=np.int32)
    scaled = query * _FACTOR if half else query
    for start in range(0, docs, _BLOCK):
        block = vectors[start : start + _BLOCK]
        if half:
            moved = bits[: len(block)]
            np.left_shift(block.view(np.int16), _FRACTION, out=moved, dtype=np.int32)
            np.bitwise_and(moved, _WITHOUT_COPIED_SIGN, out=moved)
            block = moved.view(np.float32)
        out[:, start : start + len(block)] = np.einsum("nhd,hd->nh", block, scaled, dtype=np.float32).T
