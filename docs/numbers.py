"""The tables of docs/scale.md and docs/methods.md: ``python -m docs.numbers`` prints them, ``--write`` puts them there.

Those of docs/scale.md are computed by ``benchmarks.cost_model`` from the assumptions here and what was measured
(docs/measured.json, ``make bench-cost``).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cost_model import (
    INT8,
    LAYOUTS,
    PEAKS,
    codebook_bytes,
    flops,
    hours,
    quantised_bytes,
    similarity_bytes,
    sustained,
    vector_bytes,
)
from core.analysis.false_alarms import markdown

FOLDER = Path(__file__).resolve().parent
PAGE, MEASURED = FOLDER / "scale.md", FOLDER / "measured.json"
SFR = LAYOUTS["Salesforce/SFR-Embedding-Mistral"]
DOCUMENTS, GPT2_TOKENS, LONGEST = 15_000_000, 10_000_000_000, 4096
"""FineWeb's sample-10BT, in round numbers, and the most tokens that SFR-Embedding-Mistral reads."""
SHARES = (0.3, 0.5)
PARTS = 1_000
TOPICS = 25
POINT = 19
"""Bytes of a point of a map: document, head, two coordinates, activation, whether it was fitted."""
SAMPLE = 20_000
"""Documents that keep their vectors with --store-vectors sample; see precompute.steps.slim.step."""


def measured() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return found


def tokens_of(tokenizer: str) -> float:
    """Tokens of the corpus by another tokenizer: as many times GPT-2's as in the demo corpus."""
    counts = measured()["tokens"]
    return float(GPT2_TOKENS * counts[tokenizer] / counts["gpt2"])


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines)


def _range(values: np.ndarray, digits: int = 0) -> str:
    low, high = float(values.min()), float(values.max())
    return f"{low:,.{digits}f}–{high:,.{digits}f}"


def operations() -> np.ndarray:
    """Of the corpus, least and most: all documents of the mean length, or all tokens in documents of the longest."""
    total = tokens_of("mistral")
    lengths = np.array([total / DOCUMENTS, LONGEST])
    return np.asarray(total / lengths * flops(SFR, lengths))


def tokens_table() -> str:
    counts = measured()["tokens"]
    return _table(
        ("tokenizer", "tokens in the demo corpus", "per GPT-2 token", "in sample-10BT"),
        (
            (name, f"{counts[key]:,}", f"{counts[key] / counts['gpt2']:.2f}", f"{tokens_of(key) / 1e9:.1f} billion")
            for name, key in (("GPT-2", "gpt2"), ("SFR-Embedding-Mistral", "mistral"), ("MiniLM", "minilm"))
        ),
    )


def embedding_table() -> str:
    """A GPU's rate and hours: utilisation and document length are the two ends of each range."""
    rows = []
    for name, peak in PEAKS.items():
        rates = sustained(peak, SHARES)
        took = hours(operations()[:, None], rates)
        each = DOCUMENTS / (took * 3600)
        rows.append((name, f"{peak / 1e12:.0f}", _range(each, 1), _range(took), _range(took / 64, 1)))
    return _table(("GPU", "peak, TFLOP/s", "documents per second", "GPU-hours", "hours on 64"), rows)


def processor_table() -> str:
    rows = [
        (
            case["model"],
            str(case["max_tokens"]),
            f"{case['documents_per_core_second']:g}",
            f"{case['gflops']:g}",
            f"{case['utilisation']:.2f} ({case['lowest']:.2f}–{case['highest']:.2f})",
        )
        for case in measured()["processor"]["embedder"]
    ]
    return _table(
        ("model", "tokens per document", "documents per second", "GFLOP/s", "share of the bare product"), rows
    )


def minilm_table() -> str:
    """MiniLM on the corpus by the cores of this machine, whose documents are cut to 256 tokens."""
    (case,) = [
        it
        for it in measured()["processor"]["embedder"]
        if it["model"] == "all-MiniLM-L6-v2" and it["max_tokens"] == 256
    ]
    core_hours = DOCUMENTS / case["documents_per_core_second"] / 3600
    return _table(
        ("model", "documents per second and core", "core-hours", "hours on 64 cores"),
        [
            (
                "all-MiniLM-L6-v2, 256 tokens",
                f"{case['documents_per_core_second']:g}",
                f"{core_hours:,.0f}",
                f"{core_hours / 64:.1f}",
            )
        ],
    )


