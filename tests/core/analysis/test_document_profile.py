"""A document's profile: percentiles with ties, cosines, votes and dissent, worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.analysis.document_profile import (
    BY,
    Profile,
    Ranks,
    Reliability,
    Yardstick,
    consensus,
    corpus_mean,
    profile,
)
from core.analysis.examples import Examples
from core.errors import Mistake
from core.model.shape import ModelShape
from core.retrieval.head_index import HeadIndex
from core.runs.labels import label_codes
from core.runs.results import read_examples, read_similarity, read_tables, read_topics
from core.runs.run import Run
from precompute.steps.analyse import step as analyse
from tests.support.synthetic import FOOTBALL_REPORT, PlantedTopics, misnamed_run, write_run


def test_percentiles_by_hand() -> None:
    """Of the corpus's 0.125, 0.25, 0.25, 0.5: the share below, and half of the equal ones."""
    ranks = Ranks.of([np.array([0.5, 0.25]), np.array([0.125, 0.25])])
    given = {0.0: 0, 0.125: 12.5, 0.2: 25, 0.25: 50, 0.3: 75, 0.5: 87.5, 0.6: 100}
    assert {value: float(ranks.percentile(np.array(value))) for value in given} == given


def test_each_row_and_topic_has_its_own_corpus() -> None:
    corpus = np.array([[[0, 10], [5, 1]], [[1, 20], [6, 1]], [[2, 30], [7, 1]], [[3, 40], [8, 1]]])  # [doc, row, topic]
    ranks = Ranks.of([corpus[:3], corpus[3:]])
    assert ranks.values.dtype == np.float16
    assert ranks.values.shape == (2, 2, 4)
    assert ranks.percentile(np.array([[1.5, 10.0], [9.0, 1.0]])).tolist() == [[50, 12.5], [100, 50]]


def test_percentiles_against_counting() -> None:
    chance = np.random.default_rng(2)
    corpus = chance.integers(0, 20, (333, 3, 4)).astype(np.float16) / 16
    found = chance.integers(-2, 22, (3, 4)) / 16
    below, equal = (corpus < found).sum(axis=0), (corpus == found).sum(axis=0)
    assert Ranks.of([corpus]).percentile(found) == pytest.approx(100 * (below + equal / 2) / 333)


def test_a_value_is_rounded_as_the_corpus_was() -> None:
    """0.1 in float32 lies between two numbers of float16: unrounded, it would be above itself."""
    assert float(Ranks.of([np.array([0.1])]).percentile(np.array(0.1, dtype=np.float32))) == 50


# Two heads of two dimensions; topic A is (1, 0 | 1, 0), topic B (0, 1 | 0, 1).
TOPICS = np.array([[[1, 0], [1, 0]], [[0, 1], [0, 1]]], dtype=np.float32)


def yardstick(mean: np.ndarray | None = None) -> Yardstick:
    corpus = np.zeros((4, 3, 2))  # [doc, 1 + head, topic]
    corpus[:, 2, 1] = [0.7, 0.8, 0.9, 1.0]
    activations = np.array([[1, 1, 1], [5, 5, 5], [9, 5, 9], [20, 20, 20]])  # [doc, 1 + head]
    return Yardstick(TOPICS, Ranks.of([corpus]), Ranks.of([activations]), mean)


def test_a_profile_by_hand() -> None:
    found = profile(np.array([[3, 4], [0, 12]]), yardstick())
    # The full embedding: (3, 4, 0, 12), length 13; topic A (1, 0, 1, 0), topic B (0, 1, 0, 1), length √2.
    root = 2**0.5
    assert found.cosines == pytest.approx(np.array([[3 / 13 / root, 16 / 13 / root], [0.6, 0.8], [0, 1]]))
    assert found.percentiles.tolist() == [[100, 100], [100, 100], [50, 87.5]]
    assert found.activation == pytest.approx([13, 5, 12])
    assert found.activation_percentiles.tolist() == [75, 50, 75]


def test_a_profile_around_the_corpus_mean() -> None:
    mean = np.array([[1, 1], [0, 0]], dtype=np.float32)
    found = profile(np.array([[1, 4], [0, 12]]), yardstick(mean))
    # Head 1: (0, 3) with A - mean = (0, -1) and B - mean = (-1, 0).
    assert found.cosines[1].tolist() == [-1, 0]
    assert found.activation[1] == pytest.approx(17**0.5), "a length is that of the vector itself"


def profile_of(cosines: list[list[float]], percentiles: list[list[float]]) -> Profile:
    nothing = np.zeros(len(cosines))
    return Profile(np.array(cosines), np.array(percentiles), nothing, nothing)


