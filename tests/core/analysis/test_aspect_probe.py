"""The probe of aspects: its closed form against refitting, planted heads, shuffled labels, and aspects that mingle."""

from __future__ import annotations

import numpy as np
import pytest

from core.analysis.aspect_probe import (
    ACCURACY,
    BALANCED,
    MEASURES,
    NEAREST,
    Fits,
    balance,
    probe_aspects,
    purity,
)
from core.analysis.entangled import cramers_v, within
from core.analysis.left_out_ridge import left_out, standardised
from core.analysis.near_duplicates import first_of_each
from core.analysis.null import ABOVE
from core.runs.vocabulary import ASPECT_MEASURES

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

HEADS, DIM, DOCS = 12, 8, 240


def planted(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Topics and genres that are crossed: head 1 carries the topic, head 2 the genre, head 3 both, the rest noise."""
    chance = np.random.default_rng(seed)
    topic, genre = np.arange(DOCS) % 4, np.arange(DOCS) // 4 % 5
    docs = chance.normal(size=(DOCS, HEADS, DIM))
    docs[:, 0] += 1.1 * chance.normal(size=(4, DIM))[topic]
    docs[:, 1] += 1.1 * chance.normal(size=(5, DIM))[genre]
    docs[:, 2] += 1.1 * chance.normal(size=(4, DIM))[topic] + 1.1 * chance.normal(size=(5, DIM))[genre]
    order = chance.permutation(DOCS)
    return docs.reshape(DOCS, -1)[order], topic[order], genre[order]


@pytest.mark.parametrize("width", [3, 30])
def test_leaving_out_in_closed_form_is_what_refitting_without_the_document_says(width: int) -> None:
    chance = np.random.default_rng(width)
    rows = standardised(chance.normal(size=(12, width)))
    values = np.eye(3)[np.arange(12) % 3]
    penalty = 0.5
    found = left_out(rows.T, (values - values.mean(axis=0)).astype(np.float32).T, penalty).T
    for doc in range(12):
        rest = np.delete(np.arange(12), doc)
        # Least squares with an intercept that is not penalised: one more column of ones, with a penalty of 0.
        columns = np.column_stack([rows[rest], np.ones(11)])
        ridge = np.diag([penalty * 12] * width + [0.0])
        weights = np.linalg.solve(columns.T @ columns + ridge, columns.T @ values[rest])
        expected = np.append(rows[doc], 1.0) @ weights - values[rest].mean(axis=0)
        np.testing.assert_allclose(found[doc], expected, atol=2e-5)


def test_heads_carry_what_was_planted_and_nothing_else() -> None:
    vectors, topic, genre = planted()
    of_topic, of_genre = probe_aspects(vectors, [topic, genre], HEADS, slicings=60)
    for measure in (ACCURACY, BALANCED, NEAREST):
        found = [
            [head for head, verdict in enumerate(one.compared[measure].verdicts, 1) if verdict == ABOVE]
            for one in (of_topic, of_genre)
        ]
        assert found == [[1, 3], [2, 3]], measure
    assert of_topic.values[ACCURACY].value[0] > 0.7
    assert of_topic.chance(ACCURACY) == of_topic.majority == 0.25
    assert of_genre.chance(BALANCED) == 0.2
    assert of_topic.chance(NEAREST) == pytest.approx(59 / 239)
    assert tuple(MEASURES) == ASPECT_MEASURES


def test_an_aspects_figures_do_not_depend_on_the_other_aspects() -> None:
    vectors, topic, genre = planted()
    both = probe_aspects(vectors, [topic, genre], HEADS, slicings=3)
    alone = probe_aspects(vectors, [genre], HEADS, slicings=3)
    assert (both[1].predicted == alone[0].predicted).all()
    np.testing.assert_array_equal(both[1].compared[ACCURACY].null, alone[0].compared[ACCURACY].null)


def test_shuffled_labels_are_seldom_flagged() -> None:
    vectors, topic, genre = planted()
    chance = np.random.default_rng(1)
    shuffled = [chance.permutation(codes) for codes in (topic, genre) for _ in range(15)]
    found = probe_aspects(vectors, shuffled, HEADS, slicings=60)
    flagged = [verdict != "within" for one in found for verdict in one.compared[ACCURACY].verdicts]
    assert np.mean(flagged) <= 0.05


def test_the_nearest_mean_is_taken_however_rare_its_value_is() -> None:
    """One dimension, 90 documents at 0 and 10 at 1: the border is in the middle."""
    codes = np.repeat([0, 1], [90, 10])
    place = codes + np.tile([-0.3, 0.3], 50)
    rows = [standardised(place[:, None]).T]
    (found,) = Fits.of([codes], rows).predicted(rows)
    assert (found[:, 0] == codes).all()


def test_balanced_accuracy_counts_every_value_alike() -> None:
    codes = np.array([0, 0, 0, 1])
    np.testing.assert_allclose(balance(codes), [1 / 6, 1 / 6, 1 / 6, 1 / 2])
    assert balance(codes) @ np.array([1, 1, 1, 0]) == pytest.approx(0.5)


def test_purity_is_the_share_of_nearest_documents_with_the_same_value() -> None:
    # Two directions, six documents each: the ten nearest are the five of the same direction and five others.
    rows = np.repeat(np.eye(2, dtype=np.float32), 6, axis=1)
    codes = np.repeat([0, 1], 6)
    (found,) = purity([rows], [codes])
    np.testing.assert_allclose(found[:, 0], 0.5)


def test_the_penalty_grows_where_there_is_only_noise() -> None:
    chance = np.random.default_rng(0)
    codes = np.arange(60) % 2
    noise = standardised(chance.normal(size=(60, 8))).T
    signal = standardised(chance.normal(size=(60, 8)) * 0.1 + np.eye(8)[codes]).T
    assert Fits.of([codes], [noise]).penalties[0] > Fits.of([codes], [signal]).penalties[0]


def test_cramers_v_of_crossed_and_of_equal_aspects() -> None:
    one, other = np.arange(40) % 4, np.arange(40) // 4 % 5
    assert cramers_v(one, other) == 0
    assert cramers_v(one, one) == pytest.approx(1)
    # 2 × 2 with 30, 10, 10, 30: phi² = 0.25, less 1/79, over the corrected size of 2 less 1.
    table = np.repeat([0, 0, 1, 1], [30, 10, 10, 30]), np.repeat([0, 1, 0, 1], [30, 10, 10, 30])
    assert cramers_v(*table) == pytest.approx(np.sqrt((0.25 - 1 / 79) / (1 - 1 / 79)))


def test_an_aspect_that_is_only_the_shadow_of_another_is_gone_within_its_values() -> None:
    """Head 1 carries the genre; the topic goes together with it, and seems to be carried."""
    chance = np.random.default_rng(0)
    genre = np.arange(300) % 2
    topic = np.where(chance.random(300) < 0.85, genre, 1 - genre)
    docs = chance.normal(size=(300, 2, 6))
    docs[:, 0, 0] += 4.0 * genre
    vectors = docs.reshape(300, -1)
    (raw,) = probe_aspects(vectors, [topic], 2, slicings=3)
    found = within(vectors, topic, genre, 2, raw.penalties)
    assert raw.values[ACCURACY].value[1] > 0.7
    # Without the head: the majority of each genre is right.
    majority = np.bincount(topic == genre).max() / 300
    assert found.chance == pytest.approx(majority)
    assert found.accuracy.low[1] < majority
    assert found.accuracy.value[1] < majority + 0.01
    docs[:, 1, 0] += 4.0 * topic  # head 2 carries the topic itself
    assert within(docs.reshape(300, -1), topic, genre, 2, raw.penalties).accuracy.low[2] > 0.9


def test_of_near_duplicates_the_first_is_used() -> None:
    story = "the quick brown fox jumps over the lazy dog while the old cat sleeps on the warm stone wall"
    copied = story.replace("warm", "cold")
    other = "rates rose again last week as the bank said that prices had not fallen as fast as it had hoped for"
    assert first_of_each([story, other, copied, "short", "short"]).tolist() == [True, True, False, True, False]
