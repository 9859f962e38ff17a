"""The Attention page, and the type on heads' cards elsewhere, without a browser."""

from __future__ import annotations

import shutil
from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

from core.analysis.attention_measures import MEASURES, measured
from core.analysis.attention_roles import Head, association, exact_test, meeting
from core.analysis.attention_types import TYPES
from core.analysis.type_claims import type_claims
from core.analysis.type_depth import type_depth
from core.analysis.wording import percent
from core.runs.parts import digest_of, write_table
from core.runs.results import read_analysis
from core.runs.run import Run
from core.runs.schema import ANALYSIS
from pages.shared.attention import LETTERS
from pages.shared.figures.relations import Arrows, arrows_html, spoken
from pages.shared.theme import ATTENTION_TYPES
from pages.understand.attention.figures import Pattern, matrix_figure, pattern_figure, small_pattern
from pages.understand.attention.sections import WORDS
from precompute.job.step import StepRecord, as_table
from precompute.steps.attention.tables import Collected, attention_rows, pattern_rows
from tests.support.apps import page_at

PAGE = "pages/understand/attention/page.py"


def planted_attention(run: Run) -> None:
    """Of made weights: head 1 of every layer looks at the token before, head 2 at the first one, the rest evenly."""
    shape, tokens = run.manifest().shape, 60
    collected = Collected(shape)
    even = np.full((shape.heads, tokens, tokens), 1 / tokens)
    even[0] = 0.9 * np.eye(tokens, k=-1) + 0.1 / tokens
    even[1] = 0.1 / tokens
    even[1, :, 0] += 0.9
    even[0, 0] = even[2, 0]
    for _ in range(3):
        collected.add([measured(even, np.arange(tokens) % 6 == 1, np.arange(tokens) % 5 == 2)] * shape.layers)
    record = StepRecord(run, "attention", run.manifest(), "planted", {})
    for name, rows in (("attention", attention_rows(collected, 0)), ("attention_patterns", pattern_rows(collected))):
        write_table(run.analysis_path(name), as_table(rows, ANALYSIS[name]), "planted")
    record.finish({"documents": 3, "tokens": 180})


SENTENCE = ["The", "boat", "<b>sank</b>", "slowly", "."]


def planted_experiments(run: Run) -> None:
    """Head 1 of layer 6 follows determiners (right, then wrong) and repeated tokens; head 3 of layer 6 nothing."""
    shape = run.manifest().shape
    places = [(layer, head) for layer in range(1, shape.layers + 1) for head in range(1, shape.heads + 1)]
    chosen = (shape.layers, 1)
    scores: dict[str, list[Any]] = {name: [] for name in ANALYSIS["attention_scores"].names}
    for at in places:
        induction = 0.9 if at == chosen else 0.01
        figures = dict.fromkeys(scores, 0.001) | {"layer": at[0], "head": at[1], "induction": induction}
        figures |= {"induction_low": induction - 0.01, "induction_high": induction + 0.01}
        for name, column in scores.items():
            column.append(figures[name])
    relations = [
        {
            "layer": layer,
            "head": head,
            "relation": "determiner → noun",
            "pairs": 40,
            "chosen": 0.9 if (layer, head) == chosen else 0.2,
            "score": 0.85 if (layer, head) == chosen else 0.25,
            "low": 0.2,
            "high": 0.9,
            "fixed_offset": 1,
            "offset_score": 0.6,
            "shuffled": 0.1,
            "p": 0.0001,
            "p_adjusted": 0.001 if (layer, head) == chosen else 1.0,
            "beyond": (layer, head) == chosen,
        }
        for layer, head in places
    ]
    shown = type_claims(
        {name: column[places.index(chosen)] for name, column in scores.items()},
        [row for row in relations if (row["layer"], row["head"]) == chosen],
    )
    attention = read_analysis(run, "attention").to_pylist()
    claims = []
    for row in attention:
        mine = shown if (row["layer"], row["head"]) == chosen else {}
        row["types"] = [*sorted(mine, key=lambda name: -mine[name].strength), *row["types"]]
        row["type"] = (row["types"] or ["mixed"])[0]
        for nth, name in enumerate(row["types"], start=1):
            claim = mine.get(name)
            why, strength = (claim.because, claim.strength) if claim else ("by the documents", None)
            claims.append({**{key: row[key] for key in ("layer", "head")}, "nth": nth, "type": name})
            claims[-1] |= {"strength": strength, "because": why}
    example = {"layer": chosen[0], "head": chosen[1], "words": SENTENCE, "starts": [0]}
    examples = [
        {
            **example,
            "type": "modifier",
            "example": number,
            "relation": "determiner → noun",
            "right": [1],
            "attended": [to],
        }
        for number, to in enumerate((1, 2, 1, 1, -1), start=1)
    ]
    twice = ["a", "b", "c", "d"] * 2
    examples += [
        {**example, "type": "induction", "example": number, "relation": None, "words": twice, "starts": [4, 5, 6],
         "right": [1, 2, 3], "attended": [1, 2, 3]}
        for number in range(1, 6)
    ]  # fmt: skip
    record = StepRecord(run, "attention", run.manifest(), "planted", {})
    made = {"attention": attention, "attention_claims": claims, "relations": relations, "relation_examples": examples}
    for name, rows in made.items():
        write_table(run.analysis_path(name), pa.Table.from_pylist(rows, schema=ANALYSIS[name]), "planted")
    write_table(run.analysis_path("attention_scores"), as_table(scores, ANALYSIS["attention_scores"]), "planted")
    record.finish({"documents": 3, "tokens": 180, "sentences": 357})


