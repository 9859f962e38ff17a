"""From the results of core/ to the rows of ``analysis/*.parquet``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from core.analysis.bootstrap import Interval, means
from core.analysis.merging import topic_similarity as topic_cosines
from core.analysis.probe import Probe
from core.analysis.profiles import Profiles, profiles
from core.analysis.redundancy import Redundancy, group_comparison
from core.analysis.roles import Evidence, verdict
from core.analysis.similarity import POOLINGS
from core.analysis.topic_match import WITHIN, Mismatches, TopicMatch
from core.analysis.topic_match import topic_match as match_of_ranks
from core.model.shape import ModelShape
from core.model.stages import HEADS, RANDOM
from precompute.job.step import Rows, add

if TYPE_CHECKING:
    from precompute.steps.analyse.stage import StageInputs


def topic_match(found: list[np.ndarray], labels: np.ndarray, topics: int, seed: int) -> TopicMatch:
    return match_of_ranks(np.concatenate(found), labels, topics, seed)


def add_topic_match(rows: Rows, stage: int, slicing: str, found: TopicMatch) -> None:
    heads = len(found.rate.value) - 1 - len(POOLINGS)
    methods = [("full", 0), *(("head", head) for head in range(1, heads + 1)), *((name, None) for name in POOLINGS)]
    for row, (method, head) in enumerate(methods):
        for k, within in enumerate(WITHIN):
            add(
                rows,
                stage=stage,
                slicing=slicing,
                method=method,
                head=head,
                within=within,
                rate=found.rate.value[row, k],
                low=found.rate.low[row, k],
                high=found.rate.high[row, k],
                chance=found.chance[k],
                majority=found.majority[k],
                documents=found.docs,
            )


def mismatches(stage: int, topics: tuple[str, ...], found: list[Mismatches]) -> Rows:
    """As arrays: in a corpus of millions there may be millions of them."""
    joined = {name: np.concatenate([getattr(part, name) for part in found]) for name in Mismatches.__dataclass_fields__}
    names = pa.array(topics, pa.string())
    return {
        "stage": np.full(len(joined["docs"]), stage, dtype=np.int8),
        "doc": joined["docs"].astype(np.int32),
        "label": names.take(pa.array(joined["label"])),
        "nearest": names.take(pa.array(joined["nearest"])),
        "rank": joined["rank"].astype(np.int16),
        "margin": joined["margin"].astype(np.float32),
    }


def add_probe(rows: Rows, confusion: Rows, stage: int, slicing: str, split: str, found: Probe) -> None:
    heads = len(found.confusion)
    for head in range(heads + 1):
        interval, index = (found.recall, head - 1) if head else (found.accuracy, 0)
        add(
            rows,
            stage=stage,
            slicing=slicing,
            split=split,
            head=head,
            value=interval.value[index],
            low=interval.low[index],
            high=interval.high[index],
            chance=1 / heads,
            train=found.train,
            test=found.test,
        )
    for head, predicted in np.ndindex(heads, heads):
        samples = found.confusion[head, predicted]
        add(
            confusion,
            stage=stage,
            slicing=slicing,
            split=split,
            head=head + 1,
            predicted=predicted + 1,
            samples=samples,
        )


def redundancy(stage: int, found: Redundancy, shape: ModelShape, seed: int) -> dict[str, Rows]:
    pairs: Rows = {}
    position = np.argsort(found.order)
    for head, other in np.ndindex(found.cka.shape):
        add(
            pairs,
            stage=stage,
            head=head + 1,
            other=other + 1,
            cka=number(found.cka[head, other]),
            low=number(found.low[head, other]),
            high=number(found.high[head, other]),
            position=position[head],
        )
    groups: Rows = {}
    if compared := group_comparison(found.cka, shape, seed):
        add(groups, stage=stage, **vars(compared))
    return {"redundancy": pairs, "groups": groups}


def topic_similarity(stage: int, topics: tuple[str, ...], vectors: np.ndarray) -> Rows:
    rows: Rows = {}
    cosines = topic_cosines(vectors)
    for one, other in np.ndindex(cosines.shape):
        add(rows, stage=stage, topic=topics[one], other=topics[other], cosine=cosines[one, other])
    return rows


def profile(own: list[np.ndarray], labels: np.ndarray, topics: int, seed: int) -> Profiles | None:
    """None where no document has a label."""
    return profiles(np.concatenate(own), labels, topics, seed) if len(labels) else None


def add_profiles(
    rows: Rows,
    inputs: StageInputs,
    slicing: str,
    found: Profiles | None,
    auc_by_name: np.ndarray,
    activation: np.ndarray | None,
    random_alignment: float,
) -> None:
    """A row for the full embedding and one for each head; without labels only the activation is known."""
    docs = len(inputs.labels)
    for head in range(inputs.shape.heads + 1):
        columns: dict[str, Any] = dict.fromkeys(_PROFILE)
        if activation is not None:
            mean, square = activation[:, head] / docs
            columns["activation"] = mean
            columns["activation_variation"] = max(square - mean**2, 0) ** 0.5 / mean if mean > 0 else 0.0
        if found is not None:
            by_name = float(auc_by_name[head, found.topic[head]])
            columns |= profile_columns(found, head, inputs.topics, by_name, random_alignment)
            if head:  # random slices too: how often the rules hold by chance
                columns |= role_columns(columns)
        add(rows, stage=inputs.stage, slicing=slicing, head=head, **columns)


def profile_columns(
    found: Profiles, head: int, topics: tuple[str, ...], auc_by_name: float, random_alignment: float
) -> dict[str, Any]:
    """One row's figures; ``auc_by_name`` is that of the topic with the largest gap, if there is one."""
    topic = int(found.topic[head])
    columns: dict[str, Any] = {
        "spread": found.spread[head],
        "low_percentile": found.low_percentile[head],
        "positive": found.positive[head],
        "explained": found.explained[head],
        "explained_by_chance": number(found.explained_by_chance),
        "topic": topics[topic] if topic >= 0 else None,
        "gap": number(found.gap[head]),
        "next_gap": number(found.next_gap[head]),
        "auc_by_name": number(auc_by_name) if topic >= 0 else None,
        "alignment_of_random": number(random_alignment),
        "sparsity": found.sparsity[head],
        "farthest": found.farthest[head],
    }
    for name in ("mean", "selectivity", "auc", "alignment"):
        interval = getattr(found, name)
        columns[name] = number(interval.value[head])
        columns[f"{name}_low"], columns[f"{name}_high"] = number(interval.low[head]), number(interval.high[head])
    return columns


