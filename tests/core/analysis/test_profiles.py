"""Head profiles and roles: numbers worked out by hand, and heads planted as vectors that must get their role."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.analysis.auc import Histograms
from core.analysis.profiles import Profiles, profiles
from core.analysis.roles import RULES, RoleEvidence, role_of
from core.analysis.rules import Verdict
from core.analysis.similarity import similarity
from core.model.stages import HEADS, RANDOM, cut
from core.runs.labels import own as similarity_to_own

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

TOPICS, EACH, DIM = 10, 30, 32
LABELS = np.repeat(np.arange(TOPICS), EACH)
PLANTED = ("selective", "general", "avoiding", "sparse", "uniform", "aligned", "noise")
CHOSEN = 3
"""The topic that the selective head follows."""


def noise(chance: np.random.Generator, docs: int = len(LABELS)) -> np.ndarray:
    """Directions at random, of about length 1."""
    return chance.normal(size=(docs, DIM)) / DIM**0.5


def aside(vectors: np.ndarray, topics: np.ndarray) -> np.ndarray:
    """``vectors[doc, dim]`` without their part in the span of ``topics[topic, dim]``: all cosines to topics are 0."""
    basis = np.linalg.qr(topics.T)[0]
    return vectors - vectors @ basis @ basis.T


def planted(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """``docs[doc, head, dim]`` and ``topics[topic, head, dim]``, a head for each of PLANTED."""
    chance = np.random.default_rng(seed)
    topics = chance.normal(size=(TOPICS, len(PLANTED), DIM))
    topics /= np.linalg.norm(topics, axis=2, keepdims=True)
    named = {name: topics[:, head] for head, name in enumerate(PLANTED)}
    mine = {name: vectors[LABELS] for name, vectors in named.items()}
    near = chance.uniform(0.2, 3, size=(len(LABELS), 1))  # how near a document is to its topic, whatever that is
    single = np.isin(np.arange(len(LABELS)), (7, 45, 128, 201, 290))[:, None]  # of five topics; 2 % are six
    quiet = 0.05 * noise(chance)
    heads = {
        "selective": np.where(LABELS[:, None] == CHOSEN, mine["selective"] + 0.5 * noise(chance), noise(chance)),
        "general": mine["general"] + 0.8 * noise(chance),
        "avoiding": -mine["avoiding"] + 0.8 * noise(chance),
        "sparse": np.where(single, mine["sparse"], aside(noise(chance), named["sparse"])) + quiet,
        # Of any length, and always at a right angle to every topic.
        "uniform": chance.uniform(0.5, 2, size=(len(LABELS), 1)) * aside(noise(chance), named["uniform"]),
        # Far longer than the others, so that the full embedding is this head above all.
        "aligned": 6 * (near * mine["aligned"] + 2 * noise(chance)),
        "noise": noise(chance),
    }
    docs = np.stack([heads[name] for name in PLANTED], axis=1).astype(np.float32)
    return docs, topics.astype(np.float32)


def evidence(found: Profiles, row: int, auc_by_name: np.ndarray, alignment_of_random: float) -> RoleEvidence:
    """As the tables keep it: a number that is not finite is unknown, and comes back as NaN."""
    topic = int(found.topic[row])
    numbers = {
        "mean": found.mean.value[row],
        "mean_low": found.mean.low[row],
        "mean_high": found.mean.high[row],
        "gap": found.gap[row],
        "next_gap": found.next_gap[row],
        "auc": found.auc.value[row],
        "auc_low": found.auc.low[row],
        "auc_by_name": auc_by_name[row, topic] if topic >= 0 else np.nan,
        "alignment": found.alignment.value[row],
        "alignment_low": found.alignment.low[row],
        "alignment_of_random": alignment_of_random,
        **{
            name: getattr(found, name)[row] for name in ("spread", "low_percentile", "positive", "sparsity", "farthest")
        },
    }
    known = {name: float(value) if np.isfinite(value) else float("nan") for name, value in numbers.items()}
    return RoleEvidence(topic=f"topic {topic}" if topic >= 0 else None, **known)


def verdicts(docs: np.ndarray, topics: np.ndarray, labels: np.ndarray = LABELS) -> list[tuple[RoleEvidence, Verdict]]:
    """Of every head, by the way that ``analyse`` takes: against random slices of the same vectors."""
    heads = docs.shape[1]
    found: dict[str, Profiles] = {}
    histograms = Histograms(1 + heads, len(topics))
    for slicing in (HEADS, RANDOM):
        values = similarity(
            cut(docs.reshape(len(docs), -1), heads, slicing), cut(topics.reshape(len(topics), -1), heads, slicing)
        )
        found[slicing] = profiles(similarity_to_own(values, labels), labels, len(topics))
        if slicing == HEADS:
            histograms.add(values, labels)
    best_of_random = float(found[RANDOM].alignment.value[1:].max())
    known = [evidence(found[HEADS], 1 + head, histograms.auc(), best_of_random) for head in range(heads)]
    return [(one, role_of(one)) for one in known]


@pytest.fixture(scope="module", params=[0, 1])
def by_name(request: pytest.FixtureRequest) -> dict[str, tuple[RoleEvidence, Verdict]]:
    return dict(zip(PLANTED, verdicts(*planted(request.param)), strict=True))


@pytest.mark.parametrize("role", [name for name in PLANTED if name != "noise"])
def test_every_planted_role_is_found(by_name: dict[str, tuple[RoleEvidence, Verdict]], role: str) -> None:
    assert by_name[role][1].name == role


def test_the_selective_head_is_selective_for_its_topic(by_name: dict[str, tuple[RoleEvidence, Verdict]]) -> None:
    known, found = by_name["selective"]
    assert known.topic == f"topic {CHOSEN}"
    assert found.because.startswith(f"topic {CHOSEN}: gap ")


def test_noise_has_no_role(by_name: dict[str, tuple[RoleEvidence, Verdict]]) -> None:
    assert by_name["noise"][1].names == ()


@pytest.mark.parametrize("role", ["selective", "sparse", "uniform", "avoiding", "aligned"])
def test_no_head_has_a_role_that_was_planted_in_another(
    by_name: dict[str, tuple[RoleEvidence, Verdict]], role: str
) -> None:
    assert [name for name, (_, found) in by_name.items() if role in found.names] == [role]


def test_every_verdict_has_its_numbers(by_name: dict[str, tuple[RoleEvidence, Verdict]]) -> None:
    for _, found in by_name.values():
        assert any(letter.isdigit() for letter in found.because)
        assert "nan" not in found.because


@pytest.mark.slow
def test_many_heads_of_noise_have_no_role() -> None:
    """Not one of 40, with ten topics each to be selective for."""
    chance = np.random.default_rng(20)
    docs = noise(chance, 40 * len(LABELS)).reshape(len(LABELS), 40, DIM).astype(np.float32)
    topics = noise(chance, 40 * TOPICS).reshape(TOPICS, 40, DIM).astype(np.float32)
    assert {found.name for _, found in verdicts(docs, topics)} == {None}


# The rules, each at its edges.

NOTHING = RoleEvidence(
    mean=0.05,
    mean_low=0.04,
    mean_high=0.06,
    spread=0.1,
    low_percentile=-0.1,
    positive=0.6,
    topic="Health",
    gap=0.01,
    next_gap=0.01,
    auc=0.6,
    auc_low=0.5,
    auc_by_name=0.6,
    alignment=0.2,
    alignment_low=0.1,
    alignment_of_random=0.15,
    sparsity=0.14,
    farthest=0.3,
)
"""Evidence for no role at all."""
LEAST: dict[str, dict[str, float]] = {
    # 0.75 is half as large again as 0.5, without rounding.
    "selective": {"auc": 0.9, "auc_low": 0.8, "auc_by_name": 0.75, "gap": 0.75, "next_gap": 0.5},
    "sparse": {"sparsity": 0.5, "farthest": 0.1},
    "uniform": {"spread": 0.0199},
    "avoiding": {"mean_high": -0.0001, "positive": 0.1},
    "aligned": {"alignment": 0.5, "alignment_low": 0.3001, "alignment_of_random": 0.3},
    "general": {"low_percentile": 0.1},
}
"""What just suffices for each role."""


def test_without_evidence_there_is_no_role() -> None:
    found = role_of(NOTHING)
    assert found.name is None
    assert found.names == ()
    assert "no rule holds" in found.because


@pytest.mark.parametrize("role", list(RULES))
def test_what_just_suffices_gives_the_role_and_no_other(role: str) -> None:
    found = role_of(replace(NOTHING, **LEAST[role]))  # type: ignore[arg-type]
    assert (found.name, found.names) == (role, (role,))


@pytest.mark.parametrize(
    ("role", "short"),
    [
        ("selective", {"auc": 0.8999}),
        ("selective", {"auc_low": 0.7999}),
        ("selective", {"auc_by_name": 0.7499}),
        ("selective", {"gap": 0.7499}),
        ("selective", {"next_gap": 0.5001}),
        ("selective", {"gap": 0.0499, "next_gap": 0.01}),
        ("sparse", {"sparsity": 0.4999}),
        ("sparse", {"farthest": 0.0999}),
        ("uniform", {"spread": 0.02}),
        ("avoiding", {"mean_high": 0.0}),
        ("avoiding", {"positive": 0.1001}),
        ("aligned", {"alignment": 0.4999}),
        ("aligned", {"alignment_low": 0.3}),
        ("general", {"low_percentile": 0.0999}),
    ],
)
def test_what_just_falls_short_gives_no_role(role: str, short: dict[str, float]) -> None:
    assert role_of(replace(NOTHING, **(LEAST[role] | short))).name is None  # type: ignore[arg-type]


@pytest.mark.parametrize("next_gap", [0.03, 0.0, -0.5, -np.inf])
def test_a_gap_of_a_twentieth_is_enough_where_the_next_is_small(next_gap: float) -> None:
    evidence = replace(NOTHING, auc=0.95, auc_low=0.9, auc_by_name=0.8, gap=0.05, next_gap=next_gap)
    assert role_of(evidence).name == "selective"


def test_of_two_roles_the_more_particular_comes_first() -> None:
    both = role_of(replace(NOTHING, **LEAST["general"], **LEAST["sparse"]))  # type: ignore[arg-type]
    assert both.name == "sparse"
    assert both.names == ("sparse", "general")
    # Both reasons are told: 50 % of the deviation, and 95 % of the documents above 0.10.
    assert "50\u00a0%" in both.because
    assert "above 0.10" in both.because


def test_unknown_numbers_give_no_role() -> None:
    numbers = [name for name in RoleEvidence.__dataclass_fields__ if name != "against_slices"]
    unknown = RoleEvidence(**dict.fromkeys(numbers, float("nan")))  # type: ignore[arg-type]
    assert role_of(unknown).names == ()


def test_a_verdict_without_a_topic_says_so_in_words() -> None:
    """Where no topic has five documents, there is no best topic and no AUC of it."""
    unknown = dict.fromkeys(("gap", "next_gap", "auc", "auc_low", "auc_by_name"), float("nan"))
    assert "nan" not in role_of(replace(NOTHING, topic=None, **unknown)).because


def test_a_head_can_be_selective_for_the_only_topic_with_enough_documents() -> None:
    """Five others have four documents each: there is no next gap, so nothing that the gap must exceed."""
    chance = np.random.default_rng(2)
    labels = np.repeat(np.arange(6), [30, 4, 4, 4, 4, 4])
    topics = noise(chance, 12).reshape(6, 2, DIM).astype(np.float32)
    docs = noise(chance, 100).reshape(50, 2, DIM).astype(np.float32)
    docs[:30, 0] += 3 * topics[0, 0]
    known, found = verdicts(docs, topics, labels)[0]
    assert (known.topic, known.auc, known.auc_by_name) == ("topic 0", 1, 1)
    assert known.auc_low == pytest.approx(0.025 ** (1 / 20))  # parted wholly, with 20 on the smaller side: 0.83
    assert found.name == "selective"


# The profiles, by hand.


def by_head(*heads: object) -> np.ndarray:
    """``own[doc, 1 + head]``; the first given is the full embedding's row."""
    return np.stack([np.asarray(head, dtype=np.float32) for head in heads], axis=1)


