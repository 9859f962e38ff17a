"""One HTML file with the figures of the page that opens offline: no script, no link, nothing to load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from core.analysis.document_profile import Ranks
from core.model.attention import Attended
from core.model.stages import STAGES
from core.runs.parquet import RowLookup
from pages.shared.aspect_guess import CAPTION, TITLE, aspect_guesses, row_names
from pages.shared.corpus import pairs
from pages.shared.data import documents
from pages.shared.figures.reliability import right_for, solidity
from pages.shared.figures.similarity import cell_colour, colour_limit
from pages.shared.figures.svg import as_svg
from pages.shared.figures.words import words_html
from pages.shared.notices import among
from pages.shared.text import safe, shortened
from pages.shared.theme import BORDER, FONT, GROUND, INK, LABEL_SIZE, MUTED, PAGE_SIZE, ink_on
from pages.shared.why_similar import WhySimilar
from pages.shared.without_head import WithoutHead
from pages.use.your_document.compare import OtherDocument, least_alike_first
from pages.use.your_document.figures import activation_figure, pair_figure, shown_topics
from pages.use.your_document.neighbours import map_caption, map_figure
from pages.use.your_document.report_experiments import document_html, picture_html, similar_html, without_html
from pages.use.your_document.state import (
    NEIGHBOURS,
    REFERENCES,
    DocumentView,
    consensus_sentences,
    row_name,
    voting_heads,
)
from pages.use.your_document.topics import along, consensus_table

_STYLE = f"""
body {{ font: {PAGE_SIZE}px/1.5 {FONT}; color: {INK["light"]};
  background: {GROUND["light"]}; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: {LABEL_SIZE}px; }}
th, td {{ padding: .2rem .35rem; text-align: right; font-weight: 400; }}
th.topic {{ writing-mode: vertical-rl; transform: rotate(180deg); text-align: left; max-height: 11rem; }}
th[scope=row] {{ text-align: left; white-space: nowrap; }}
tr.head th[scope=row] {{ font-weight: 700; }}
.scroll {{ overflow-x: auto; margin: .8rem 0; }}
.scroll > svg {{ min-width: 38rem; }}
details {{ border: 1px solid {BORDER["light"]}; border-radius: .4rem; padding: .4rem .7rem; margin: .3rem 0;
  overflow-wrap: anywhere; }}
