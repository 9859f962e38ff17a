"""Topic lists, ranks of the labelled topic, the heat map's blocks and the suggested merges."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.analysis.heat_map import BLOCKS, PER_TOPIC, frequent_topics, heat_map
from core.analysis.merging import STUDY_GROUPS, agreement, suggest_merges, topic_similarity
from core.analysis.similarity import similarity
from core.analysis.topic_match import WITHIN, mismatches, ranks, topic_match
from core.analysis.topics import AUTO, LABELS, MOST, choose_topics, merged, merged_into, original
from core.errors import Mistake
from core.runs.labels import own

pytestmark = pytest.mark.filterwarnings("error")  # a warning of numpy in ordinary use is a bug
few = settings(max_examples=40, deadline=None, derandomize=True)
seeds = st.integers(0, 10_000)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


# Ranks


def test_ranks_by_hand() -> None:
    values = np.array([[[0.9, 0.1, 0.5], [0.1, 0.9, 0.5]]] * 3)
    assert ranks(values, np.array([0, 1, 2])).tolist() == [[1, 3], [3, 1], [2, 2]]


def test_equal_topics_share_their_mean_rank() -> None:
    """Places 1, 2 and 3 are shared: 2. Places 4 and 5 are shared by the last two: 4.5."""
    values = np.tile([0.5, 0.5, 0.1, 0.5, 0.1], (5, 1, 1))
    assert ranks(values, np.arange(5))[:, 0].tolist() == [2, 2, 4.5, 2, 4.5]


def test_where_all_topics_are_equal_the_rank_is_in_the_middle() -> None:
    assert ranks(np.zeros((2, 3, 25)), np.array([0, 24])).tolist() == [[13] * 3] * 2


@few
@given(seed=seeds, topics=st.integers(1, 12), levels=st.sampled_from([1, 2, 4, 1_000]))
def test_ranks_lie_between_1_and_the_number_of_topics(seed: int, topics: int, levels: int) -> None:
    """And over all labels of one row they add up to 1 + 2 + … + T, however many are equal."""
    row = np.random.default_rng(seed).integers(0, levels, topics) / levels
    found = ranks(np.tile(row, (topics, 1, 1)), np.arange(topics))[:, 0]
    assert found.min() >= 1
    assert found.max() <= topics
    assert found.sum() == topics * (topics + 1) / 2
    assert (np.argsort(found, kind="stable") == np.argsort(-row, kind="stable")).all()


# Topic match


def test_topic_match_by_hand() -> None:
    """Ranks 1, 2, 6, 11: within 1 one of four, within 5 two, within 10 three. Topic 7 has two of four documents."""
    found = topic_match(np.array([[1.0], [2.0], [6.0], [11.0]]), np.array([7, 7, 3, 1]), 20)
    assert WITHIN == (1, 5, 10)
    assert found.rate.value == pytest.approx(np.array([[0.25, 0.5, 0.75]]))
    assert found.chance == pytest.approx([0.05, 0.25, 0.5])
    assert found.majority == pytest.approx([0.5, 1, 1])
    assert found.docs == 4


def test_majority_adds_the_most_frequent_topics() -> None:
    """Seven topics with 7, 6, …, 1 of 28 documents: the first is 7, the first five are 25, all seven are 28."""
    labels = np.repeat(np.arange(7), np.arange(1, 8))
    found = topic_match(np.ones((28, 1)), labels, 12)
    assert found.majority == pytest.approx([7 / 28, 25 / 28, 1])


def test_methods_and_ks_keep_their_places() -> None:
    found = topic_match(np.array([[1.0, 6.0], [1.0, 3.0]]), np.array([0, 1]), 20)
    assert found.rate.value.tolist() == [[1, 1, 1], [0, 0.5, 1]]


def test_with_few_topics_guessing_cannot_miss() -> None:
    found = topic_match(np.array([[1.0], [4.0]]), np.array([0, 1]), 4)
    assert found.chance.tolist() == [0.25, 1, 1]
    assert found.majority.tolist() == [0.5, 1, 1]
    assert found.rate.value.tolist() == [[0.5, 1, 1]]


def test_mean_ranks_at_the_edge() -> None:
    """Shared first places, rank 1.5, are no hit within 1."""
    assert topic_match(np.array([[1.5]]), np.array([0]), 20).rate.value.tolist() == [[0, 1, 1]]


def test_no_hits_and_all_hits_have_an_interval() -> None:
    """p²⁰ = 0.025, p = 0.8316."""
    found = topic_match(np.tile([1.0, 20.0], (20, 1)), np.zeros(20, dtype=int), 25)
    assert found.rate.low[0, 0] == pytest.approx(0.8316, abs=1e-4)
    assert found.rate.high[1, 2] == pytest.approx(1 - 0.8316, abs=1e-4)


def planted(labels: np.ndarray, topics: int, head: int) -> np.ndarray:
    """Similarities ``[doc, 1 + 3 heads, topic]`` of random vectors, with the labels' topics planted in one head."""
    centres = normal(topics, 3, 16, seed=1)
    docs = normal(len(labels), 3, 16, seed=2)
    docs[:, head] += 2 * centres[labels, head]
    return similarity(docs, centres)


