"""LEACE: no covariance with the labels is left, no linear probe reads them, and no more is moved than needed."""

import numpy as np
import pytest

from core.analysis.leace import fit_eraser


def planted(docs: int = 300, dim: int = 12, values: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(seed)
    codes = np.arange(docs) % values
    mixing = chance.standard_normal((dim, dim))
    return (chance.standard_normal((docs, dim)) + 3 * np.eye(dim)[codes]) @ mixing, codes


def test_the_direction_of_the_label_goes_and_the_other_stays() -> None:
    # Variances are equal and uncorrelated, so whitening changes nothing: the first axis alone separates the classes.
    vectors = np.array([[-1.0, -1], [-1, 1], [1, -1], [1, 1]]) + 5
    eraser = fit_eraser(vectors, np.array([0, 0, 1, 1]))
    assert eraser.rank == 1
    np.testing.assert_allclose(eraser.erased(vectors), [[5, 4], [5, 6], [5, 4], [5, 6]], atol=1e-12)


@pytest.mark.parametrize("docs", [300, 20])
def test_nothing_covaries_with_the_labels_even_with_fewer_documents_than_dimensions(docs: int) -> None:
    vectors, codes = planted(docs, dim=40)
    eraser = fit_eraser(vectors, codes)
    left = eraser.erased(vectors)
    crossed = (left - left.mean(axis=0)).T @ np.eye(4)[codes]
    before = (vectors - vectors.mean(axis=0)).T @ np.eye(4)[codes]
    assert np.abs(crossed).max() < 1e-9 * np.abs(before).max()
    assert eraser.rank == 3


def test_a_linear_probe_falls_to_the_majority() -> None:
    from sklearn.linear_model import LogisticRegression

    vectors, codes = planted()
    codes[:60] = 0  # a majority
    majority = float((codes == 0).mean())
    left = fit_eraser(vectors, codes).erased(vectors)
    assert LogisticRegression(max_iter=2000).fit(vectors, codes).score(vectors, codes) > majority + 0.3
    assert LogisticRegression(max_iter=2000).fit(left, codes).score(left, codes) == pytest.approx(majority, abs=0.01)


def test_documents_without_a_label_have_no_part_but_are_erased() -> None:
    vectors, codes = planted()
    half = codes.copy()
    half[150:] = -1
    np.testing.assert_allclose(
        fit_eraser(vectors, half).erased(vectors), fit_eraser(vectors[:150], codes[:150]).erased(vectors)
    )


def test_labels_that_say_nothing_erase_nothing() -> None:
    vectors, _ = planted()
    for codes in (np.zeros(len(vectors), dtype=int), np.full(len(vectors), -1)):
        np.testing.assert_allclose(fit_eraser(vectors, codes).erased(vectors), vectors, atol=1e-9)