details div {{ white-space: pre-wrap; }}
.quiet {{ color: {MUTED["light"]}; }}
"""
# Even if an escape were missing somewhere, a browser would run and load nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


@dataclass(frozen=True)
class PageExperiments:
    """What was tried on the page, as far as it was: the report does not run the model."""

    other: OtherDocument | None = None
    """A document that it is compared with."""
    without: WithoutHead | None = None
    similar: WhySimilar | None = None


def report_html(
    shown: DocumentView,
    found: Attended | None,
    placed: Mapping[int, np.ndarray] | None = None,
    seen: PageExperiments | None = None,
) -> str:
    """``found``: where the heads look, if that was computed; ``placed``: the document's heads on the maps, if there are
    maps; ``seen``: what else the page shows."""
    seen = seen or PageExperiments()
    assert shown.state.manifest is not None
    model, stage = shown.state.manifest.model, STAGES[shown.stage]
    part = "" if shown.part == 0 else f", chunk {shown.part}"
    sections = [
        f"<h1>{safe(shown.name)}</h1>",
        f'<p class="quiet">{safe(shown.reading.reach)}{part}, through {safe(model["name"])}, layer {model["layer"]}, '
        f"at stage {stage.number} ({stage.name}), against the {shown.state.manifest.corpus['documents']:,} documents "
        f"of the run {safe(shown.state.run.name)}. {safe(stage.caveat)}</p>",
    ]
    if shown.state.analysed:
        said = " ".join(consensus_sentences(shown.profile, shown.consensus, shown.topics, shown.reliability))
        sections += ["<h2>What it is about</h2>", f"<p>{safe(said)}</p>", picture_html(consensus_table(shown))]
        sections += [_profile(shown), _aspects(shown), _along(shown)]
    sections += [_neighbours(shown)]
    if seen.without is not None:
        sections += [without_html(seen.without)]
    if found is not None:
        sections += [f"<h2>Where head {shown.head} looks</h2>", words_html(shown.text, found, shown.head)]
    if placed is not None:
        drawn = as_svg(map_figure(shown, placed, "light"), "One small map per stage with the document's heads")
        sections += ["<h2>On the map</h2>", picture_html(drawn), f'<p class="quiet">{safe(map_caption(shown))}</p>']
    if shown.state.analysed:
        sections += [_activation(shown)]
    if (other := seen.other) is not None and (usual := pairs(shown.state, shown.stage)) is not None:
        cosines = other.cosines(shown)
        drawn = pair_figure(cosines, usual, least_alike_first(usual.percentile(cosines)), "light")
        sections += [f"<h2>Compared with {safe(shortened(other.name, 110))}</h2>"]
        alt = "Cosine of the two documents in the full embedding and in each head"
        sections += [picture_html(as_svg(drawn, alt))]
    if seen.similar is not None:
        sections += [similar_html(seen.similar)]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{safe(shown.name)} – Headscope</title><style>{_STYLE}</style></head><body>"
        f"{''.join(sections)}</body></html>"
    )


def _profile(shown: DocumentView) -> str:
    order = shown_topics(shown.consensus.order, shown.consensus.choices)
    percentile = shown.measure == "percentile"
    values = shown.cells(shown.profile)[:, order]
    limit = 50.0 if percentile else colour_limit(values)
    names = "".join(f'<th class="topic" scope="col">{safe(shortened(shown.topics[topic], 40))}</th>' for topic in order)
    known, solid = shown.reliability, solidity(shown.reliability, len(values) - 1)
    vote = [None, *shown.consensus.choices.tolist()]
    body = ""
    for row, cells in enumerate(values):
        rate = "" if known is None else f"<td>{right_for(known.rates[row])}</td>"
        body += f'<tr{" class=head" if row == shown.head else ""}><th scope="row">{row_name(row)}</th>{rate}'
        counts = row and shown.consensus.weights[row - 1] > 0
        for topic, value in zip(order.tolist(), cells.tolist(), strict=True):
            share = (value - (50 if percentile else 0)) / limit
            body += _cell(value, share, percentile, bool(counts) and topic == vote[row], float(solid[row]))
        body += "</tr>"
    kind = "percentiles among the corpus" if percentile else "cosines"
    against = f"topics by {REFERENCES[shown.reference].lower()}"
    rates = "" if known is None else '<th scope="col">on the corpus</th>'
    faded = "" if known is None else " Paler heads are less reliable."
    return (
        f'<h2>Topic profile, {kind}</h2><p class="quiet">Compared with {against}; framed: the head\'s vote.{faded}</p>'
        f'<div class="scroll"><table><thead><tr><th></th>{rates}{names}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _aspects(shown: DocumentView) -> str:
    """What it seems to be by every other aspect, head by head; nothing in a run without aspects."""
    vectors = shown.vectors(shown.stage)
    guessed = aspect_guesses(shown.state, shown.stage, vectors)
    if not guessed:
        return ""
    head = "".join(f"<th>{safe(one.title)}</th><th>right</th>" for one in guessed)
    rows = "".join(
        f"<tr><th>{name}</th>"
        + "".join(f"<td>{safe(shortened(one.guesses[at], 60))}</td><td>{one.right[at]}</td>" for one in guessed)
        + "</tr>"
        for at, name in enumerate(row_names(len(vectors)))
    )
    return (
        f'<h2>{TITLE}</h2><p class="quiet">{CAPTION}</p><div class="scroll"><table>'
        f"<thead><tr><th></th>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _along(shown: DocumentView) -> str:
    """Each chunk's profile in the full embedding; nothing for a document in one piece."""
    found = along(shown, 0)
    if found is None:
        return ""
    percentile = shown.measure == "percentile"
    limit = 50.0 if percentile else colour_limit(found.values)
    head = "".join(f'<th scope="col">{number}</th>' for number in range(1, len(found.values) + 1))
    body = ""
    for topic in found.order.tolist():
        cells = "".join(
            _cell(value, (value - (50 if percentile else 0)) / limit, percentile, False, 1.0)
            for value in found.values[:, topic].tolist()
        )
        body += f'<tr><th scope="row">{safe(shortened(shown.topics[topic], 60))}</th>{cells}</tr>'
    return (
        '<h2>Along the document</h2><p class="quiet">Full embedding, chunk by chunk.</p><div class="scroll"><table>'
        f"<thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(value: float, share: float, percentile: bool, vote: bool, solid: float) -> str:
    text = f"{value:.0f}" if percentile else f"{value:+.2f}".replace("-", "−")
    colour = cell_colour(share, "light")
    frame = f";outline:2px solid {INK['light']};outline-offset:-2px" if vote else ""
    return f'<td style="background:{colour};color:{ink_on(colour)};opacity:{0.5 + 0.5 * solid:.2f}{frame}">{text}</td>'


def _activation(shown: DocumentView) -> str:
    rows = "".join(
        f'<tr><th scope="row">head {row}</th><td>{shown.profile.activation[row]:.2f}</td>'
        f"<td>{shown.profile.activation_percentiles[row]:.0f}</td></tr>"
        for row in range(1, len(shown.profile.activation))
    )
    head = '<tr><th></th><th scope="col">activation</th><th scope="col">percentile</th></tr>'
    corpus = Ranks(shown.yardstick.activations.values[1:])
    drawn = as_svg(
        activation_figure(shown.profile.activation[1:], corpus, shown.head, "light"),
        "Activation of each head for this document, compared with the corpus",
    )
    table = f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"
    return f"<h2>Activation of each head</h2>{picture_html(drawn)}{table}"


def _neighbours(shown: DocumentView) -> str:
    table, near, ballot = documents(shown.state), shown.nearest, shown.ballot
    parts = ["<h2>Nearest documents of the corpus</h2>"]
    if said := among(shown.state):
        parts.append(f"<p>{safe(said.strip())}</p>")
    for row in (0, shown.head):
        parts.append(f"<h3>{row_name(row).capitalize()}</h3>")
        pairs = zip(near.docs[row][:NEIGHBOURS].tolist(), near.similarity[row].tolist(), strict=False)
        parts += [_document(table, doc, f"{cosine:+.2f}".replace("-", "−")) for doc, cosine in pairs]
    parts.append("<h3>Votes of all heads</h3>")
    for doc, given in zip(ballot.docs.tolist(), ballot.by_head, strict=True):
        parts.append(_document(table, doc, voting_heads(given)))
    return "".join(parts)


def _document(table: RowLookup, doc: int, score: str) -> str:
    row = table.row(doc)
    return document_html(score, row["title"], [row["topic"]], row["text"])