def test_the_head_that_was_planted_matches_and_the_others_guess() -> None:
    labels = np.arange(300) % 20
    found = topic_match(ranks(planted(labels, 20, head=1), labels), labels, 20)
    assert found.rate.value[2, 0] > 0.8
    for method in (1, 3):
        for k, chance in enumerate([0.05, 0.25, 0.5]):
            deviation = (chance * (1 - chance) / 300) ** 0.5
            assert found.rate.value[method, k] == pytest.approx(chance, abs=3 * deviation)
    assert found.rate.low[2, 0] > found.rate.high[1, 0]


def test_shuffled_labels_match_no_better_than_chance() -> None:
    labels = np.arange(300) % 20
    values = planted(labels, 20, head=1)
    shuffled = np.random.default_rng(5).permutation(labels)
    found = topic_match(ranks(values, shuffled), shuffled, 20)
    for k, chance in enumerate([0.05, 0.25, 0.5]):
        deviation = (chance * (1 - chance) / 300) ** 0.5
        assert found.rate.value[:, k] == pytest.approx([chance] * 4, abs=3.5 * deviation)  # four methods, three ks


@few
@given(seed=seeds, docs=st.integers(1, 30), topics=st.integers(1, 15))
def test_rates_rise_with_k_and_intervals_contain_them(seed: int, docs: int, topics: int) -> None:
    chance = np.random.default_rng(seed)
    labels = chance.integers(0, topics, docs)
    found = topic_match(ranks(chance.normal(size=(docs, 2, topics)), labels), labels, topics)
    rate = found.rate
    assert (np.diff(rate.value, axis=1) >= 0).all()
    assert (np.diff(found.chance) >= 0).all()
    assert (found.majority >= found.chance - 1e-9).all()  # the most frequent are no rarer than any others
    assert (rate.low <= rate.value + 1e-6).all()
    assert (rate.high >= rate.value - 1e-6).all()


# Documents whose label is not the nearest


def test_mismatches_by_hand() -> None:
    values = np.array(
        [
            [0.9, 0.1, 0.2],  # the label is the nearest
            [0.6, 0.1, 0.4],  # the label is third; 0 is nearer by 0.5
            [0.3, 0.8, 0.8],  # the label shares the first place
            [0.9, 0.1, 0.2],  # no label
            [-0.2, -0.4, -0.9],  # the label is second; 0 is nearer by 0.2, although below zero
        ]
    )
    found = mismatches(values, np.array([0, 1, 2, -1, 1]))
    assert found.docs.tolist() == [1, 4]
    assert found.label.tolist() == [1, 1]
    assert found.nearest.tolist() == [0, 0]
    assert found.rank.tolist() == [3, 2]
    assert found.margin == pytest.approx([0.5, 0.2])


def test_without_labels_nothing_mismatches() -> None:
    found = mismatches(normal(4, 3), np.full(4, -1))
    assert [len(part) for part in vars(found).values()] == [0] * 5