@pytest.fixture(scope="module")
def tried(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with planted experiments."""
    folder = tmp_path_factory.mktemp("experiments")
    shutil.copytree(cache / "demo", folder / "demo")
    planted_experiments(Run(folder, "demo"))
    return folder


@pytest.fixture(scope="module")
def cache(analysed_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo run with planted attention, and two heads that are called selective."""
    folder = tmp_path_factory.mktemp("attention")
    shutil.copytree(analysed_cache / "demo", folder / "demo")
    run = Run(folder, "demo")
    planted_attention(run)
    path = run.analysis_path("profiles")
    profiles = read_analysis(run, "profiles").to_pylist()
    for row in profiles:
        if (row["stage"], row["slicing"]) == (1, "heads") and row["head"] in (2, 5):
            row["role"] = "selective"
    write_table(path, pa.Table.from_pylist(profiles, schema=ANALYSIS["profiles"]), str(digest_of(path)))
    return folder


def said(app: AppTest) -> str:
    kinds = ("title", "subheader", "markdown", "caption", "info", "warning", "error", "code")
    parts = [str(element.value) for kind in kinds for element in app.get(kind)]
    return "\n".join([*parts, *(element.proto.body for element in app.get("html"))]).replace("\\", "")


def test_the_page_shows_the_heads_by_type(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at(cache, PAGE, monkeypatch)
    assert [heading.value for heading in app.subheader] == [
        "All heads by type",
        "Average pattern of layer 6, head 1",
        "Layer 6, head 1: previous token",
        "Layer 6, head 1 in a text",
        "Heads of one type side by side",
        "Do selective heads attend broadly?",
    ]
    text = said(app)
    assert "72 heads: 6 previous token, 6 sink, 60 broad." in text
    assert "From 3 documents, 180 tokens." in text
    row = read_analysis(Run(cache, "demo"), "attention").to_pylist()[60]
    assert (row["layer"], row["head"]) == (6, 1)
    assert f"{percent(row['previous'], 1)}<small>" in text
    profiles = read_analysis(Run(cache, "demo"), "profiles").to_pylist()
    roles = [row["role"] for row in profiles if (row["stage"], row["slicing"]) == (1, "heads") and row["head"]]
    types = ["previous token", "sink", *["broad"] * 10]
    selective = [type_ for type_, role in zip(types, roles, strict=True) if role == "selective"]
    assert selective  # or there would be nothing to compare
    count = len(selective)
    assert f"Of {count} selective head{'s' if count > 1 else ''} {selective.count('broad')} attend" in text


def test_experiments_have_their_sections(tried: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at(tried, PAGE, monkeypatch)
    assert [heading.value for heading in app.subheader] == [
        "All heads by type",
        "Average pattern of layer 6, head 1",
        "Layer 6, head 1: induction",
        "Layer 6, head 1 in example sentences",
        "Layer 6, head 1 in a text",
        "Which heads follow a relation?",
        "Early positional, middle syntactic, late abstract?",
        "Heads of one type side by side",
        "Do selective heads attend broadly?",
    ]
    text = said(app).replace("\u00a0", " ")  # Markdown has plain spaces, HTML those that do not break
    assert "72 heads: 1 induction, 5 previous token, 6 sink, 60 broad." in text
    assert "and 357 sentences with gold relations" in text
    assert "90 % of its attention from a repeated random token is on the token after its first occurrence" in text
    assert "**Also modifier** – determiner → noun: the right word gets most of its attention in 85 % of 40" in text
    assert "From a repeated token to the token after its first occurrence: correct for 15 of 15 here." in text
    assert "90.0 %<small>89.0 % to 91.0 %</small>" in text
    assert "The head that was best on one half of the sentences, 6.1, is correct for 85 % of 40 held-out pairs" in text
    assert "Above both: 1 head of 72." in text
    assert "older version" not in text
    app.segmented_control(key="example 6 1").set_value("modifier").run()
    assert "determiner → noun: correct for 3 of 5 here." in said(app)
    assert "‹b›sank" in said(app)  # what the image is called
    assert "<b>sank" not in said(app)
    app.selectbox(key="relation").set_value("induction").run()
    assert not app.exception
    assert app.query_params["relation"] == "induction"
    assert "Of type induction: 1 head of 72." in said(app)
    assert "This model attends in both directions" in said(app)
    app.selectbox(key="relation").set_value("semantic similarity").run()
    assert "Attending to similar words: 0 heads of 72." in said(app)


def test_a_head_without_such_a_type_has_no_examples(tried: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at(tried, PAGE, monkeypatch, head="3")
    assert "Layer 6, head 3 in example sentences" not in [heading.value for heading in app.subheader]


def test_a_run_of_an_older_version_says_which_command_adds_the_experiments(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "python -m precompute attention demo --again" in said(page_at(cache, PAGE, monkeypatch))


def test_arrows_by_hand() -> None:
    found = Arrows(["a", "<script>", "c"], [0, 1, 2, 9], [1, 2, 0, 1], [1, 0, -1, 1])
    assert found.known == [(0, 1, 1), (1, 2, 0), (2, 0, -1)]  # nothing from outside the sentence
    assert found.hits == 1
    assert (
        spoken(found) == "a to <script>: right; <script> to a: wrong, right is c; c to no other word: wrong, right is a"
    )
    html = arrows_html(found, "light")
    assert "<script>" not in html
    image = b64decode(html.split("base64,")[1].split('"')[0]).decode()
    assert "<script>" not in image
    assert "&lt;script&gt;" in image
    # One arrow that is right, one that is wrong beside the right one, and one right one where none is attended to.
    assert [image.count(f"url(#{name})") for name in ("hit", "wrong", "missed")] == [1, 1, 2]
    assert "data:image/svg+xml" in arrows_html(Arrows([], [], [], []), "dark")


def test_types_and_roles_that_go_together_are_beyond_shuffled_ones() -> None:
    """Eight heads in two layers, a role for each type: one bit, and of 4! · 4! / (2!)⁴ = 36 ways two give as much."""
    heads = [(layer, type_, role) for layer in (1, 2) for type_, role in [("broad", "general"), ("sink", None)] * 2]
    found = association(heads)
    assert found is not None
    assert found.bits == pytest.approx(1)
    assert found.p == pytest.approx(2 / 36, abs=0.02)
    assert found.expected["broad", "general"] == pytest.approx(2, abs=0.1)
    assert association(heads[:1]) is None
    mixed = [(1, type_, role) for type_ in ("broad", "sink") for role in ("general", None)] * 3
    nothing = association(mixed)
    assert nothing is not None
    assert nothing.bits == pytest.approx(0, abs=1e-9)
    assert "are not shown to be related" in nothing.sentence


def test_depth_is_compared_with_shuffled_families() -> None:
    early = [(layer, "local") for layer in (1, 2) for _ in range(6)]
    middle = [(layer, "modifier") for layer in (3, 4) for _ in range(6)]
    late = [(layer, "induction") for layer in (5, 6) for _ in range(6)]
    found = type_depth([*early, *middle, *late, (1, "mixed")], layers=6)
    assert found.means == (1.5, 3.5, 5.5)
    assert found.counts["positional"].tolist() == [6, 6, 0, 0, 0, 0]
    assert found.counts["none"].tolist() == [1, 0, 0, 0, 0, 0]
    assert found.p < 0.001
    assert "In the textbook's order" in found.sentence
    assert (
        "The opposite of the textbook order"
        in type_depth([*((7 - at, name) for at, name in [*early, *late])], 6).sentence
    )
    assert "Too few families" in type_depth(early, 6).sentence
    even = [(layer, name) for layer in range(1, 7) for name in ("local", "modifier", "induction")]
    assert "No trend over depth is shown" in type_depth(even, 6).sentence


def test_another_head_and_type_by_its_widgets_and_by_its_address(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at(cache, PAGE, monkeypatch, layer="2", head="2", type="broad")
    assert "Layer 2, head 2: sink" in [heading.value for heading in app.subheader]
    assert "The 24 clearest of 60, clearest first." in said(app)
    app.selectbox(key="head").set_value(1)
    app.selectbox(key="type").set_value("same")
    app.run()
    assert not app.exception
    assert "Layer 2, head 1: previous token" in [heading.value for heading in app.subheader]
    assert dict(app.query_params) == {"layer": "2"}
    app.button(key="look at 5 1").click().run()
    assert "Layer 5, head 1: previous token" in [heading.value for heading in app.subheader]
    assert app.query_params["layer"] == "5"


def test_a_text_is_asked_of_the_model_only_when_somebody_wants_it(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A private text is neither in the address nor on the page's other parts; the browser's test has the real model."""
    app = page_at(cache, PAGE, monkeypatch)
    assert not app.get("progress")
    assert "The run's model reads the text you choose." in said(app)
    app.segmented_control(key="text").set_value("own")
    app.run()
    assert not app.exception
    assert app.query_params["text"] == "own"
    assert not app.get("progress")
    assert "links do not contain it" in said(app)


def test_without_the_step_it_says_how_to_make_it(
    analysed_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page_at(analysed_cache, PAGE, monkeypatch)
    assert "python -m precompute attention demo" in said(app)
    assert not app.subheader
    assert "Build the demo" in [button.label for button in page_at(tmp_path, PAGE, monkeypatch).button]


def test_without_labels_only_the_roles_are_missing(
    bare_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(bare_cache / "bare", tmp_path / "bare")
    planted_attention(Run(tmp_path, "bare"))
    app = page_at(tmp_path, PAGE, monkeypatch)
    assert "8 heads: 2 previous token, 2 sink, 4 broad." in said(app)
    assert "A head's role needs documents with a topic" in said(app)
    profile = said(page_at(tmp_path, "pages/explore/head_profile/page.py", monkeypatch))
    assert "**Attention: previous token** –" in profile


def test_a_damaged_file_costs_a_sentence(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("one", "other"):  # what was read once is kept
        shutil.copytree(cache / "demo", tmp_path / folder / "demo")
    Run(tmp_path / "one", "demo").analysis_path("attention_patterns").write_bytes(b"not Parquet")
    app = page_at(tmp_path / "one", PAGE, monkeypatch)
    assert "attention_patterns.parquet cannot be read" in said(app)
    assert "72 heads" in said(app)
    Run(tmp_path / "other", "demo").analysis_path("attention").unlink()
    app = page_at(tmp_path / "other", "pages/explore/head_profile/page.py", monkeypatch)
    assert "attention.parquet is missing" in said(app)


def test_head_cards_and_profiles_have_the_type_beside_the_role(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = page_at(cache, "pages/explore/head_profile/page.py", monkeypatch, head="2")
    assert "**Attention: sink** – 90\u00a0% of its attention rests on the first token" in said(profile)
    gallery = page_at(cache, "pages/explore/head_profile/page.py", monkeypatch, view="gallery")
    badges = [str(caption.value) for caption in gallery.caption if ":material/visibility:" in str(caption.value)]
    assert sorted(badges) == sorted(
        [":material/visibility: previous token", ":material/visibility: sink", *[":material/visibility: broad"] * 10]
    )


def test_every_type_has_its_colour_and_letters_and_every_measure_its_word() -> None:
    for theme in ("light", "dark"):
        assert set(ATTENTION_TYPES[theme]) == set(TYPES)
        assert len(set(ATTENTION_TYPES[theme].values())) == len(TYPES)
    assert set(LETTERS) == set(TYPES)
    assert len(set(LETTERS.values())) == len(TYPES)
    assert set(WORDS) == set(MEASURES)


def test_figures_hold_what_they_are_given() -> None:
    share = np.zeros(65)
    share[[0, 31, 64]] = 0.2, 0.5, 0.1  # far before, the token before, far after
    pattern = Pattern.of(share)
    assert (pattern.first, pattern.before, pattern.after) == (pytest.approx(0.2), 0.2, 0.1)
    figure = pattern_figure(pattern, pattern, causal=False, theme="light")
    assert [float(trace.x[0]) for trace in figure.data[:4]] == pytest.approx([0.2, 0.2, 0.5, 0.1])
    assert figure.data[4].x[int(np.argmax(figure.data[4].y))] == -1
    assert max(pattern_figure(pattern, pattern, causal=True, theme="dark").data[3].x) == 0
    assert small_pattern(pattern, True, "light", '"><b>').count("<span") == 2 + 32
    assert "<b>" not in small_pattern(pattern, False, "light", '"><b>')
    matrix = matrix_figure(np.eye(2), ["<b>x</b>", " "], 1, "light")
    assert list(matrix.data[0].x) == ["1 &lt;b&gt;x&lt;/b&gt;", "2 ␣"]


def test_where_types_and_roles_meet_by_hand() -> None:
    heads = [Head("broad", "selective", 0.9), Head("sink", "selective", 0.1), Head("broad", None, 0.8)]
    heads += [Head("local", "general", 0.4)] * 2
    found = meeting(heads)
    assert found.counts == {
        ("broad", "selective"): 1, ("sink", "selective"): 1, ("broad", None): 1, ("local", "general"): 2,
    }  # fmt: skip
    assert (found.selective, found.selective_broad, found.others, found.others_broad) == (2, 1, 3, 1)
    assert found.sentence == (
        "Of 2 selective heads 1 attends broadly, of the 3 other heads 1 (Fisher's exact test: p = 1.00, which may be "
        "chance). Their mean entropy is 0.50, the others' 0.53."
    )
    assert "None of the 1 heads" in meeting(heads[2:3]).sentence
    # Fisher's tea: 3 of 4 against 1 of 4 is 34/70; 4 of 4 against none is 2/70.
    assert exact_test(3, 4, 1, 4) == pytest.approx(34 / 70)
    assert exact_test(4, 4, 0, 4) == pytest.approx(2 / 70)
