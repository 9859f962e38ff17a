"""The heads of two runs matched by CKA: the headline, the matrix, and a verdict for each head."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import streamlit as st

from core.analysis.head_matching import LEAST_DOCS, HeadMatches
from pages.explore.compare_runs.figures import matches_figure
from pages.explore.compare_runs.state import Pair, matches
from pages.shared.glossary import why
from pages.shared.notices import shows_mistakes
from pages.shared.show import figure, theme
from pages.shared.text import drawn, plain, shortened


def matched(pair: Pair, stage: int) -> HeadMatches | None:
    """The matching, under its headline."""
    found = matches(pair, stage)
    if found is not None:
        st.markdown(headline(pair, found))
    return found


def headline(pair: Pair, found: HeadMatches) -> str:
    """What the matching says, in a sentence or two, as Markdown."""
    here, there = (plain(one.run.name) for one in pair.both)
    pairs, count = np.flatnonzero(found.counterparts), len(found.best)
    if len(pairs):
        first = int(pairs[np.argmax(found.cka[pairs, found.best[pairs]])])
        value = found.cka[first, found.best[first]]
        have, closest = ("has", "") if len(pairs) == 1 else ("have", "; the closest pair")
        said = (
            f"**{len(pairs)} of {count} heads of {here} {have} a counterpart in {there}{closest}: head {first + 1} "
            f"here and head {found.best[first] + 1} there are each other's most similar (CKA {value:.2f}).**"
        )
    else:
        said = f"**No head of {here} has a counterpart of its own in {there}.**"
    if found.claimed.any():
        hub, times = Counter(found.best[found.claimed].tolist()).most_common(1)[0]
        if times > max(2, count // 3):
            said += f" Head {hub + 1} of {there} is the most similar one for {times} heads of {here}."
    return said


@shows_mistakes
def heads_section(pair: Pair, found: HeadMatches | None) -> None:
    """Every head here and its most similar one there."""
    if not len(pair.shared):  # the maps' section has said so
        return
    st.subheader("Head by head", anchor="heads", help=why("CKA"))
    if found is None:
        st.caption(
            f"Matching heads needs at least {LEAST_DOCS} documents that have vectors in both runs. Here "
            "there are fewer."
        )
        return
    here, there = (one.run.name for one in pair.both)
    left, right = st.columns(2, gap="large")
    with left:
        figure(
            matches_figure(found, (drawn(shortened(here, 30)), drawn(shortened(there, 30))), theme()),
            "compare-heads",
            lambda: _pairs_table(found),
            "Dot: the most similar head. Filled: each other's most similar, a counterpart.",
            alt=f"CKA of {found.cka.shape[0]} heads of {shortened(here, 60)} with {found.cka.shape[1]} heads of "
            f"{shortened(there, 60)}. {_spoken(found)}",
        )
    with right:
        st.dataframe(
            {
                "head": np.arange(1, len(found.best) + 1),
                "most like": [f"head {best + 1}" for best in found.best],
                "CKA": [f"{value:.2f}" for value in found.cka[np.arange(len(found.best)), found.best]],
                "95 % CI": [f"{low:.2f}–{high:.2f}" for low, high in zip(found.low, found.high, strict=True)],
                "verdict": _verdicts(found),
            },
            hide_index=True,
            height="content" if len(found.best) <= 14 else 540,
            column_config={
                "head": st.column_config.NumberColumn("here", width=60),
                "most like": st.column_config.TextColumn("most like there", width=120),
                "CKA": st.column_config.TextColumn("CKA", width=60),
                "95 % CI": st.column_config.TextColumn("95 % CI", width=100),
            },
        )
        st.caption(
            f"On {found.docs:,} shared documents. **Counterpart**: each other's most similar head. **One-sided**: "
            "its most similar head is more similar to another one. **Unclear**: no lead over the runner-up beyond "
            f"chance (jackknife, 95 %). **Nothing in common**: a CKA below {found.chance:.2f}. If the "
            "documents of one run are shuffled, the most similar pair of heads stays below that in 95 % of cases."
        )


def _verdicts(found: HeadMatches) -> list[str]:
    """``[head]``: the strongest that holds."""
    holds = (("counterpart", found.counterparts), ("one-sided", found.claimed), ("unclear", found.related))
    return [
        next((name for name, heads in holds if heads[head]), "nothing in common") for head in range(len(found.best))
    ]


def _spoken(found: HeadMatches) -> str:
    pairs = [f"{head + 1} and {found.best[head] + 1}" for head in np.flatnonzero(found.counterparts)]
    return f"Counterparts: {', '.join(pairs)}." if pairs else "No head has a counterpart."


def _pairs_table(found: HeadMatches) -> pa.Table:
    rows, columns = found.cka.shape
    return pa.table(
        {
            "head here": np.repeat(np.arange(1, rows + 1), columns),
            "head there": np.tile(np.arange(1, columns + 1), rows),
            "CKA": found.cka.reshape(-1),
        }
    )
