"""What the figures say, on a page: sentences, their numbers, and the page that shows them."""

from __future__ import annotations

import streamlit as st

from core.analysis.ablation_findings import ablation_findings
from core.analysis.aspect_findings import aspect_findings
from core.analysis.findings import Finding, across_runs, findings
from core.analysis.report import topic_merges
from core.retrieval.cautions import all_cautions
from core.retrieval.findings import voting_findings
from core.runs.results import read_ablation, read_retrieval, read_topics
from core.runs.run import Run
from core.runs.tables import Tables
from pages.shared.aspects import aspect_rows
from pages.shared.data import RunState, runs, tables
from pages.shared.run_version import ABLATION, FIGURES, RETRIEVAL, one_version, version_of
from pages.shared.text import plain, safe, shortened

PAGES = {
    "specialisation": ("pages/understand/stages/page.py", "Stages"),
    "heads": ("pages/explore/head_profile/page.py", "Head profile"),
    "stage": ("pages/understand/stages/page.py", "Stages"),
    "voting": ("pages/use/retrieval_lab/page.py", "Retrieval lab"),
    "separation": ("pages/understand/stages/page.py", "Stages"),
    "selectivity": ("pages/explore/head_profile/page.py", "Head profile"),
    "pooling": ("pages/understand/topics/page.py", "Topics"),
    "roles": ("pages/explore/head_profile/page.py", "Head profile"),
    "redundancy": ("pages/understand/stages/page.py", "Stages"),
    "groups": ("pages/understand/stages/page.py", "Stages"),
    "topics": ("pages/understand/topics/page.py", "Topics"),
    "circular": ("pages/understand/topics/page.py", "Topics"),
    "aspects": ("pages/understand/aspects/page.py", "Aspects"),
    "ablation": ("pages/understand/ablation/page.py", "Ablation"),
}
"""Where a finding about something can be seen; the same keys as Finding.about, but for what is missing."""
TITLES = {
    "caution": "What cannot be concluded",
    "older": "What is missing",
    "untrained": "Not compared with random weights",
    "specialisation": "Do heads specialise?",
    "heads": "Heads that stand out",
    "runs": "The same head in other runs",
    "stage": "Where to extract",
    "separation": "Are heads distinguishable?",
    "selectivity": "Do heads follow topics?",
    "pooling": "Pooling heads",
    "aspects": "What heads carry",
    "voting": "Voting compared with the full embedding",
    "roles": "Roles of heads",
    "redundancy": "Most redundant heads",
    "groups": "Key/value groups",
    "topics": "Topics",
    "circular": "Circular labels",
    "labels": "What is missing",
    "ablation": "Switching heads off",
}

_STYLE = """
<style>
.hs-finding { margin: 0 0 .7rem 0; line-height: 1.45; }
.hs-finding strong { display: block; }
.hs-finding summary { cursor: pointer; }
.hs-finding summary:focus-visible { outline: 2px solid currentColor; outline-offset: 2px; }
.hs-finding .hs-numbers { display: block; opacity: .78; font-size: .85em; margin-top: .15rem; overflow-wrap: anywhere; }
</style>
"""


def show_findings(state: RunState, *about: str, stage: int | None = None) -> None:
    """What the figures say about something, with the numbers."""
    chosen = [
        finding for finding in _findings(state.run, state.analysis_version, tables(state)) if finding.about in about
    ]
    if stage is not None:
        chosen = [finding for finding in chosen if f"stage {stage}" in finding.sentence.lower()]
    sentences(chosen)


@st.cache_resource(max_entries=16, show_spinner=False)
@one_version(*FIGURES)
def _findings(run: Run, version: str, _tables: Tables, merged_at: int | None = None) -> list[Finding]:
    """What the figures say; with a stage, of its merged topics too. Sentences stay as they are until figures change."""
    if merged_at is None:
        return findings(_tables, None)
    return findings(_tables, topic_merges(read_topics(run, original=True).vectors[merged_at], merged_at))


def sentences(chosen: list[Finding], title: str = "") -> None:
    """Findings one under another, under a heading where there is one."""
    heading = f"<strong>{safe(title)}</strong> " if title else ""
    parts = [
        f'<div class="hs-finding">{heading}{safe(finding.sentence)}{_numbers(finding, bool(title))}</div>'
        for finding in chosen
    ]
    if parts:
        st.html(_STYLE + "".join(parts))


@st.cache_resource(max_entries=16, show_spinner=False)
@one_version(*RETRIEVAL)
def _voting(run: Run, version: str, _tables: Tables) -> list[Finding]:
    found = read_retrieval(run)
    return voting_findings(found, all_cautions(_tables, found.get("retrieval", ())))


@st.cache_resource(max_entries=16, show_spinner=False)
@one_version(*ABLATION)
def _ablation(run: Run, version: str) -> list[Finding]:
    found = read_ablation(run)
    return ablation_findings(found["ablation"], found["ablation_noise"])


def _numbers(finding: Finding, folded: bool) -> str:
    """A finding's figures, below it or folded away."""
    if folded:
        return f'<details class="hs-numbers"><summary>Figures</summary>{safe(finding.evidence)}</details>'
    return f'<span class="hs-numbers">{safe(finding.evidence)}</span>'


FIRST = ("caution", "older", "labels", "circular")
"""What stands before any finding: what cannot be concluded."""


MOST_RUNS = 8
"""Other runs of the same model that are looked at."""


def _elsewhere(state: RunState) -> list[Finding]:
    """What runs of the same model have in common with this one."""
    assert state.manifest is not None
    same = [
        other
        for other in runs()
        if other.analysed and other.manifest is not None and other.manifest.model == state.manifest.model
    ]
    if len(same) < 2:
        return []
    found = across_runs(state.run.name, {other.run.name: tables(other) for other in [state, *same][:MOST_RUNS]})
    return [] if found is None else [found]


def caution_findings(state: RunState) -> None:
    """What the run's figures cannot show; nothing where there is no such thing."""
    found = _findings(state.run, state.analysis_version, tables(state))
    for about in FIRST:
        sentences([finding for finding in found if finding.about == about], TITLES[about])


def collected(state: RunState) -> list[Finding]:
    """All that this run's figures say, of an analysed run."""
    assert state.manifest is not None
    found = _findings(state.run, state.analysis_version, tables(state), state.manifest.study_stages[-1])
    if state.retrieved:
        found = [*found, *_voting(state.run, state.retrieval_version, tables(state))]
    if state.manifest.is_done("ablate"):
        found = [*found, *_ablation(state.run, version_of(state.manifest, ABLATION))]
    return [*found, *aspect_findings(aspect_rows(state))]


def all_findings(state: RunState) -> None:
    """All that this run's figures say, by subject, each with its figures and a link to the page that shows it."""
    found = [*collected(state), *_elsewhere(state)]
    for about, title in TITLES.items():
        chosen = [finding for finding in found if finding.about == about]
        if not chosen or about in FIRST:
            continue
        with st.expander(f"**{title}** – {plain(shortened(chosen[0].sentence, 130))}"):
            sentences(chosen)
            if about in PAGES:
                page, label = PAGES[about]
                st.page_link(page, label=f"See it on {label}", icon=":material/arrow_forward:")