@few
@given(seed=seeds, topics=st.integers(1, 6))
def test_a_mismatch_is_a_document_of_rank_above_one(seed: int, topics: int) -> None:
    """Without equal topics, where both ranks are the same."""
    chance = np.random.default_rng(seed)
    values, labels = chance.uniform(-1, 1, (20, topics)), chance.integers(-1, topics, 20)
    found = mismatches(values, labels)
    known = np.flatnonzero(labels >= 0)
    rank = ranks(values[known][:, None], labels[known])[:, 0]
    assert found.docs.tolist() == known[rank > 1].tolist()
    assert found.rank.tolist() == rank[rank > 1].tolist()
    assert (found.margin > 0).all()
    assert (found.nearest == values[found.docs].argmax(axis=1)).all()
    assert (found.label == labels[found.docs]).all()


def test_a_planted_wrong_label_is_found() -> None:
    topics = np.eye(4, dtype=np.float32)[:, None]
    labels = np.arange(40) % 4
    docs = topics[labels] + 0.1 * normal(40, 1, 4)
    assert not len(mismatches(similarity(docs, topics)[:, 0], labels).docs)
    labels[17] = 3  # it is of topic 1
    found = mismatches(similarity(docs, topics)[:, 0], labels)
    assert (found.docs.tolist(), found.label.tolist(), found.nearest.tolist()) == ([17], [3], [1])


# The heat map


def test_frequent_topics_by_hand() -> None:
    """Topic 4 has three documents, 1 and 3 two each, 0 one, 2 none."""
    labels = np.array([4, 3, 1, 4, -1, 0, 3, -1, -1, -1, 1, 4])
    assert frequent_topics(labels).tolist() == [4, 1, 3, 0]
    assert frequent_topics(labels, 2).tolist() == [4, 1]
    assert frequent_topics(np.full(3, -1)).tolist() == []


def test_heat_map_by_hand() -> None:
    values = np.array([[0.1, 1], [0.5, 2], [0.9, 3], [0.7, 4], [0.3, 5]])
    found = heat_map(values, np.array([0, 1, 0, 1, -1]), [1, 0])
    assert found.docs.tolist() == [3, 1, 2, 0]  # topic 1: 0.7, 0.5; topic 0: 0.9, 0.1
    assert found.topics.tolist() == [1, 1, 0, 0]
    assert found.values.tolist() == [[0.7, 0.5, 0.9, 0.1], [4, 2, 3, 1]]
    assert found.starts.tolist() == [0, 2]


def test_a_topic_with_one_document_and_one_with_none() -> None:
    values = np.arange(6, dtype=np.float32).reshape(3, 2)
    found = heat_map(values, np.array([5, 2, 2]), [5, 3, 2])
    assert found.docs.tolist() == [0, 2, 1]
    assert found.topics.tolist() == [5, 2, 2]
    assert found.starts.tolist() == [0, 1]


@pytest.mark.parametrize("topics", [None, [], [3]])
def test_a_heat_map_without_documents_is_empty(topics: list[int] | None) -> None:
    found = heat_map(normal(4, 3), np.full(4, -1), topics)
    assert found.values.shape == (3, 0)
    assert (len(found.docs), len(found.topics), len(found.starts)) == (0, 0, 0)


def test_the_study_s_eight_blocks_of_120() -> None:
    """Ten topics with 200, 199, …, 191 documents: the first eight, 120 of each."""
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(10), np.arange(200, 190, -1)))
    found = heat_map(normal(len(labels), 3), labels)
    assert (BLOCKS, PER_TOPIC) == (8, 120)
    assert found.values.shape == (3, 960)
    assert found.topics.tolist() == np.repeat(np.arange(8), 120).tolist()
    assert found.starts.tolist() == list(range(0, 960, 120))


def test_the_drawn_documents_are_a_random_sample_and_the_same_again() -> None:
    """100 of 1,000 with similarity falling by number: the mean number is 499.5 with a deviation of 27, not 49.5."""
    values, labels = -np.arange(1_000.0)[:, None], np.zeros(1_000, dtype=int)
    found = heat_map(values, labels, per_topic=100)
    assert len(set(found.docs)) == 100
    assert found.docs.mean() == pytest.approx(499.5, abs=4 * 27)
    assert np.array_equal(heat_map(values, labels, per_topic=100).docs, found.docs)
    assert not np.array_equal(heat_map(values, labels, per_topic=100, seed=1).docs, found.docs)


