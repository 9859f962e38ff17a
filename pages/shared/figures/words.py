"""A text with its tokens shaded by one head's attention, as HTML; every character of the text is escaped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.analysis.wording import percent
from core.model.attention import Attended
from pages.shared.text import safe
from pages.shared.theme import WORD_SHADE

STEPS = 100
_OUTLIER = 3
STYLE = f"""
<style>
.hs-words {{ line-height: 2; overflow-wrap: anywhere; white-space: pre-wrap; border-radius: .5rem; padding: .8rem 1rem;
  border: 1px solid color-mix(in srgb, currentColor 16%, transparent); max-height: 32rem; overflow-y: auto; }}
.hs-words b {{ font-weight: inherit; border-radius: .15rem; padding: .12rem 0;
  background: color-mix(in srgb, {WORD_SHADE} calc(var(--s) * 1%), transparent); }}
.hs-words small {{ font-size: .68em; opacity: .75; border: 1px solid color-mix(in srgb, currentColor 35%, transparent);
  border-radius: .25rem; padding: .05rem .25rem; margin: 0 .15rem; white-space: nowrap;
  background: color-mix(in srgb, {WORD_SHADE} calc(var(--s) * 1%), transparent); }}
.hs-words .hs-from {{ outline: 2px solid currentColor; outline-offset: 1px; opacity: 1; }}
.hs-words i {{ opacity: .5; font-style: normal; }}
.hs-legend {{ display: flex; align-items: center; gap: .5rem; font-size: .85em; flex-wrap: wrap;
  margin-bottom: .4rem; }}
.hs-legend span {{ width: 9rem; height: .8rem; border-radius: .2rem; display: inline-block;
  border: 1px solid color-mix(in srgb, currentColor 20%, transparent);
  background: linear-gradient(to right, transparent, {WORD_SHADE}); }}
</style>
"""


@dataclass(frozen=True)
class TextRun:
    """A stretch of the text, or a special token, and its share of a head's attention; None for what lies between."""

    text: str
    share: float | None
    special: bool = False
    chosen: bool = False
    """Whether it is the token that the attention comes from."""


def runs(text: str, found: Attended, head: int, chosen: int | None = None) -> list[TextRun]:
    """The text from its first to its last token in runs; ``head`` from 1, the ``chosen`` token from 0.

    Tokens of the same characters (an emoji may be four) become one run with the sum of their shares.
    """
    result: list[TextRun] = []
    end = 0
    for number, (piece, share) in enumerate(zip(found.pieces, found.weights[head - 1].tolist(), strict=True)):
        mine = number == chosen
        if piece.special or piece.start is None or piece.end is None:
            result.append(TextRun(piece.text, share, piece.special, mine))
        elif piece.end <= end and result and result[-1].share is not None and not result[-1].special:
            result[-1] = TextRun(result[-1].text, (result[-1].share or 0.0) + share, chosen=mine or result[-1].chosen)
        else:
            start = max(piece.start, end)
            if start > end:
                result.append(TextRun(text[end:start], None))
            result.append(TextRun(text[start : piece.end], share, chosen=mine))
            end = piece.end
    return result


def cut_off(text: str, found: Attended) -> str:
    """What comes after the last token that the model saw; empty where the tokenizer knows no characters."""
    ends = [piece.end for piece in found.pieces if piece.end is not None]
    return text[max(ends) :] if ends else ""


def words_html(text: str, found: Attended, head: int, most_cut: int = 600, chosen: int | None = None) -> str:
    """The shaded text with a legend; the ``chosen`` token (from 0) is framed."""
    stretches = runs(text, found, head, chosen)
    strongest, beyond = scale_end(stretches)
    parts = []
    for run in stretches:
        if run.share is None:
            parts.append(safe(run.text))
            continue
        tag = "small" if run.special else "b"
        step = round(STEPS * min(1.0, run.share / strongest))
        traced = run.special or any(piece.start is not None for piece in found.pieces)
        parts.append(
            f'<{tag}{" class=hs-from" if run.chosen else ""} style="--s:{step}" title="{percent(run.share, 1)}">'
            f"{safe(run.text)}</{tag}>" + ("" if traced else " ")
        )
    rest = cut_off(text, found).rstrip()
    if rest:
        parts.append(f"<i>{safe(rest[:most_cut])}{' …' if len(rest) > most_cut else ''}</i>")
    return (
        f'{STYLE}<div class="hs-legend">0 % <span></span> {"≥ " if beyond else ""}{percent(strongest, 1)} of the '
        "head's attention</div>"
        f'<div class="hs-words" dir="auto">{"".join(parts)}</div>'
    )


def scale_end(stretches: list[TextRun]) -> tuple[float, bool]:
    """The share that has the full colour, and whether a token goes beyond it.

    It is the strongest of the text's own tokens; not where that one is a place to rest (many models' first token is)
    and would leave all others pale.
    """
    shares = sorted((run.share or 0.0 for run in stretches if not run.special), reverse=True)[:2]
    if len(shares) == 2 and shares[1] > 0 and shares[0] > _OUTLIER * shares[1]:
        return shares[1], True
    return (shares[0] if shares and shares[0] > 0 else 1.0), False


def resting(found: Attended, head: int) -> float:
    """The share of a head's attention that rests on special tokens, or on the prompt's."""
    special = np.array([piece.special for piece in found.pieces])
    return float(found.weights[head - 1][special].sum())


def strongest_words(text: str, found: Attended, head: int, count: int = 5) -> list[str]:
    """The stretches that get most of a head's attention, most first, each once; marks alone are none."""
    own = [run for run in runs(text, found, head) if run.share is not None and not run.special]
    own.sort(key=lambda run: -(run.share or 0.0))
    words = [run.text.strip() for run in own if any(letter.isalnum() for letter in run.text)]
    return list(dict.fromkeys(words))[:count]