def test_variance_explained_by_two_topics() -> None:
    found = profiles(by_head([1, 3, 5, 7], [0, 1, 0, 1]), np.array([0, 0, 1, 1]), 2)
    # Head of 1, 3 | 5, 7: mean 4, total 9 + 1 + 1 + 9 = 20, between 2 · (2 - 4)² + 2 · (6 - 4)² = 16.
    # Head of 0, 1 | 0, 1: both topics have the mean ½.
    assert found.explained == pytest.approx([0.8, 0])
    assert found.explained_by_chance == pytest.approx(1 / 3)  # one degree of freedom of three
    # 1 - (1 - 0.8) · 3 / 2 and 1 - 1 · 3 / 2
    assert found.selectivity.value == pytest.approx([0.7, -0.5])


def test_level_spread_and_share_above_zero() -> None:
    found = profiles(by_head([-3, -1, 1, 3, 0]), np.zeros(5, dtype=int), 1)
    assert found.mean.value == pytest.approx([0])
    assert found.spread == pytest.approx([2])  # √((9 + 1 + 1 + 9 + 0) / 5)
    assert found.positive == pytest.approx([2 / 5])
    # Of the sorted five a fifth of the way from the first to the second: -3 + 0.2 · 2.
    assert found.low_percentile == pytest.approx([-2.6])
    assert found.farthest == pytest.approx([3])
    # 2 % of five is at least one document: 9 of the 20.
    assert found.sparsity == pytest.approx([9 / 20])