def test_a_topic_shows_the_same_documents_whatever_stands_beside_it() -> None:
    values, labels = normal(300, 2), np.arange(300) % 3
    alone = heat_map(values, labels, [2], per_topic=10)
    beside = heat_map(values, labels, [0, 2], per_topic=10)
    assert set(beside.docs[10:]) == set(alone.docs)


@few
@given(seed=seeds, topics=st.integers(1, 5), per_topic=st.integers(1, 8))
def test_blocks_are_whole_and_sorted_by_the_full_similarity(seed: int, topics: int, per_topic: int) -> None:
    chance = np.random.default_rng(seed)
    labels = chance.integers(-1, topics, 30)
    values = chance.choice([0.1, 0.2, 0.3, 0.4], (30, 3))
    found = heat_map(values, labels, per_topic=per_topic)
    assert len(set(found.docs)) == len(found.docs)
    assert (found.topics == labels[found.docs]).all()
    assert (found.topics >= 0).all()
    assert np.array_equal(found.values, values[found.docs].T)
    ends = [*found.starts[1:], len(found.docs)]
    for start, end in zip(found.starts, ends, strict=True):
        topic = found.topics[start]
        assert (found.topics[start:end] == topic).all()
        assert end - start == min(per_topic, (labels == topic).sum())
        assert (np.diff(found.values[0, start:end]) <= 0).all()
    sizes = [(labels == found.topics[start]).sum() for start in found.starts]
    assert sizes == sorted(sizes, reverse=True)
    assert len(found.starts) == len(set(labels[labels >= 0]))


def test_the_heat_map_shows_which_head_holds_the_topics() -> None:
    labels = np.arange(200) % 4
    labels[:20] = -1
    found = heat_map(own(planted(np.maximum(labels, 0), 4, head=1), labels), labels)
    brightness = found.values.mean(axis=1)
    assert brightness.argmax() == 2
    assert np.abs(brightness[[1, 3]]).max() < 0.1  # 1 / √(16 × 180) = 0.02 by chance
    assert np.isfinite(found.values).all()


# Topic lists


def test_the_study_s_lists() -> None:
    assert len(merged()) == len(set(merged())) == 25 == STUDY_GROUPS
    assert len(original()) == len(set(original())) == 39


def test_the_39_topics_all_go_into_the_25() -> None:
    into = merged_into()
    assert tuple(into) == original()
    assert set(into.values()) == set(merged())
    for kept in set(original()) & set(merged()):
        assert into[kept] == kept


@pytest.mark.parametrize("count", [0, 1, 25])
def test_auto_is_the_25_if_no_label_is_beyond_them(count: int) -> None:
    assert choose_topics(AUTO, [*merged()[:count], None]) == merged()


def test_auto_is_the_labels_if_one_is_beyond_the_25() -> None:
    """Most frequent first, equals by name; documents without a label do not count."""
    labels = ["tea", None, "rye", "ale", None, None, "rye", merged()[0]]
    assert choose_topics(AUTO, labels) == ("rye", merged()[0], "ale", "tea")  # capital letters come first


def test_labels_may_be_asked_for_though_they_are_of_the_25() -> None:
    some = merged()[:2]
    assert choose_topics(LABELS, [some[1], some[0], some[1]]) == (some[1], some[0])


def test_named_lists() -> None:
    assert choose_topics("merged", ["tea"]) == merged()
    assert choose_topics("original", ["tea"]) == original()


@pytest.fixture
def topic_file(tmp_path: Path) -> Callable[[bytes], str]:
    def write(content: bytes) -> str:
        path = tmp_path / "topics.txt"
        path.write_bytes(content)
        return str(path)

    return write


def test_a_file_with_blank_lines_and_duplicates(topic_file: Callable[[bytes], str]) -> None:
    asked = topic_file("  tea \r\n\n\t\nRye, naïve\ntea\nale\nRye, naïve".encode())
    assert choose_topics(asked, ["beyond"]) == ("tea", "Rye, naïve", "ale")


def test_a_file_with_a_byte_order_mark(topic_file: Callable[[bytes], str]) -> None:
    assert choose_topics(topic_file("tea\nale\n".encode("utf-8-sig")), []) == ("tea", "ale")


