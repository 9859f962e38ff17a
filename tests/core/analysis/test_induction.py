"""Induction and duplicate-token scores on attention worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from core.analysis.induction import induction_scores


def test_scores_are_means_over_second_occurrences() -> None:
    attention = np.zeros((1, 2, 3, 4))  # from the second a, b, c to a b c a
    attention[0, 0] = [[0.1, 0.5, 0.2, 0.0], [0.3, 0.2, 0.4, 0.1], [0.1, 0.1, 0.2, 0.6]]
    attention[0, 1, :, 0] = 0.3  # a head that rests on the first token
    found = induction_scores(attention)
    assert found.induction == pytest.approx(np.array([[(0.5 + 0.4 + 0.6) / 3, 0]]))
    assert found.duplicate == pytest.approx(np.array([[(0.1 + 0.2 + 0.2) / 3, 0.1]]))
    assert found.baseline == pytest.approx(np.array([[(0.2 + 0.3 + 0.1 + 0.1) / 4, 0.6 / 4]]))