def test_gaps_of_three_topics() -> None:
    # Five documents each with 0.6, 0.3, 0: gaps 0.6 - 0.15, 0.3 - 0.3, 0 - 0.45.
    found = profiles(by_head(np.repeat([0.6, 0.3, 0], 5)), np.repeat([0, 1, 2], 5), 3)
    assert found.topic.tolist() == [0]
    assert found.gap == pytest.approx([0.45])
    assert found.next_gap == pytest.approx([0], abs=1e-6)
    assert found.auc.value == pytest.approx([1])


def test_random_topics_explain_nothing() -> None:
    chance = np.random.default_rng(3)
    found = profiles(by_head(*chance.normal(size=(20, 300))), chance.integers(6, size=300), 6).selectivity
    assert np.abs(found.value).max() < 0.06  # its error is about √(2 · 5) / 300 = 0.01
    assert found.value.mean() == pytest.approx(0, abs=0.01)
    assert (found.low <= 0).sum() >= 17  # 19.5 of 20 are expected


@pytest.mark.parametrize("effect", [0, 0.3])
def test_the_interval_of_selectivity_holds_the_truth_about_as_often_as_it_says(effect: float) -> None:
    """Topic means of variance ``effect²`` in noise of variance 1 explain effect² / (1 + effect²).

    Of 100 intervals of 95 % fewer than 88 hold it once in 500 times.
    """
    chance = np.random.default_rng(13)
    levels = np.linspace(-1, 1, 6)
    means = effect * (levels / levels.std())[np.arange(300) % 6]
    found = profiles(means[:, None] + chance.normal(size=(300, 100)), np.arange(300) % 6, 6).selectivity
    truth = effect**2 / (1 + effect**2)
    assert ((found.low <= truth) & (truth <= found.high)).sum() >= 88


