"""The result as one HTML file that opens offline: no scripts, no links, nothing from elsewhere, every text escaped."""

from __future__ import annotations

import numpy as np

from core.model.attention import Attended
from core.model.stages import STAGES
from core.runs.parquet import RowLookup
from pages.shared.data import documents
from pages.shared.figures.similarity import colour_limit, ink_on
from pages.shared.figures.template import DIVERGING
from pages.shared.figures.words import words_html
from pages.shared.head_choice import heads_named
from pages.shared.kept import among
from pages.shared.text import safe, shortened
from pages.use.your_document.figures import shown_topics
from pages.use.your_document.sentences import consensus_sentences
from pages.use.your_document.state import NEIGHBOURS, Shown, row_name

_STYLE = """
body { font: 15px/1.5 Inter, "Segoe UI", "Helvetica Neue", "Noto Sans", sans-serif; color: #10141D;
  background: #FCFBF8; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 12px; }
th, td { padding: .2rem .35rem; text-align: right; font-weight: 400; }
th.topic { writing-mode: vertical-rl; transform: rotate(180deg); text-align: left; max-height: 11rem; }
th[scope=row] { text-align: left; white-space: nowrap; }
tr.head th[scope=row] { font-weight: 700; }
.scroll { overflow-x: auto; }
details { border: 1px solid #DDD8CC; border-radius: .4rem; padding: .4rem .7rem; margin: .3rem 0;
  overflow-wrap: anywhere; }
details div { white-space: pre-wrap; }
.quiet { color: #5B5A55; }
"""
# Even if an escape were missing somewhere, a browser would run and load nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def report_html(shown: Shown, found: Attended | None) -> str:
    """``found`` is where the heads look, if that was computed."""
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
        said = " ".join(consensus_sentences(shown.profile, shown.consensus, shown.topics))
        sections += ["<h2>What it is about</h2>", f"<p>{safe(said)}</p>", _profile(shown), _activation(shown)]
    sections += [_neighbours(shown)]
    if found is not None:
        sections += [f"<h2>Where head {shown.head} looks</h2>", words_html(shown.text, found, shown.head)]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{safe(shown.name)} – Headscope</title><style>{_STYLE}</style></head><body>"
        f"{''.join(sections)}</body></html>"
    )


def _profile(shown: Shown) -> str:
    order = shown_topics(shown.consensus.order, shown.consensus.choices)
    percentile = shown.measure == "percentile"
    values = (shown.profile.percentiles if percentile else shown.profile.cosines)[:, order]
    limit = 50.0 if percentile else colour_limit(values)
    names = "".join(f'<th class="topic" scope="col">{safe(shortened(shown.topics[topic], 40))}</th>' for topic in order)
    body = "".join(
        f'<tr{" class=head" if row == shown.head else ""}><th scope="row">{row_name(row)}</th>'
        + "".join(
            _cell(float(value), (float(value) - (50 if percentile else 0)) / limit, percentile) for value in cells
        )
        + "</tr>"
        for row, cells in enumerate(values)
    )
    kind = "percentiles among the corpus" if percentile else "cosines"
    return (
        f'<h2>Topic profile, {kind}</h2><div class="scroll"><table><thead><tr><th></th>{names}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _cell(value: float, share: float, percentile: bool) -> str:
    text = f"{value:.0f}" if percentile else f"{value:+.2f}".replace("-", "−")
    return f'<td style="background:{_colour(share)};color:{ink_on(share, "light")}">{text}</td>'


def _colour(share: float) -> str:
    """The diverging scale's colour for ``share``, from -1 to 1."""
    stops = DIVERGING["light"]
    places = [float(str(at)) for at, _ in stops]
    rgb = np.array([[int(str(colour)[at : at + 2], 16) for at in (1, 3, 5)] for _, colour in stops])
    place = (min(1.0, max(-1.0, share)) + 1) / 2
    return "#" + "".join(f"{round(float(np.interp(place, places, rgb[:, channel]))):02x}" for channel in range(3))


def _activation(shown: Shown) -> str:
    rows = "".join(
        f'<tr><th scope="row">head {row}</th><td>{shown.profile.activation[row]:.2f}</td>'
        f"<td>{shown.profile.activation_percentiles[row]:.0f}</td></tr>"
        for row in range(1, len(shown.profile.activation))
    )
    head = '<tr><th></th><th scope="col">activation</th><th scope="col">percentile</th></tr>'
    return f"<h2>How strongly each head speaks</h2><table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _neighbours(shown: Shown) -> str:
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
        heads = [int(head) + 1 for head in np.flatnonzero(given >= 0.01 * max(given.sum(), 1e-12))]
        parts.append(_document(table, doc, heads_named(heads)))
    return "".join(parts)


def _document(table: RowLookup, doc: int, score: str) -> str:
    row = table.row(doc)
    topic = f' <span class="quiet">{safe(row["topic"])}</span>' if row["topic"] else ""
    return (
        f"<details><summary>{safe(score)} <b>{safe(shortened(row['title'], 110))}</b>{topic}</summary>"
        f"<div>{safe(row['text'])}</div></details>"
    )
