"""The ledger of two texts against one plain encode of both, and how exact it is: ``python -m benchmarks.explain``.

Two texts of 250 words, the model loaded: what each head, block, embedding and bias adds to their cosine, against
``Embedder.embed`` of the same two texts. In the same process, turn by turn; a round's ratio is what counts. Then the
largest residual over documents of the demo corpus: of their embeddings, and of the cosines of neighbouring ones.
"""

from __future__ import annotations

import argparse
import os
import statistics
from dataclasses import dataclass

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np

from benchmarks.extract import seconds
from benchmarks.result import Result
from core.model.embedder import Embedder, EmbedderConfig
from core.model.ledger import Ledger, explain
from core.model.presets import DEFAULT_MODEL
from tests.support.peer import demo_texts

WORDS = 250
MOST = 3.0
EXACT = 1e-5


@dataclass(frozen=True)
class Residuals:
    """The largest over some documents."""

    documents: int
    embedding: float
    """Relative to the embedding's length."""
    cosine: float
    terms: int


def two_texts() -> list[str]:
    words = " ".join(demo_texts()).split()
    return [" ".join(words[:WORDS]), " ".join(words[WORDS : 2 * WORDS])]


def ratio(model: Embedder, rounds: int) -> tuple[float, float]:
    """The median ratio over rounds, and the median seconds of a ledger."""
    texts = two_texts()
    model.embed(texts), model.ledgers(texts)
    found = []
    for _ in range(rounds):
        plain = seconds(lambda: model.embed(texts))
        found.append((seconds(lambda: model.ledgers(texts)) / plain, plain))
    return statistics.median(one for one, _ in found), statistics.median(plain for _, plain in found)


def residuals(model: Embedder, documents: int, skipped: int = 0) -> Residuals:
    texts = demo_texts()[skipped : skipped + documents]
    before: Ledger | None = None
    found, cosines, terms = [], [], 0
    for first in range(0, len(texts), 20):
        for ledger in model.ledgers(texts[first : first + 20]):
            found.append(ledger.residual)
            terms = len(ledger.terms)
            if before is not None:
                cosines.append(abs(explain(before, ledger).residual))
            before = ledger
    return Residuals(len(found), float(np.max(found)), float(np.max(cosines)), terms)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--rounds", type=int, default=15, help="0: residuals alone")
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--skip", type=int, default=0, help="documents left out at the beginning, to go on with others")
    options = parser.parse_args()
    model = Embedder.load(EmbedderConfig(model=options.model))
    lines = []
    if options.rounds:
        times, plain = ratio(model, options.rounds)
        what = f"ledger of two texts of {WORDS} words ({plain:.2f} s plain)"
        lines.append(Result(what, f"{times:.2f} × encode", f"≤ {MOST:.0f}", times <= MOST))
    exact = residuals(model, options.documents, options.skip)
    lines += [
        Result("residual of the embedding", f"{exact.embedding:.1e}", f"≤ {EXACT:.0e}", exact.embedding <= EXACT),
        Result("residual of the cosine", f"{exact.cosine:.1e}", f"≤ {EXACT:.0e}", exact.cosine <= EXACT),
    ]
    print(f"{options.model}: {exact.documents} documents, {exact.terms} terms")
    for line in lines:
        print(f"  {line.what:<52}{line.measured:>16}   {line.target:<8}{'ok' if line.reached else 'MISSED'}")


if __name__ == "__main__":
    main()
