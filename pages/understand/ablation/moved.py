"""Which documents a head's removal moves most, and where their neighbours go."""

from __future__ import annotations

import streamlit as st

from core.runs.tables import Row
from pages.shared.cards import Card, cards
from pages.shared.data import documents
from pages.shared.notices import shows_mistakes
from pages.shared.section import section
from pages.shared.text import plain, shortened
from pages.shared.url import linked
from pages.understand.ablation.state import AblationView, ablation_rows


@shows_mistakes
def moved(shown: AblationView) -> None:
    """The documents, and one of them with its nearest before and after."""
    section(f"Documents that move most without {shown.name[0].lower()}{shown.name[1:]}", "moved")
    rows = [
        row
        for row in ablation_rows(shown.state, "ablation_moved")
        if (row["layer"], row["head"]) == (shown.layer, shown.head)
    ]
    if not rows:
        st.info("Choose a single head in the grid to see the documents it moves.", icon=":material/touch_app:")
        return
    rows.sort(key=lambda row: int(row["place"]))
    table = documents(shown.state)
    titles = {row["place"]: table.row(row["doc"], ["title"])["title"] for row in rows}
    place = linked(
        st.selectbox,
        "Document",
        "moved",
        [row["place"] for row in rows],
        1,
        format_func=lambda at: f"{rows[at - 1]['angle']:.1f}° · {shortened(titles[at], 90)}",
        help="Sorted by the angle between the document's embeddings with and without the head.",
    )
    row = rows[place - 1]
    own = table.row(row["doc"], ["topic"])["topic"]
    stays = set(row["before"]) & set(row["after"])
    st.markdown(_sentence(row, own, len(stays)))
    left, right = st.columns(2, gap="large")
    for column, title, key, others in (
        (left, "Nearest with the head", "before", "leaves"),
        (right, "Nearest without it", "after", "new"),
    ):
        with column:
            st.markdown(f"##### {title}")
            found = table.rows(row[key], ["title", "topic", "text"]).to_pylist()
            cards(
                [
                    Card(one["title"], [one["topic"], "stays" if doc in stays else others], one["text"])
                    for doc, one in zip(row[key], found, strict=True)
                ]
            )
    st.caption("Within the sample, by cosine similarity of the model's embedding. Click a document to read it.")


def _sentence(row: Row, own: str | None, stays: int) -> str:
    said = f"It moves by **{row['angle']:.1f}°**; {stays} of its {len(row['before'])} nearest documents remain."
    before, after = row["topic_before"], row["topic_after"]
    if before is not None and after is not None:
        label = f" (labelled {plain(own)})" if own else ""
        if before == after:
            said += f" Its nearest topic name stays {plain(before)}{label}."
        else:
            said += f" Its nearest topic name changes from {plain(before)} to **{plain(after)}**{label}."
    return said