def test_topics_that_decide_all_explain_all() -> None:
    chance = np.random.default_rng(4)
    found = profiles(by_head(LABELS + 0.1 * chance.normal(size=len(LABELS))), LABELS, TOPICS).selectivity
    # The variance of 0 … 9 is 8.25, that of the noise 0.01.
    assert found.value == pytest.approx([1 - 0.01 / 8.26], abs=5e-4)
    assert found.low > 0.99
    assert found.value <= found.high <= 1


def test_selectivity_does_not_grow_with_the_number_of_topics() -> None:
    """Of 60 documents 30 random topics explain half; what is left after chance is about 0."""
    chance = np.random.default_rng(5)
    found = profiles(by_head(*chance.normal(size=(50, 60))), np.repeat(np.arange(30), 2), 30)
    assert found.explained_by_chance == pytest.approx(29 / 59)
    assert found.explained.mean() == pytest.approx(29 / 59, abs=0.04)
    assert found.selectivity.value.mean() == pytest.approx(0, abs=0.08)


def test_alignment_of_a_copy_a_reverse_and_noise() -> None:
    chance = np.random.default_rng(6)
    full, other = chance.normal(size=(2, 400))
    found = profiles(by_head(full, 0.1 * full + 0.3, -full, other), np.repeat(np.arange(5), 80), 5).alignment
    assert found.value[:3] == pytest.approx([1, 1, -1], abs=1e-5)
    assert found.low[:2] == pytest.approx([1, 1], abs=1e-5)
    assert abs(found.value[3]) < 0.15  # three times 1 / √400
    assert found.low[3] < 0 < found.high[3]


