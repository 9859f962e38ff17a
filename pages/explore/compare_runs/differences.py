"""Two runs finding by finding: what differs first, then what one of them alone says, then what both say."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from core.analysis.findings import Finding
from pages.explore.compare_runs.state import Pair
from pages.shared.findings import TITLES, collected
from pages.shared.notices import shows_mistakes
from pages.shared.text import safe

_STYLE = """
<style>
.hs-two { display: grid; grid-template-columns: 1fr 1fr; gap: .3rem 2rem; margin: 0 0 1.1rem 0; line-height: 1.45; }
.hs-two h4 { grid-column: 1 / -1; margin: 0; padding: .5rem 0 .1rem 0; font-size: 1rem; font-weight: 650;
  border-top: 1px solid color-mix(in srgb, currentColor 16%, transparent); }
.hs-two .hs-run { display: block; font-size: .82em; opacity: .8; }
.hs-two p { margin: 0 0 .4rem 0; }
.hs-two details { font-size: .85em; opacity: .85; overflow-wrap: anywhere; }
.hs-two summary { cursor: pointer; }
.hs-two summary:focus-visible { outline: 2px solid currentColor; outline-offset: 2px; }
@media (max-width: 700px) { .hs-two { grid-template-columns: 1fr; } }
</style>
"""


@dataclass(frozen=True)
class Subject:
    """What two runs say about one thing."""

    title: str
    here: tuple[Finding, ...]
    there: tuple[Finding, ...]

    @property
    def same(self) -> bool:
        """Whether the sentences are the same, whatever their figures."""
        return [one.sentence for one in self.here] == [one.sentence for one in self.there]


def subjects(here: list[Finding], there: list[Finding]) -> list[Subject]:
    """By subject, in the order of the titles; those of which neither says anything are left out."""
    found = [
        Subject(
            title,
            tuple(one for one in here if one.about == about),
            tuple(one for one in there if one.about == about),
        )
        for about, title in TITLES.items()
    ]
    return [one for one in found if one.here or one.there]


@shows_mistakes
def differences(pair: Pair) -> None:
    """Both runs' findings in two columns."""
    st.subheader("Finding by finding", anchor="findings")
    found = subjects(*(collected(one) for one in pair.both))
    names = (pair.here.run.name, pair.there.run.name)
    differ = [one for one in found if one.here and one.there and not one.same]
    single = [one for one in found if not (one.here and one.there)]
    same = [one for one in found if one.same]
    if differ:
        st.html(_STYLE + "".join(_html(one, names) for one in differ))
    else:
        st.caption("Where both runs have a finding, it is the same.")
    if single:
        with st.expander(f"Findings of one run only ({len(single)})"):
            st.html(_STYLE + "".join(_html(one, names) for one in single))
    if same:
        with st.expander(f"Findings that are the same in both ({len(same)})"):
            st.html(_STYLE + "".join(_html(one, names) for one in same))


def _html(one: Subject, names: tuple[str, str]) -> str:
    cells = "".join(_cell(said, name) for said, name in zip((one.here, one.there), names, strict=True))
    return f'<div class="hs-two"><h4>{safe(one.title)}</h4>{cells}</div>'


def _cell(said: tuple[Finding, ...], name: str) -> str:
    if not said:
        body = "<p>No finding: this run has not computed it, or its figures do not allow one.</p>"
    else:
        figures = "".join(f"<p>{safe(one.evidence)}</p>" for one in said)
        body = "".join(f"<p>{safe(one.sentence)}</p>" for one in said)
        body += f"<details><summary>Figures</summary>{figures}</details>"
    return f'<div><span class="hs-run">{safe(name)}</span>{body}</div>'
