"""``explain``: two documents or texts of a run with a tiny model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.model.embedder import Embedder, EmbedderConfig
from core.runs.run import Run
from tests.support.jobs import Outcome
from tests.support.models import WORDS

pytestmark = pytest.mark.usefixtures("one_thread")

TEXTS = [" ".join(WORDS[(doc + at) % 8] for at in range(3 + doc)) for doc in range(10)]


@pytest.fixture
def run(tmp_path: Path, tiny_model: Path, write_corpus: Callable[..., Path], command: Callable[..., Outcome]) -> Run:
    source = write_corpus([{"id": f"doc-{at}", "title": f"Title {at}", "text": text} for at, text in enumerate(TEXTS)])
    made = command("embed", "small", "--cache", tmp_path, "--source", source, "--model", tiny_model, "--quiet")
    assert made.status == 0, made.err
    return Run(tmp_path, "small")


@pytest.fixture
def explained(run: Run, tiny_model: Path, command: Callable[..., Outcome]) -> Callable[..., Outcome]:
    def call(first: str, second: str, *options: object) -> Outcome:
        where = ("--cache", run.cache, "--model", tiny_model)
        return command("explain", run.name, "--first", first, "--second", second, *where, *options)

    return call


def cosine(model: Path, first: str, second: str, **prompts: Any) -> float:
    x, y = Embedder.load(EmbedderConfig(model=str(model), **prompts)).embed([first, second]).output.astype(np.float64)
    return float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))


def test_the_terms_of_two_documents_add_up_to_their_cosine(explained: Callable[..., Outcome], tiny_model: Path) -> None:
    found = json.loads(explained("doc-1", "doc-6", "--json").out)
    assert list(found) == ["cosine", "terms", "residual"]
    assert found["cosine"] == pytest.approx(cosine(tiny_model, TEXTS[1], TEXTS[6]), abs=1e-6)
    assert sum(term["value"] for term in found["terms"]) == pytest.approx(found["cosine"], abs=1e-6)
    assert abs(found["residual"]) <= 1e-5
    places = [(term["kind"], term["layer"], term["head"]) for term in found["terms"]]
    assert places[0] == ("embedding", None, None)
    assert [place for place in places if place[0] == "head"] == [
        ("head", layer, head) for layer in (1, 2) for head in (1, 2, 3, 4)
    ]
    assert {place for place in places if place[0] in ("mlp", "bias")} == {
        (kind, layer, None) for kind in ("mlp", "bias") for layer in (1, 2)
    }


def test_a_text_of_one_s_own_is_compared_with_a_document(explained: Callable[..., Outcome], tiny_model: Path) -> None:
    found = explained("glacier orchard loom", "doc-0")
    assert found.status == 0
    shown = cosine(tiny_model, "glacier orchard loom", TEXTS[0])
    assert found.out.startswith(f"{shown:.2f}, of which ")
    assert "first   “glacier orchard loom”" in found.out
    assert "second  doc-0: Title 0" in found.out
    assert "run 'python -m precompute layers small'" in found.out  # random pairs are not measured
    (last,) = (line for line in found.out.splitlines() if line.startswith("  all "))
    heads, blocks, biases, together = (float(cell.replace("−", "-")) for cell in last.split()[1:])
    (first,) = (line for line in found.out.splitlines() if line.startswith("  embeddings"))
    assert together == round(shown, 4)
    assert heads + blocks + biases + float(first.split()[1].replace("−", "-")) == pytest.approx(together, abs=1e-9)


@pytest.mark.parametrize(
    ("first", "wrong"),
    [
        ("doc-99", "The run 'small' has no document with the id 'doc-99'."),
        ("  ", "The first text is empty."),
    ],
)
def test_what_cannot_be_compared_is_a_sentence(explained: Callable[..., Outcome], first: str, wrong: str) -> None:
    found = explained(first, "doc-0")
    assert (found.status, found.out) == (2, "")
    assert wrong in found.err


def test_a_word_is_a_text_and_so_is_an_unknown_id_with_a_space(explained: Callable[..., Outcome]) -> None:
    assert explained("harbour", "doc-0", "--json").status == 0
    assert explained("doc-99 ", "doc-0", "--json").status == 0


def test_a_query_is_read_with_its_prompt_where_the_model_has_one(
    explained: Callable[..., Outcome],
    tmp_path: Path,
    tiny_model: Path,
    write_corpus: Callable[..., Path],
    command: Callable[..., Outcome],
) -> None:
    refused = explained("harbour", "doc-0", "--query")
    assert refused.status == 2
    assert "has no prompt for queries. Leave out --query." in refused.err
    source = write_corpus([{"text": text} for text in TEXTS])
    prompts = ("--query-prompt", "verdict: ")
    where = ("--cache", tmp_path, "--model", tiny_model)
    assert command("embed", "asked", *where, "--source", source, *prompts, "--quiet").status == 0
    pair = ("--first", "harbour", "--second", "violin loom", "--json")
    plain = json.loads(command("explain", "asked", *where, *pair).out)
    query = json.loads(command("explain", "asked", *where, *pair, "--query").out)
    assert plain["cosine"] == pytest.approx(cosine(tiny_model, "harbour", "violin loom"), abs=1e-6)
    assert query["cosine"] == pytest.approx(cosine(tiny_model, "verdict: harbour", "violin loom"), abs=1e-6)


def test_random_pairs_stand_beside_the_layers_once_they_are_measured(
    run: Run, explained: Callable[..., Outcome], tiny_model: Path, command: Callable[..., Outcome]
) -> None:
    made = command("layers", run.name, "--cache", run.cache, "--model", tiny_model, "--quiet")
    assert made.status == 0, made.err
    found = explained("doc-1", "doc-6").out
    assert "Two random documents of this corpus have" in found
    header = next(line for line in found.splitlines() if "together" in line)
    assert header.split()[-4:] == ["random", "pairs", "most", "from"]