def storage_table() -> str:
    shape = SFR.shape
    kinds: tuple[tuple[str, str, int], ...] = (
        ("four stages, float16 (the default)", "", vector_bytes(shape, shape.possible_stages)),
        ("three stages, float16", "`--stages 1 2 3`", vector_bytes(shape)),
        ("one stage, float16", "`--stages 3`", vector_bytes(shape, [3])),
        ("three stages, int8", "`--stages 1 2 3 --store-dtype int8`", vector_bytes(shape, number=INT8)),
        ("one stage, int8", "`--stages 3 --store-dtype int8`", vector_bytes(shape, [3], INT8)),
        ("three stages, product-quantised, 16 bytes per head", "none: computed only", quantised_bytes(shape, codes=16)),
        ("one stage, product-quantised, 16 bytes per head", "none: computed only", quantised_bytes(shape, [3], 16)),
        (f"similarities to {TOPICS} topics, three stages", "", similarity_bytes(shape, TOPICS)),
        ("maps of three stages, not compressed", "", 3 * shape.heads * POINT),
    )
    rows = [(name, option, f"{each:,}", f"{each * DOCUMENTS / 1e9:,.0f} GB") for name, option, each in kinds]
    kept = f"finally {SAMPLE:,} documents' vectors, three stages, float16"
    rows.insert(
        5, (kept, "`--stages 1 2 3 --store-vectors sample`", "", f"{vector_bytes(shape) * SAMPLE / 1e9:.1f} GB")
    )
    text = measured()["tokens"]["bytes"] / measured()["tokens"]["gpt2"] * GPT2_TOKENS
    rows.append(("the texts, not compressed", "", f"{text / DOCUMENTS:,.0f}", f"{text / 1e9:,.0f} GB"))
    return _table(("what", "option", "bytes per document", "sample-10BT"), rows)


def parts_table() -> str:
    """What a part is: how many there are, their size, and what a kill costs at most."""
    seconds = PARTS / DOCUMENTS * 3600 * hours(operations()[:, None], sustained(PEAKS["A100"], SHARES))
    rows = [
        ("parts of 1,000 documents", f"{DOCUMENTS // PARTS:,}"),
        ("a part's file of one stage, float16", f"{vector_bytes(SFR.shape, [3]) * PARTS / 1e6:.1f} MB"),
        ("files of three stages", f"{3 * DOCUMENTS // PARTS:,}"),
        ("a part on an A100, and what a kill loses at most", f"{_range(seconds)} s"),
        ("codebooks of a product quantiser, once", f"{codebook_bytes(SFR.shape) / 1e6:.1f} MB"),
    ]
    return _table(("", ""), rows)


TABLES: dict[str, Callable[[], str]] = {
    "tokens": tokens_table,
    "embedding": embedding_table,
    "processor": processor_table,
    "minilm": minilm_table,
    "storage": storage_table,
    "parts": parts_table,
}
"""By the names that stand around each in the page."""


METHODS = FOLDER / "methods.md"
RATES: dict[str, Callable[[], str]] = {"false alarms": markdown}
"""The same of docs/methods.md."""


def with_tables(page: str, tables: dict[str, Callable[[], str]] = TABLES) -> str:
    """The page with its tables made anew; each stands between two comments with its name."""
    for name, table in tables.items():
        start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, rest = page.split(start)
        _, after = rest.split(end)
        page = f"{before}{start}\n{table()}\n\n{end}{after}"
    return page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"into docs/{PAGE.name} and docs/{METHODS.name}")
    if parser.parse_args().write:
        for page, tables in ((PAGE, TABLES), (METHODS, RATES)):
            page.write_text(with_tables(page.read_text(encoding="utf-8"), tables), encoding="utf-8")
    for table in (*TABLES.values(), *RATES.values()):
        print(table(), end="\n\n")


if __name__ == "__main__":
    main()