def test_votes_and_dissent() -> None:
    found = profile_of(
        [[0.1, 0.9, 0.3], [0.2, 0.8, 0.1], [0.9, 0.1, 0.2], [0.3, 0.6, 0.5]],
        [[10, 80, 60], [50, 90, 10], [70, 10, 20], [99, 50, 99]],
    )
    by_percentile, by_cosine = consensus(found), consensus(found, "cosine")
    assert by_percentile.order.tolist() == [1, 2, 0]
    assert by_percentile.first == 1
    assert by_percentile.choices.tolist() == [1, 0, 2], "head 3's 99 twice: the larger cosine, topic 2's, decides"
    assert by_percentile.shares == pytest.approx([1 / 3, 1 / 3, 1 / 3])
    assert by_percentile.voters(1) == [1]
    assert by_cosine.choices.tolist() == [1, 0, 1]
    assert by_cosine.shares == pytest.approx([1 / 3, 2 / 3, 0])
    assert by_cosine.voters(1) == [1, 3]


def test_a_profile_by_examples_by_hand() -> None:
    mean = np.array([[1, 1], [0, 0]], dtype=np.float32)
    # Sums of 5, 5 and 2 centred documents: means (1, 0 | 1, 0) and (0, 2 | -1, 0), and too few.
    sums = np.array([[[5, 0], [5, 0]], [[0, 10], [-5, 0]], [[1, 1], [1, 1]]], dtype=np.float32)
    corpus = mean + np.array([[[2, 0], [0, 0]], [[0, 1], [0, 0]]], dtype=np.float32)  # the first one is of topic A
    activations = Ranks.of([np.zeros((2, 3))])
    yard = Yardstick.by_examples(
        ("A", "B", "C"),
        Examples(sums, np.array([5, 5, 2])),
        mean,
        [corpus[:1], corpus[1:]],
        np.array([0, -1]),
        activations,
    )
    assert yard.names == ("A", "B")
    # Left out of its own topic, whose sum is then (3, 0 | 5, 0): 6 / (2 √34) in the full embedding, not 10 / (2 √50).
    own = 3 / 34**0.5
    expected = [[[0, own], [0, 2 / 5**0.5]], [[0, 1], [0, 1]], [[0, 0], [0, 0]]]  # [1 + head, topic, doc], sorted
    assert yard.similarities.values == pytest.approx(np.array(expected), abs=1e-3)
    found = profile(np.array([[4, 5], [0, 12]]), yard)
    # Centred (3, 4 | 0, 12), of length 13: 3 / (13 √2) and 8 / (13 √5).
    assert found.cosines == pytest.approx(np.array([[3 / 13 / 2**0.5, 8 / 13 / 5**0.5], [0.6, 0.8], [0, 0]]), abs=1e-6)
    assert found.percentiles.tolist() == [[50, 50], [50, 50], [50, 50]]
    assert found.activation[1] == pytest.approx(41**0.5), "a length is that of the vector itself"


def test_votes_weigh_as_much_as_heads_are_reliable_above_chance() -> None:
    # Chance 0.2: 0.6 is half of the way to always right, 0.28 a tenth; 0.2 and 0.1 have no vote.
    reliability = Reliability(np.array([0.9, 0.6, 0.2, 0.1, 0.28]), 0.2)
    assert reliability.weights == pytest.approx([0.5, 0, 0, 0.1])
    cosines = [[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.1, 0.9], [0.3, 0.4]]
    votes = consensus(profile_of(cosines, cosines), "cosine", reliability)
    assert votes.choices.tolist() == [0, 1, 1, 1]
    assert votes.shares == pytest.approx([5 / 6, 1 / 6])
    assert votes.voters(1) == [4], "heads 2 and 3 have no vote"
    counted = consensus(profile_of(cosines, cosines), "cosine")
    assert counted.shares == pytest.approx([1 / 4, 3 / 4]), "without weights the unreliable heads win"


def test_heads_at_chance_have_no_say_at_all() -> None:
    cosines = [[0.9, 0.1], [0.8, 0.2]]
    votes = consensus(profile_of(cosines, cosines), "cosine", Reliability(np.array([0.5, 0.5]), 0.5))
    assert votes.shares.tolist() == [0, 0]
    one_topic = consensus(profile_of([[0.9], [0.8]], [[9], [8]]), "cosine", Reliability(np.ones(2), 1.0))
    assert one_topic.shares.tolist() == [0], "with a single topic chance is always right"


def test_an_unknown_way_to_vote() -> None:
    with pytest.raises(Mistake, match=r"^Votes by 'luck' are unknown\. Choose one of percentile, cosine\.$"):
        consensus(profile_of([[0.0], [0.0]], [[0.0], [0.0]]), "luck")
    assert set(BY) == {"percentile", "cosine"}


