"""From a topic to its heads: by hand, on a planted head, and on labels that say nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from core.analysis.head_measures import LabelledSample
from core.analysis.topic_heads import (
    AVOIDS,
    FOLLOWS,
    MOST_OF_TOPIC,
    MOST_OTHERS,
    choose_documents,
    topic_heads,
    topic_sentence,
)
from core.model.share_space import ShareSpace

HEADS, DIM, TOPICS = 6, 16, 5


def sample(vectors: np.ndarray, labels: np.ndarray, topics: np.ndarray) -> LabelledSample:
    """From ``vectors[doc, head, dim]`` and ``topics[topic, head, dim]``."""
    docs, names = (rows.reshape(len(rows), -1).astype(np.float32) for rows in (vectors, topics))
    return LabelledSample(docs, labels, names, docs.mean(axis=0), centre=False, heads=vectors.shape[1])


def planted(seed: int = 0, follower: int = 3, sign: float = 1.0) -> LabelledSample:
    """150 documents of noise; one head (from 1) carries the name of topic 2 in that topic's documents."""
    chance = np.random.default_rng(seed)
    labels = np.arange(150) % TOPICS
    names = chance.normal(size=(TOPICS, HEADS, DIM))
    vectors = chance.normal(size=(150, HEADS, DIM))
    vectors[labels == 2, follower - 1] += sign * 1.5 * names[2, follower - 1]
    return sample(vectors, labels, names)


def test_the_ranking_and_the_auc_are_those_worked_out_by_hand() -> None:
    # Two heads of two numbers; the topic's name is (1, 0) in both. In head 1 the topic's five documents point along it
    # (cosine 1) and the other five across (0). In head 2 one of the five points away (-1) and lies below all others,
    # and the other four along: 4 of 5 times 5 pairs are won.
    along, across, away = (1, 0), (0, 1), (-1, 0)
    first = [along] * 5 + [across] * 5
    second = [away, *[along] * 4, *[across] * 5]
    vectors = np.array([first, second], dtype=float).transpose(1, 0, 2)
    labels = np.array([0] * 5 + [1] * 5)
    found = topic_heads(sample(vectors, labels, np.array([[along, along], [across, across]], dtype=float)), 0, 2)
    assert found is not None
    assert found.auc.value[1:].tolist() == [1.0, 0.8]
    assert found.ranking.tolist() == [1, 2]
    assert (found.documents, found.others, found.null.shape) == (5, 5, (200, 2))


@pytest.mark.parametrize("centre", [False, True])
def test_the_full_embedding_and_random_slices_are_scored_as_scikit_learn_does(centre: bool) -> None:
    given = replace(planted(), centre=centre)
    found = topic_heads(given, 2, TOPICS, slicings=3, seed=7)
    assert found is not None
    assert found.null.shape == (3, HEADS)
    mine, shift = given.labels == 2, given.mean if centre else 0
    vectors, name = given.vectors - shift, given.topics[2] - shift

    def cosines(rows: np.ndarray, name: np.ndarray) -> np.ndarray:
        return rows @ name / (np.linalg.norm(rows, axis=1) * np.linalg.norm(name))

    assert found.auc.value[0] == pytest.approx(roc_auc_score(mine, cosines(vectors, name)), abs=1e-6)
    order = np.random.default_rng([7, HEADS * DIM]).permutation(HEADS * DIM)[:DIM]  # the first slice of the first one
    score = roc_auc_score(mine, cosines(vectors[:, order], name[order]))
    assert found.null[0, 0] == pytest.approx(score, abs=1e-6)


@pytest.mark.parametrize("centre", [False, True])
def test_random_slices_of_shares_are_scored_in_the_embedding_s_own_space(centre: bool) -> None:
    maps = np.random.default_rng(5).normal(size=(HEADS, 40, DIM))
    space = ShareSpace(*np.linalg.qr(maps))
    given = replace(planted(), centre=centre, space=space)
    found = topic_heads(given, 2, TOPICS, slicings=3, seed=7)
    assert found is not None
    mine, shift = given.labels == 2, given.mean[None] if centre else np.zeros((1, HEADS * DIM))
    order = np.random.default_rng([7, HEADS * DIM]).permutation(HEADS * DIM)[:DIM]  # the first slice of the first one
    columns = maps.transpose(0, 2, 1).reshape(HEADS * DIM, -1)[order]
    docs, name = (space.outputs(rows - shift)[:, order] @ columns for rows in (given.vectors, given.topics[2:3]))
    cosines = docs @ name[0] / np.linalg.norm(docs, axis=1)
    assert found.null.shape == (3, HEADS)
    assert found.null[0, 0] == pytest.approx(roc_auc_score(mine, cosines), abs=1e-6)


def test_the_planted_head_alone_follows_its_topic_and_no_other_topic_has_a_head() -> None:
    given = planted()
    found = [topic_heads(given, topic, TOPICS) for topic in range(TOPICS)]
    assert [one.heads(FOLLOWS) for one in found if one] == [[], [], [3], [], []]
    assert not any(one.heads(AVOIDS) for one in found if one)
    assert found[2] is not None
    assert found[2].ranking[0] == 3
    assert topic_sentence(found[2]).startswith(
        "Head 3 follows this topic more closely than random slices do: in head 3"
    )
    assert found[0] is not None
    assert topic_sentence(found[0]) == "No head is shown to follow this topic more closely than random slices do."


def test_a_head_that_turns_away_from_a_topic_avoids_it() -> None:
    found = topic_heads(planted(sign=-1.0), 2, TOPICS)
    assert found is not None
    assert (found.heads(FOLLOWS), found.heads(AVOIDS)) == ([], [3])
    assert topic_sentence(found).startswith("Head 3 avoids it: in head 3 its documents score lower than others in")


def test_shuffled_labels_have_no_heads() -> None:
    chance, claims, lists = np.random.default_rng(4), 0, 30
    for seed in range(lists):
        real = planted(seed)
        shuffled = LabelledSample(real.vectors, chance.permutation(real.labels), real.topics, real.mean, False, HEADS)
        for topic in range(TOPICS):
            found = topic_heads(shuffled, topic, TOPICS, slicings=40)
            assert found is not None
            claims += bool(found.heads(FOLLOWS) or found.heads(AVOIDS))
    # One list of labels in twenty may have one; of 30 more than 4 would do with a probability of 0.016.
    assert claims <= 4


def test_a_topic_of_four_documents_is_not_compared() -> None:
    given = planted()
    labels = np.where(np.cumsum(given.labels == 2) > 4, 0, given.labels)  # all but four of them have another label
    few = LabelledSample(
        given.vectors, np.where(given.labels == 2, labels, given.labels), given.topics, given.mean, False, HEADS
    )
    assert (few.labels == 2).sum() == 4
    assert topic_heads(few, 2, TOPICS) is None


def test_large_topics_are_sampled_and_documents_without_a_label_are_left_out() -> None:
    labels = np.array([0] * 1_000 + [1] * 2_000 + [-1] * 500)
    chosen = choose_documents(labels, 0)
    assert (labels[chosen] == 0).sum() == MOST_OF_TOPIC
    assert (labels[chosen] == 1).sum() == MOST_OTHERS
    assert len(np.unique(chosen)) == len(chosen)
    assert (np.diff(chosen) > 0).all()
    assert choose_documents(labels[:3], 0).tolist() == [0, 1, 2]