def test_alignment_pools_topics_of_two_and_four_documents() -> None:
    """Ranks less their mean, over the topic's documents: ±½ / 2, reversed, and ±½ / 4, ±3/2 / 4 in the same order.

    The sums of products are -1/8 and 5/16, those of squares 1/8 and 5/16: (5/16 - 1/8) / (5/16 + 1/8) = 3/7.
    """
    full, head = [0.1, 0.2, 0.5, 0.6, 0.7, 0.9], [0.9, 0.3, 0.1, 0.2, 0.21, 0.8]
    found = profiles(by_head(full, head), np.array([0, 0, 1, 1, 1, 1]), 2).alignment
    assert found.value == pytest.approx([1, 3 / 7], abs=1e-5)


def test_alignment_is_within_topics() -> None:
    """A head that follows the full embedding from topic to topic alone follows no document's order."""
    chance = np.random.default_rng(7)
    level = LABELS.astype(float)
    full, head = level + 0.01 * chance.normal(size=(2, len(LABELS)))
    assert np.corrcoef(full, head)[0, 1] > 0.99
    assert abs(profiles(by_head(full, head), LABELS, TOPICS).alignment.value[1]) < 3 / len(LABELS) ** 0.5


def test_sparsity_of_a_normal_sample() -> None:
    """The 2 % beyond z = 2.326, where the density is 0.02665, have 2 · (2.326 · 0.02665 + 0.01) = 0.144 of all."""
    chance = np.random.default_rng(8)
    found = profiles(by_head(*chance.normal(size=(10, 4_000))), np.zeros(4_000, dtype=int), 1)
    assert found.sparsity.mean() == pytest.approx(0.144, abs=0.006)


def test_sparsity_of_single_documents_is_all() -> None:
    values = np.zeros(100)
    values[[3, 70]] = 0.5, -0.8
    found = profiles(by_head(values), np.arange(100) % 2, 2)
    assert found.sparsity == pytest.approx([1])
    assert found.farthest == pytest.approx([0.8])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("level", [0.0, 0.1, 1.0, -0.7])
def test_a_head_that_does_not_vary(level: float) -> None:
    varied = np.linspace(-0.5, 0.5, 40)
    found = profiles(by_head(varied, np.full(40, level)), np.repeat([0, 1, 2, 3], 10), 4)
    assert found.mean.value[1] == pytest.approx(level)
    assert found.spread[1] == pytest.approx(0, abs=1e-6)
    assert found.explained[1] == found.sparsity[1] == found.alignment.value[1] == 0
    assert found.farthest[1] == pytest.approx(0, abs=1e-6)
    for interval in (found.mean, found.selectivity, found.alignment, found.auc):
        assert all(np.isfinite(part).all() for part in vars(interval).values())
    assert found.auc.value[1] == pytest.approx(0.5)
    assert abs(found.gap[1]) < 1e-6


@pytest.mark.filterwarnings("error")
def test_where_nothing_varies_at_all() -> None:
    found = profiles(np.full((20, 3), 0.1, dtype=np.float32), np.repeat([0, 1], 10), 2)
    assert found.alignment.value.tolist() == [0, 0, 0]
    assert np.isfinite(found.selectivity.low).all()
    assert np.isfinite(found.selectivity.high).all()