def role_columns(columns: dict[str, Any]) -> dict[str, Any]:
    """The role of a head with these ``profile_columns``."""
    found = verdict(Evidence(**{name: _or_nan(columns[name]) for name in Evidence.__dataclass_fields__}))
    return {"role": found.role, "roles": list(found.roles), "because": found.because}


_PROFILE = (
    *("mean", "mean_low", "mean_high", "spread", "low_percentile", "positive"),
    *("explained", "explained_by_chance", "selectivity", "selectivity_low", "selectivity_high"),
    *("topic", "gap", "next_gap", "auc", "auc_low", "auc_high", "auc_by_name"),
    *("alignment", "alignment_low", "alignment_high", "alignment_of_random"),
    *("sparsity", "farthest", "activation", "activation_variation", "role", "roles", "because"),
)


class Control:
    """The same figures for heads and for random slices, side by side."""

    def __init__(self, stage: int) -> None:
        self._stage = stage
        self._found: dict[str, dict[str, Interval]] = {}
        self._chance: dict[str, float] = {}
        self.random_alignment = float("nan")
        """The largest of the random slices'; known once their profile was given."""

    def topic_match(self, slicing: str, match: TopicMatch, found: list[np.ndarray]) -> None:
        """The mean over slices of how often one alone has the labelled topic nearest, and the best slice's."""
        heads = len(match.rate.value) - 1 - len(POOLINGS)
        ranks = np.concatenate(found)[:, 1 : 1 + heads]
        for k, within in enumerate(WITHIN):
            name = f"topic match within {within}, mean of slices"
            self._keep(name, slicing, means((ranks <= within).mean(axis=1, keepdims=True)), match.chance[k])
            best = 1 + int(match.rate.value[1 : 1 + heads, k].argmax())
            interval = Interval(*(part[best : best + 1, k] for part in vars(match.rate).values()))
            self._keep(f"topic match within {within}, best slice", slicing, interval, match.chance[k])

    def probe(self, slicing: str, split: str, found: Probe) -> None:
        self._keep(f"probe by {split}", slicing, found.accuracy, 1 / len(found.confusion))

    def profile(self, slicing: str, found: Profiles | None) -> None:
        if found is None:
            return
        if slicing == RANDOM:
            self.random_alignment = float(found.alignment.value[1:].max())
        for name, chance in (("selectivity", 0.0), ("alignment", 0.0)):
            interval = getattr(found, name)
            value = interval.value[1:]
            if not np.isfinite(value).all():  # too few documents to say anything
                continue
            middle = Interval(np.array([np.median(value)]), np.array([value.min()]), np.array([value.max()]))
            self._keep(f"{name}, median of slices (range)", slicing, middle, chance)

    def _keep(self, measure: str, slicing: str, interval: Interval, chance: float) -> None:
        self._found.setdefault(measure, {})[slicing] = interval
        self._chance[measure] = float(chance)

    def rows(self) -> Rows:
        rows: Rows = {}
        for measure, found in self._found.items():
            figures = {
                f"{slicing}{suffix}": number(getattr(found[slicing], part)[0])
                for slicing in (HEADS, RANDOM)
                for suffix, part in (("", "value"), ("_low", "low"), ("_high", "high"))
            }
            add(rows, stage=self._stage, measure=measure, chance=self._chance[measure], **figures)
        return rows


def number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _or_nan(value: Any) -> Any:
    return float("nan") if value is None else value
