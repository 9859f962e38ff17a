"""The two experiments of the page in its HTML report: a head switched off, and why two texts are similar."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from core.analysis.explained import against_random, signed, summary, term_name
from core.model.head_words import HeadWords
from pages.shared.components.layer_grid import LayerGrid
from pages.shared.figures.similarity import cell_colour
from pages.shared.figures.svg import as_svg
from pages.shared.figures.term_grid import decimal, term_grid
from pages.shared.figures.why_similar import shade_legend, shade_limit, shaded, waterfall
from pages.shared.text import safe, shortened
from pages.shared.theme import ink_on
from pages.shared.why_similar import TITLE, WhySimilar, matrix_caption, pair_caption, words_sentence
from pages.shared.without_head import WithoutHead

_THEME = "light"


def document_html(score: str, title: str, meta: Iterable[str | None], text: str) -> str:
    """A document that opens without a script."""
    about = " · ".join(safe(part) for part in meta if part)
    return (
        f'<details><summary>{safe(score)} <b>{safe(shortened(title, 110))}</b> <span class="quiet">{about}</span>'
        f"</summary><div>{safe(text)}</div></details>"
    )


def without_html(found: WithoutHead) -> str:
    parts = ["<h2>Without this head</h2>", f"<p>{safe(found.sentence)} {safe(found.remain)}</p>"]
    for title, items in found.lists.items():
        parts.append(f"<h3>{safe(title)}</h3>")
        parts += [
            document_html(signed(card.score or 0.0, 2, plus=True), card.title, card.meta, card.text) for card in items
        ]
    return "".join([*parts, _quiet(found.caption)])


def similar_html(pair: WhySimilar) -> str:
    """The sentences, the waterfall, the grid, and the words of the head that was chosen."""
    said = [summary(pair.found)]
    if pair.baseline is not None:
        said.append(against_random(pair.found, pair.baseline))
    drawn = picture_html(as_svg(waterfall(*pair.steps, _THEME), "Waterfall of the terms that add most to the cosine"))
    grid = term_grid(
        pair.found.terms, pair.cells, decimal, lambda at: "", _THEME, "What each term adds to the cosine.", "report"
    )
    parts = [
        f"<h2>{TITLE}</h2>{_quiet(pair_caption(pair.first, pair.second))}<p>{safe(' '.join(said))}</p>",
        drawn + _quiet(pair.waterfall_caption),
        f"<h3>Layers × heads{', less random pairs' if pair.less else ''}</h3>{grid_html(grid)}",
        _quiet("ff: feed-forward block; bias: biases of the layer."),
    ]
    if pair.words is not None:
        parts.append(_words(pair, pair.words))
    return "".join(parts)


def picture_html(svg: str) -> str:
    """On a narrow screen a picture is scrolled, not shrunk until nobody can read it."""
    return f'<div class="scroll">{svg}</div>'


def grid_html(grid: LayerGrid) -> str:
    """Layers × heads as a table in the grid's colours."""
    rows = [
        "".join("<td></td>" if cell is None else _cell(cell.text, cell.colour) for cell in cells)
        for cells in grid.cells
    ]
    return _table(grid.columns, grid.rows, rows)


def _words(pair: WhySimilar, words: HeadWords) -> str:
    name, limit = term_name(pair.chosen), shade_limit(words)
    texts = zip((pair.first, pair.second), words.pieces, words.values, strict=True)
    return "".join(
        [
            f"<h3>{safe(name[0].upper() + name[1:])}, word by word</h3><p>{safe(words_sentence(words))}</p>",
            shade_legend(limit),
            *(
                f"{_quiet(shortened(text.name, 90))}{shaded(text.text, pieces, values, limit)}"
                for text, pieces, values in texts
            ),
            _matrix(words),
            _quiet(matrix_caption(words, name)),
        ]
    )


def _matrix(words: HeadWords) -> str:
    rows, columns = ([*own, "all other words"] for own in words.words)
    limit = float(np.abs(words.matrix[:-1, :-1]).max(initial=0.0)) or 1.0
    cells = [
        "".join(_cell(decimal(value), cell_colour(float(np.clip(value / limit, -1, 1)), _THEME)) for value in row)
        for row in words.matrix.tolist()
    ]
    return _table([shortened(word, 18) for word in columns], [shortened(word, 18) for word in rows], cells)


def _cell(text: str, colour: str) -> str:
    return f'<td style="background:{colour};color:{ink_on(colour)}">{safe(text)}</td>'


def _table(columns: Sequence[str], rows: Sequence[str], cells: Sequence[str]) -> str:
    head = "".join(f'<th scope="col">{safe(name)}</th>' for name in columns)
    body = "".join(f'<tr><th scope="row">{safe(name)}</th>{own}</tr>' for name, own in zip(rows, cells, strict=True))
    return f'<div class="scroll"><table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _quiet(text: str) -> str:
    return f'<p class="quiet">{safe(text)}</p>'
