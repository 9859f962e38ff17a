"""Which of FineWeb's 39 topics the similarities would merge, beside the study's 25."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import streamlit as st

from core.analysis.merging import STUDY_GROUPS, suggest_merges, topic_similarity
from core.analysis.report import TopicMerges, topic_merges
from core.analysis.topics import merged_into
from core.runs.results import read_topics
from core.runs.run import Run
from core.runs.shares import full_topics
from pages.shared.data import RunState, topic_cosines, topics
from pages.shared.notices import shows_mistakes
from pages.shared.run_version import FIGURES, one_version
from pages.shared.text import safe
from pages.shared.url import linked


@st.fragment
@shows_mistakes
def merging(state: RunState, stage: int) -> None:
    """FineWeb's 39 topics joined by nearness down to a threshold, beside the study's 25."""
    st.subheader("From 39 topics to 25", anchor="merging")
    names = topics(state, original=True).names
    st.markdown(
        f"The study merged FineWeb's {len(names)} topics into {STUDY_GROUPS}. Here the most similar groups are merged "
        "first, as long as the mean cosine of their topics is above a threshold. Move the threshold to see how well "
        "this model agrees."
    )
    thresholds = _thresholds(state.run, state.analysis_version, stage)
    options = list(thresholds)
    default = STUDY_GROUPS if STUDY_GROUPS in thresholds else options[-1]
    groups = linked(
        st.select_slider,
        "Threshold (mean cosine)",
        "groups",
        options,
        default,
        format_func=lambda count: f"{thresholds[count]:.3f} · {_groups(count)}",
        help="Each step merges one more pair of groups.",
    )
    found = _merges(state.run, state.analysis_version, stage, thresholds[groups])
    _agreement(found)
    pairs = _pairs(names, found, topic_cosines(state, stage, original=True))
    both = {frozenset(pair[:2]) for pair in pairs if pair[3] == "both"}
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown(f"##### Suggested by this model: {_groups(groups)}")
        _group_cards(found.groups, both)
    with right:
        st.markdown(f"##### The study: {_groups(STUDY_GROUPS)}")
        _group_cards(_study_groups(names), both)
    st.caption(
        "Only groups of two or more topics are listed; ✓ marks a topic that both merge with another of its group. The "
        "study lists its 25 topics, but not which of the 39 each one merges: that mapping is our reading of the names."
    )
    with st.expander(
        "The merged pair" if len(pairs) == 1 else f"All {len(pairs)} merged pairs", icon=":material/table_rows:"
    ):
        st.dataframe(
            [dict(zip(("topic", "other", "cosine", "merged by"), pair, strict=True)) for pair in pairs],
            hide_index=True,
            column_config={"cosine": st.column_config.NumberColumn(format="%.3f", width="small")},
        )


def _groups(count: int) -> str:
    return f"{count} group{'' if count == 1 else 's'}"


def _agreement(found: TopicMerges) -> None:
    agreed = found.agreement
    values = {
        "Adjusted Rand index": (
            f"{agreed.index:.2f}".replace("-", "−"),
            "How well two groupings agree, over all pairs of topics: 1 identical, 0 chance, below 0 worse than chance.",
        ),
        "Pairs in both": (str(agreed.pairs_both), "Pairs of topics that both merge."),
        "Only here": (str(agreed.pairs_first - agreed.pairs_both), "Pairs that only this model would merge."),
        "Only in the study": (str(agreed.pairs_second - agreed.pairs_both), "Pairs that only the study merged."),
    }
    with st.container(horizontal=True, gap="small"):
        for label, (value, meaning) in values.items():
            st.metric(label, value, help=meaning, border=True, width="content")


def _study_groups(names: Sequence[str]) -> list[list[str]]:
    theirs: dict[str, list[str]] = {}
    for name in names:
        theirs.setdefault(merged_into()[name], []).append(name)
    return [group for group in theirs.values() if len(group) > 1]


def _pairs(names: Sequence[str], found: TopicMerges, cosine: np.ndarray) -> list[tuple[str, str, float, str]]:
    """Pairs that either grouping puts together: those of both first, then by falling cosine."""
    theirs, ours = merged_into(), found.merges.group
    pairs = []
    for one, other in combinations(range(len(names)), 2):
        here, there = ours[one] == ours[other], theirs[names[one]] == theirs[names[other]]
        if here or there:
            where = "both" if here and there else "this model" if here else "the study"
            pairs.append((names[one], names[other], float(cosine[one, other]), where))
    return sorted(pairs, key=lambda pair: (pair[3] != "both", -pair[2]))


_STYLE = """
<style>
.hs-groups { display: flex; flex-direction: column; gap: .4rem; }
.hs-group { border: 1px solid color-mix(in srgb, currentColor 16%, transparent); border-radius: .5rem;
  padding: .4rem .7rem; font-size: .9rem; line-height: 1.5; overflow-wrap: anywhere; }
.hs-group div { display: flex; gap: .5rem; }
.hs-group i { font-style: normal; width: 1em; flex: none; font-weight: 700; }
.hs-group .hs-agreed { font-weight: 600; }
</style>
"""


def _group_cards(groups: Sequence[Sequence[str]], both: set[frozenset[str]]) -> None:
    if not groups:
        st.caption("No topics are merged at this threshold.")
        return

    def line(topic: str, group: Sequence[str]) -> str:
        agreed = any(frozenset((topic, other)) in both for other in group if other != topic)
        mark = ' class="hs-agreed"><i>✓</i>' if agreed else "><i></i>"
        return f"<div{mark}<span>{safe(topic)}</span></div>"

    cards = "".join(f'<div class="hs-group">{"".join(line(topic, group) for topic in group)}</div>' for group in groups)
    st.html(f'{_STYLE}<div class="hs-groups">{cards}</div>')


@st.cache_resource(max_entries=12, show_spinner=False)
@one_version(*FIGURES)
def _thresholds(run: Run, version: str, stage: int) -> dict[int, float]:
    """By the number of groups, fewest first, the threshold that leaves as many; ties leave some numbers out."""

    cosine = topic_similarity(full_topics(run, read_topics(run, original=True), stage))
    found: dict[int, float] = {}
    for asked in range(1, len(cosine) + 1):
        merges = suggest_merges(cosine, groups=asked)
        found.setdefault(int(merges.group.max()) + 1, merges.threshold)
    return found


@st.cache_resource(max_entries=64, show_spinner=False)
@one_version(*FIGURES)
def _merges(run: Run, version: str, stage: int, threshold: float) -> TopicMerges:
    return topic_merges(full_topics(run, read_topics(run, original=True), stage), stage, threshold)