def told(asked: str, labels: list[str | None] | None = None) -> str:
    """What a person is told: one line, from a capital letter to a full stop."""
    with pytest.raises(Mistake) as caught:
        choose_topics(asked, labels or [])
    message = str(caught.value)
    assert "\n" not in message
    assert message[0].isupper()
    assert message.endswith(".")
    return message


def test_a_missing_file(tmp_path: Path) -> None:
    message = told(str(tmp_path / "absent.txt"))
    assert message.startswith(f"There is no list of topics '{tmp_path / 'absent.txt'}'.")
    assert "auto, labels, merged, original" in message


@pytest.mark.parametrize(
    "content", [b"\xff\xfe\x00\x01tea\nale", b"PK\x03\x04\x80\x81\n\x9c", "tée\nale".encode("latin-1")]
)
def test_a_binary_file(topic_file: Callable[[bytes], str], content: bytes) -> None:
    assert "cannot be read as text" in told(topic_file(content))


def test_a_folder(tmp_path: Path) -> None:
    assert f"'{tmp_path}' cannot be read" in told(str(tmp_path))


@pytest.mark.parametrize(("content", "count"), [(b"", 0), (b"\n \n", 0), (b"tea", 1), (b"tea\n\ntea\n", 1)])
def test_a_file_with_fewer_than_two_topics(topic_file: Callable[[bytes], str], content: bytes, count: int) -> None:
    assert f"has {count} of them. Give at least two" in told(topic_file(content))


def test_too_many_topics_in_a_file(topic_file: Callable[[bytes], str]) -> None:
    lines = [f"topic {number}" for number in range(MOST + 1)]
    assert "501 different topics, and at most 500" in told(topic_file("\n".join(lines).encode()))
    assert len(choose_topics(topic_file("\n".join(lines[:MOST]).encode()), [])) == 500


@pytest.mark.parametrize("asked", [AUTO, LABELS])
def test_too_many_labels(asked: str) -> None:
    labels: list[str | None] = [f"topic {number}" for number in range(MOST + 1)]
    assert "501 different topics" in told(asked, labels)
    assert len(choose_topics(asked, labels[:MOST])) == 500


def test_labels_asked_for_where_there_are_none() -> None:
    assert told(LABELS, [None, None]).startswith("No document of this run has a topic")


def test_one_label_is_no_list_of_topics() -> None:
    told(LABELS, ["tea", "tea"])


# Merges


def at_angles(*degrees: float) -> np.ndarray:
    """Cosines of topics that lie in a plane at these angles."""
    angles = np.radians(degrees)
    return topic_similarity(np.stack([np.cos(angles), np.sin(angles)], axis=1))


def cosine(degrees: float) -> float:
    return float(np.cos(np.radians(degrees)))


def test_topic_similarity_of_known_angles() -> None:
    found = topic_similarity(np.array([[3, 4], [40, 30], [0, 0], [-3, -4]]))
    assert found == pytest.approx(np.array([[1, 0.96, 0, -1], [0.96, 1, 0, -0.96], [0, 0, 0, 0], [-1, -0.96, 0, 1]]))


def test_two_tight_pairs_are_merged_first() -> None:
    """10° and 15° apart; everything else is at least 60° away."""
    similarity_ = at_angles(100, 0, 115, 190, 10, 270)
    tightest, both = suggest_merges(similarity_, groups=5), suggest_merges(similarity_, groups=4)
    assert tightest.group.tolist() == [0, 1, 2, 3, 1, 4]
    assert tightest.threshold == pytest.approx(cosine(10))
    assert both.group.tolist() == [0, 1, 0, 2, 1, 3]  # numbered by first appearance
    assert both.threshold == pytest.approx(cosine(15))


@pytest.mark.parametrize(
    ("threshold", "group"),
    [
        (1.0, [0, 1, 2, 3]),
        (cosine(9), [0, 1, 2, 3]),
        (cosine(11), [0, 1, 0, 2]),
        (cosine(19), [0, 1, 0, 2]),
        (cosine(21), [0, 1, 0, 1]),
        (-1.0, [0, 0, 0, 0]),
    ],
)
def test_the_threshold_decides(threshold: float, group: list[int]) -> None:
    """One pair is 10° apart, the other 20°."""
    found = suggest_merges(at_angles(0, 90, 10, 110), threshold)
    assert found.group.tolist() == group
    assert found.threshold == threshold


