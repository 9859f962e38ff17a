"""Products of many stored vectors with one query, head by head; float16 is multiplied without being converted first.

A float16's bits, moved into the place of a float32's, are the same number times 2**-112. The query takes that factor
back, so that every product is exact in float32, at several times the speed of NumPy's conversion.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np

from core.machine import cores

_BLOCK = 64
"""Documents at a time: what they need while they are multiplied stays in the processor's cache."""
_FRACTION = 23 - 10
_WITHOUT_COPIED_SIGN = np.int32(-0x70000001)
"""All bits but those that a negative number's sign has filled on its way up."""
_FACTOR = np.float32(2.0**112)
WORTH_A_THREAD = 2**23
"""Numbers whose products take longer than a thread's start."""


def products(vectors: np.ndarray, query: np.ndarray) -> np.ndarray:
    """``vectors[doc, head, dim]`` times ``query[head, dim]``: ``[head, doc]`` in float32.

    A document's products do not depend on where it stands, to the last bit; a matrix product's may, for it treats the
    last rows of a block in another way: only whole blocks are multiplied so, where that is of help. Vectors are
    finite, and the query's numbers below 10,000.
    """
    docs, heads, _ = vectors.shape
    query = np.ascontiguousarray(query, dtype=np.float32)
    found = np.empty((heads, docs), dtype=np.float32)
    threads = min(cores(), 1 + vectors.size // WORTH_A_THREAD)
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
    bits = np.zeros((_BLOCK, heads, dims), dtype=np.int32)
    whole = bits.view(np.float32)
    scaled = query * _FACTOR if half else query
    by_matrix = rows_are_alike(heads, dims)
    for start in range(0, docs, _BLOCK):
        block = vectors[start : start + _BLOCK]
        count = len(block)
        if half:
            np.copyto(bits[:count], block.view(np.int16))
            np.left_shift(bits[:count], _FRACTION, out=bits[:count])
            np.bitwise_and(bits[:count], _WITHOUT_COPIED_SIGN, out=bits[:count])
        else:
            np.copyto(whole[:count], block)
        found = _by_matrix(whole, scaled)[:, :count] if by_matrix else _row_by_row(whole[:count], scaled)
        out[:, start : start + count] = found


def _by_matrix(block: np.ndarray, query: np.ndarray) -> np.ndarray:
    product: np.ndarray = np.matmul(block.transpose(1, 0, 2), query[:, :, None])[:, :, 0]
    return product


def _row_by_row(block: np.ndarray, query: np.ndarray) -> np.ndarray:
    product: np.ndarray = np.einsum("nhd,hd->nh", block, query, dtype=np.float32).T
    return product


@cache
def rows_are_alike(heads: int, dims: int) -> bool:
    """Whether the machine's matrix product treats all rows of a whole block in the same way: tried, not believed."""
    chance = np.random.default_rng(0)
    one, query = chance.standard_normal((2, heads, dims), np.float32)
    found = _by_matrix(np.repeat(one[None], _BLOCK, axis=0), query)
    return bool((found == found[:, :1]).all())