@pytest.mark.parametrize("centre", [False, True])
def test_a_stored_document_has_the_runs_own_cosines(tmp_path: Path, centre: bool) -> None:
    shape = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)
    vectors = np.random.default_rng(0).normal(size=(40, 32)).astype(np.float16) + 1
    run = write_run(tmp_path, "planted", shape, lambda _, first, n: vectors[first : first + n], ["a", "b"] * 20, 15)
    analyse.run(analyse.AnalyseConfig(tmp_path, "planted", centre=centre, model=PlantedTopics(shape, {})))
    topics = read_topics(run)
    stored = np.concatenate(list(read_similarity(run, 2, len(topics.names))))
    mean = corpus_mean(run.vectors(2), 4)
    assert mean.reshape(-1) == pytest.approx(vectors.astype(float).mean(axis=0), abs=1e-5)
    against = Yardstick(
        topics.vectors[2].reshape(-1, 4, 8),
        Ranks.of([stored]),
        Ranks.of([HeadIndex.of(run.vectors(2), 4).activations.T]),
        mean if centre else None,
    )
    for doc in (0, 17, 39):
        found = profile(vectors[doc].reshape(4, 8), against)
        assert found.cosines == pytest.approx(stored[doc].astype(float), abs=1e-3)
        beaten = (stored[:, 1, 0] < stored[doc, 1, 0]).sum() + 0.5 * (stored[:, 1, 0] == stored[doc, 1, 0]).sum()
        assert found.percentiles[1, 0] == pytest.approx(100 * beaten / 40, abs=2.6)


@pytest.fixture
def misnamed(tmp_path: Path) -> Run:
    return misnamed_run(tmp_path)


def test_names_that_mislead_are_not_believed_and_examples_do_not_mislead(misnamed: Run) -> None:
    stored, topics, tables = read_examples(misnamed, 1), read_topics(misnamed), read_tables(misnamed)
    assert stored.names == topics.names
    vectors = np.concatenate(list(misnamed.vectors(1))).astype(np.float32).reshape(60, 4, 8)
    assert stored.mean == pytest.approx(vectors.mean(axis=0), abs=1e-3)
    labels = label_codes(misnamed.documents(["topic"])["topic"], topics.names)
    activations = Ranks.of([np.zeros((60, 5))])
    football, politics = topics.names.index("football"), topics.names.index("politics")

    by_name = Yardstick(topics.vectors[1].reshape(-1, 4, 8), Ranks.of(read_similarity(misnamed, 1, 3)), activations)
    rows = [row for row in tables.pick("topic_match", stage=1, slicing="heads", within=1) if row["head"] is not None]
    names = Reliability(np.array([row["rate"] for row in rows]), rows[0]["chance"])
    counted = consensus(profile(FOOTBALL_REPORT, by_name), "cosine")
    assert counted.voters(politics)[:3] == [1, 2, 3], "counted, the heads vote for politics"
    weighed = consensus(profile(FOOTBALL_REPORT, by_name), "cosine", names)
    assert not {1, 2, 3} & set(weighed.voters(politics)), "they are never right on the corpus"

    examples = Yardstick.by_examples(
        stored.names, Examples(stored.sums, stored.counts), stored.mean, [vectors], labels, activations
    )
    rows = tables.pick("example_match", stage=1)
    reliability = Reliability(np.array([row["rate"] for row in rows]), rows[0]["chance"])
    assert reliability.rates[:4].tolist() == [1, 1, 1, 1]
    votes = consensus(profile(FOOTBALL_REPORT, examples), "cosine", reliability)
    assert votes.first == football
    assert votes.voters(football)[:3] == [1, 2, 3]
    assert votes.shares[football] > 0.7


def test_damaged_examples_are_refused(misnamed: Run) -> None:
    path = misnamed.analysis_path("examples")
    table = pq.read_table(path)
    short = [vector[:-1] for vector in table["vector"].to_pylist()]
    column = table.schema.get_field_index("vector")
    pq.write_table(table.set_column(column, table.schema.field(column), pa.array(short, table["vector"].type)), path)
    with pytest.raises(Mistake, match=r"^examples\.parquet is damaged at stage 1\. Rebuild it with 'python -m"):
        read_examples(misnamed, 1)


def test_a_corpus_without_enough_examples_is_analysed_and_has_no_match_by_examples(tmp_path: Path) -> None:
    shape = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)
    vectors = np.random.default_rng(0).normal(size=(8, 32)).astype(np.float16)
    run = write_run(tmp_path, "few", shape, lambda _, first, n: vectors[first : first + n], ["a", "b"] * 4, 15)
    analyse.run(analyse.AnalyseConfig(tmp_path, "few", model=PlantedTopics(shape, {})))
    assert read_tables(run).rows["example_match"] == []
    assert read_examples(run, 1).counts.tolist() == [4, 4], "one fewer than a topic needs"