def test_no_variance_is_no_selectivity() -> None:
    found = profiles(np.full((20, 1), 0.1, dtype=np.float32), np.repeat(np.arange(10), 2), 10)
    assert found.selectivity.value == pytest.approx([0])


def test_every_interval_holds_its_value() -> None:
    chance = np.random.default_rng(9)
    found = profiles(by_head(*chance.normal(size=(4, 200))), chance.integers(4, size=200), 4)
    for interval in (found.mean, found.selectivity, found.alignment, found.auc):
        assert (interval.low <= interval.value).all()
        assert (interval.value <= interval.high).all()


@pytest.mark.filterwarnings("error")
def test_a_topic_with_one_document() -> None:
    labels = np.append(np.repeat([0, 1], 10), 2)
    values = np.append(np.repeat([0.5, 0.1], 10), 0.9)
    found = profiles(by_head(values), labels, 3)
    assert found.topic.tolist() == [0]
    # 0.5 less the mean of ten of 0.1 and one of 0.9, (1 + 0.9) / 11.
    assert found.gap == pytest.approx([0.5 - 1.9 / 11])
    assert found.explained == pytest.approx([1])


@pytest.mark.parametrize(("few", "topic"), [(4, 0), (5, 2)])
def test_a_topic_needs_five_documents_to_be_the_one(few: int, topic: int) -> None:
    values = np.concatenate([np.full(10, 0.2), np.full(10, 0.1), np.full(few, 0.9)])
    found = profiles(by_head(values), np.repeat([0, 1, 2], [10, 10, few]), 3)
    assert found.topic.tolist() == [topic]


@pytest.mark.filterwarnings("error")
def test_no_topic_has_enough_documents() -> None:
    found = profiles(by_head([0.1, 0.2, 0.3, 0.4]), np.array([0, 0, 1, 1]), 2)
    assert found.topic.tolist() == [-1]
    assert np.isnan([found.gap[0], found.next_gap[0], found.auc.value[0]]).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("topics", [1, 4])
def test_only_one_topic_is_present(topics: int) -> None:
    """It has no rest to stand out from, and explains nothing."""
    found = profiles(by_head(np.linspace(0, 1, 20), np.linspace(1, 0, 20)), np.full(20, topics - 1), topics)
    assert found.topic.tolist() == [-1, -1]
    assert found.explained == pytest.approx([0, 0], abs=1e-6)
    assert found.explained_by_chance == 0
    assert found.selectivity.value == pytest.approx([0, 0], abs=1e-6)
    assert found.alignment.value == pytest.approx([1, -1], abs=1e-5)


def test_topics_that_no_document_has_change_nothing() -> None:
    values, labels = by_head(np.random.default_rng(10).normal(size=60)), np.repeat([0, 1, 2], 20)
    some, more = profiles(values, labels, 3), profiles(values, labels + 2, 9)
    assert more.topic - 2 == some.topic
    assert more.explained_by_chance == some.explained_by_chance
    assert more.selectivity.value == pytest.approx(some.selectivity.value)


def test_the_same_seed_gives_the_same_interval() -> None:
    values, labels = by_head(np.random.default_rng(11).normal(size=60)), np.repeat([0, 1, 2], 20)
    first, second, other = (profiles(values, labels, 3, seed).selectivity for seed in (5, 5, 6))
    assert first.low == second.low
    assert first.low != other.low


def test_the_interval_of_a_nearly_uniform_head_is_that_of_the_same_head_made_larger() -> None:
    """Scale does not count: differences of 0.00001 are far above the rounding of numbers around 0."""
    chance = np.random.default_rng(12)
    values, labels = np.repeat([0, 1.0, 2], 40) + chance.normal(size=120), np.repeat([0, 1, 2], 40)
    found = profiles(by_head(values, 1e-5 * values), labels, 3).selectivity
    assert found.value[1] == pytest.approx(found.value[0], abs=1e-3)
    assert found.low[1] == pytest.approx(found.low[0], abs=1e-3)