@pytest.mark.parametrize(("threshold", "groups"), [(0.76, 2), (0.75, 1)])
def test_groups_are_joined_by_their_mean_cosine(threshold: float, groups: int) -> None:
    """0° and 20° first; with 50° their mean is (cos 50° + cos 30°) / 2 = 0.754: not the nearest, not the farthest."""
    assert suggest_merges(at_angles(0, 20, 50), threshold).group.max() + 1 == groups


@pytest.mark.parametrize("threshold", [1.01, -1.01, float("nan"), float("inf")])
def test_a_threshold_that_is_no_cosine(threshold: float) -> None:
    with pytest.raises(Mistake, match=rf"^A threshold of {threshold:g} is not a cosine\. Give one between -1 and 1\.$"):
        suggest_merges(at_angles(0, 10), threshold)


def test_fewer_topics_than_groups_stay_as_they_are() -> None:
    found = suggest_merges(at_angles(0, 10, 90))
    assert found.group.tolist() == [0, 1, 2]
    assert found.threshold == 1


@pytest.mark.parametrize("count", [0, 1])
def test_one_topic_or_none(count: int) -> None:
    found = suggest_merges(np.ones((count, count)))
    assert found.group.tolist() == [0] * count
    assert np.isnan(found.threshold)
    assert suggest_merges(np.ones((count, count)), 0.5).threshold == 0.5


@few
@given(seed=seeds, groups=st.integers(1, 12))
def test_there_are_as_many_groups_as_asked_for_and_they_nest(seed: int, groups: int) -> None:
    similarity_ = topic_similarity(normal(12, 4, seed=seed))
    finer, coarser = suggest_merges(similarity_, groups=groups), suggest_merges(similarity_, groups=max(1, groups - 1))
    assert len(set(finer.group)) == groups
    assert list(dict.fromkeys(finer.group)) == list(range(groups))  # numbered by first appearance
    assert coarser.threshold <= finer.threshold
    assert len(set(zip(finer.group, coarser.group, strict=True))) == groups  # no group of the finer is split
    slightly_lower = suggest_merges(similarity_, max(-1, finer.threshold - 1e-6))
    assert slightly_lower.group.tolist() == finer.group.tolist()


def test_the_threshold_that_is_reported_gives_the_same_groups_again() -> None:
    """Cosines by chance of which the last merge's is rounded the wrong way."""
    similarity_ = topic_similarity(normal(39, 8, seed=124))
    found = suggest_merges(similarity_)
    assert suggest_merges(similarity_, found.threshold).group.tolist() == found.group.tolist()


def test_planted_families_of_topics_are_found_again() -> None:
    families = np.arange(39) % 25
    vectors = normal(25, 32)[families] + 0.2 * normal(39, 32, seed=1)
    found = suggest_merges(topic_similarity(vectors))
    assert agreement(found.group, families).index == 1


def test_random_topics_agree_with_no_families() -> None:
    families = np.arange(39) % 25
    found = [
        agreement(suggest_merges(topic_similarity(normal(39, 32, seed=seed))).group, families).index
        for seed in range(30)
    ]
    assert np.mean(found) == pytest.approx(0, abs=0.05)


def test_identical_groupings_agree_wholly_whatever_their_numbers() -> None:
    found = agreement([0, 0, 1, 2, 2, 2], [5, 5, 9, 1, 1, 1])
    assert (found.index, found.pairs_both, found.pairs_first, found.pairs_second) == (1, 4, 4, 4)


def test_agreement_by_hand() -> None:
    """Of six pairs, two together in the first, one in the second and in both.

    By chance 2 × 1 / 6 = 1/3, at most (2 + 1) / 2: (1 - 1/3) / (3/2 - 1/3) = 4/7.
    """
    found = agreement([0, 0, 1, 1], [0, 0, 1, 2])
    assert found.index == pytest.approx(4 / 7)
    assert (found.pairs_both, found.pairs_first, found.pairs_second) == (1, 2, 1)


def test_all_apart_and_all_together_do_not_agree() -> None:
    found = agreement([0, 1, 2], [0, 0, 0])
    assert (found.index, found.pairs_both, found.pairs_first, found.pairs_second) == (0, 0, 0, 3)
