"""Head vectors as int8: worked values, every range that a float has, and the part that holds them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from core.retrieval.head_index import HeadIndex
from core.runs.number_formats import dequantised, quantise
from core.runs.parts import read_part, write_part, write_table
from core.runs.schema import heads_schema

ANY = st.floats(width=32, allow_nan=False, allow_infinity=False)


def test_the_largest_number_of_each_head_is_127_steps() -> None:
    found = quantise(np.array([[1.27, -0.634, 0.0, 254.0]], dtype=np.float32), heads=2)
    assert found.values.tolist() == [[127, -63, 0, 127]]
    assert np.allclose(found.scale, [[0.01, 2.0]])
    assert np.allclose(dequantised(found), [[1.27, -0.63, 0, 254]], rtol=2**-11)


def test_a_head_without_length_stays_so_beside_one_that_has_some() -> None:
    found = quantise(np.array([[0.0, 0.0, 3.0, 1.0]]), heads=2)
    assert found.scale[0, 0] == 0
    assert dequantised(found)[0, :2].tolist() == [0, 0]


@given(arrays(np.float32, (3, 2 * 5), elements=ANY))
def test_an_error_is_half_a_step_at_most_whatever_the_range(vectors: np.ndarray) -> None:
    found = quantise(vectors, heads=2)
    back = dequantised(found).astype(np.float64)
    assert np.isfinite(back).all()
    step = np.repeat(found.scale, 5, axis=1).astype(np.float64)
    # What comes after the half step: a float32's rounding, or a float16's, and the smallest float32 there is.
    rounding = np.abs(vectors) * 2.0**-22 + (step / 15 if dequantised(found).dtype == np.float16 else 0) + 2.0**-149
    assert (np.abs(back - vectors) <= step / 2 + rounding).all()


@pytest.mark.parametrize(
    ("size", "dtype"), [(1.0, np.float16), (1e-30, np.float32), (1e-44, np.float32), (3.4e38, np.float32)]
)
def test_what_float16_cannot_hold_comes_back_as_float32(size: float, dtype: type) -> None:
    vectors = (np.array([[1.0, -0.5, 0.25, 0.125]]) * size).astype(np.float32)
    back = dequantised(quantise(vectors, heads=1))
    assert back.dtype == dtype
    assert np.abs(back.astype(np.float64) - vectors).max() <= 1.1 * float(vectors.max()) / 127 / 2 + 2.0**-149


def test_a_part_without_documents_has_the_same_columns(tmp_path: Path) -> None:
    write_part(tmp_path / "part.parquet", np.arange(0), np.empty((0, 8)), "int8", "", heads=2)
    assert read_part(tmp_path / "part.parquet", heads_schema(8, "int8", 2), "rebuild", 0).shape == (0, 8)


def test_what_is_not_finite_is_not_hidden() -> None:
    back = dequantised(quantise(np.array([[np.nan, 1.0, 2.0, 2.0], [np.inf, 1.0, 2.0, 2.0]]), heads=2))
    assert not np.isfinite(back[:, :2]).any()
    assert np.allclose(back[:, 2:], 2)


def test_a_part_reads_as_float16_and_mixes_with_wider_ones(tmp_path: Path) -> None:
    vectors = np.random.default_rng(1).standard_normal((50, 4 * 32)).astype(np.float32)
    write_part(tmp_path / "part.parquet", np.arange(50), vectors, "int8", "made from this", heads=4)
    back = read_part(tmp_path / "part.parquet", heads_schema(128, "int8", 4), "rebuild", 50)
    assert back.dtype == np.float16
    # One byte a number in the file, also when a part is written again as it was read.
    write_table(tmp_path / "again.parquet", pq.read_table(tmp_path / "part.parquet"), "", compression="none")
    for name in ("part.parquet", "again.parquet"):
        assert (tmp_path / name).stat().st_size < 50 * (128 + 4 * 4) + 5_000
    assert np.abs(back - vectors).max() <= np.abs(vectors).max() / 127 * 0.57
    # The page that embeds a new document takes such parts, mixed with wide ones, as they come.
    index = HeadIndex.of([back, vectors * 1e10], heads=4)
    assert index.cosines(vectors[7].reshape(4, 32))[0, [7, 57]] == pytest.approx([1, 1], abs=1e-4)
