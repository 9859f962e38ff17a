"""The Attention page, and the type on heads' cards elsewhere, without a browser."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

from core.analysis.attention_measures import MEASURES, measured
from core.analysis.attention_roles import Head, exact_test, meeting
from core.analysis.attention_types import TYPES
from core.runs.parts import digest_of, write_table
from core.runs.results import read_analysis
from core.runs.run import Run
from core.runs.schema import ANALYSIS
from pages.shared.attention import LETTERS
from pages.shared.theme import ATTENTION_TYPES
from pages.understand.attention.figures import Pattern, matrix_figure, pattern_figure, small_pattern
from pages.understand.attention.head import WORDS
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
        "Every head by its type",
        "Layer 6, head 1: previous token",
        "Its average pattern",
        "Layer 6, head 1 in a text",
        "Heads of one type side by side",
        "Do selective heads attend broadly?",
    ]
    text = said(app)
    assert "72 heads: 6 previous token, 6 sink, 60 broad." in text
    assert "From 3 documents, 180 tokens." in text
    row = read_analysis(Run(cache, "demo"), "attention").to_pylist()[60]
    assert (row["layer"], row["head"]) == (6, 1)
    assert f"{row['previous']:.1%}<small>" in text
    profiles = read_analysis(Run(cache, "demo"), "profiles").to_pylist()
    roles = [row["role"] for row in profiles if (row["stage"], row["slicing"]) == (1, "heads") and row["head"]]
    types = ["previous token", "sink", *["broad"] * 10]
    selective = [type_ for type_, role in zip(types, roles, strict=True) if role == "selective"]
    assert selective  # or there would be nothing to compare
    count = len(selective)
    assert f"Of {count} selective head{'s' if count > 1 else ''} {selective.count('broad')} attend" in text


def test_another_head_and_type_by_its_widgets_and_by_its_address(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at(cache, PAGE, monkeypatch, layer="2", head="2", type="broad")
    assert "Layer 2, head 2: sink" in [heading.value for heading in app.subheader]
    assert "The 24 clearest of 60, the clearest first." in said(app)
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
    assert "The run's own model reads the text that you choose" in said(app)
    app.segmented_control(key="text").set_value("own")
    app.run()
    assert not app.exception
    assert app.query_params["text"] == "own"
    assert not app.get("progress")
    assert "no link carries it" in said(app)


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
    assert "**Attention: sink** – 90% of its attention rests on the first token" in said(profile)
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
        "Of 2 selective heads 1 attends broadly, of the 3 other heads 1 (Fisher's exact test: p = 1.00, which may well "
        "be chance). Their mean entropy is 0.50, the others' 0.53."
    )
    assert "None of the 1 heads" in meeting(heads[2:3]).sentence
    # Fisher's tea: 3 of 4 against 1 of 4 is 34/70; 4 of 4 against none is 2/70.
    assert exact_test(3, 4, 1, 4) == pytest.approx(34 / 70)
    assert exact_test(4, 4, 0, 4) == pytest.approx(2 / 70)
