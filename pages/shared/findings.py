"""What the figures say, on a page: sentences, their numbers, and the page that shows them."""

from __future__ import annotations

import streamlit as st

from core.analysis.findings import Finding, findings
from core.analysis.report import topic_merges
from core.runs.results import read_topics
from core.runs.run import Run
from core.runs.tables import Tables
from pages.shared.data import RunState, tables
from pages.shared.run_version import FIGURES, one_version
from pages.shared.text import plain, safe, shortened

PAGES = {
    "stage": ("pages/understand/topics/page.py", "Topics"),
    "separation": ("pages/understand/stages/page.py", "Stages"),
    "selectivity": ("pages/explore/head_profile/page.py", "Head profile"),
    "pooling": ("pages/understand/topics/page.py", "Topics"),
    "roles": ("pages/explore/head_profile/page.py", "Head profile"),
    "redundancy": ("pages/understand/stages/page.py", "Stages"),
    "groups": ("pages/understand/stages/page.py", "Stages"),
    "topics": ("pages/understand/topics/page.py", "Topics"),
    "circular": ("pages/understand/topics/page.py", "Topics"),
}
"""Where a finding about something can be seen; the same keys as Finding.about, but for what is missing."""
TITLES = {
    "stage": "Where to extract",
    "separation": "Are heads something of their own?",
    "selectivity": "Do heads follow topics?",
    "pooling": "Pooling heads",
    "roles": "Roles of heads",
    "redundancy": "Heads that say the same",
    "groups": "Heads that share a key/value head",
    "topics": "Topics",
    "circular": "Circular labels",
    "labels": "What is missing",
}

_STYLE = """
<style>
.hs-finding { margin: 0 0 .7rem 0; line-height: 1.45; }
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


def sentences(chosen: list[Finding]) -> None:
    """Findings one under another."""
    parts = [
        f'<p class="hs-finding">{safe(finding.sentence)}<span class="hs-numbers">{safe(finding.evidence)}</span></p>'
        for finding in chosen
    ]
    if parts:
        st.html(_STYLE + "".join(parts))


def all_findings(state: RunState) -> None:
    """Everything that this run's figures say, by subject, each with a link to the page that shows it."""
    assert state.manifest is not None
    found = _findings(state.run, state.analysis_version, tables(state), state.manifest.stages[-1])
    for about, title in TITLES.items():
        chosen = [finding for finding in found if finding.about == about]
        if not chosen:
            continue
        with st.expander(f"**{title}** – {plain(shortened(chosen[0].sentence, 130))}"):
            sentences(chosen)
            if about in PAGES:
                page, label = PAGES[about]
                st.page_link(page, label=f"See it on {label}", icon=":material/arrow_forward:")
