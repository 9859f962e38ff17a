"""The page Head profile without a browser, on a planted run whose answers are known."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import numpy as np
import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

from core.analysis.roles import RULES
from core.model.shape import ModelShape
from core.runs.labels import labels_of
from core.runs.parts import write_table
from core.runs.results import read_analysis, read_own_similarity, read_topics
from core.runs.run import Run
from precompute.steps.analyse import step as analyse
from precompute.steps.analyse.step import AnalyseConfig
from tests.support.apps import figures_of, page_at
from tests.support.synthetic import EMBEDDED, PlantedTopics, write_run

ROOT = Path(__file__).resolve().parents[2]
PAGE = "pages/explore/head_profile/page.py"
SHAPE = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)
TOPICS = ("rivers", "engines", "poems", "proofs", "spices", "planets")
FOLLOWER, FOLLOWED = 3, "poems"
"""The planted head (from 1) and the topic that it alone follows."""
NASTY = '<img src=x onerror="alert(1)"> **bold** [link](javascript:alert(1)) $x$'


def write_planted(cache: Path, name: str, topics: tuple[str, ...] = TOPICS, labelled: bool = True) -> Run:
    """120 documents of noise; head 3 carries the vector of the third topic in that topic's documents."""
    chance = np.random.default_rng(5)
    planted = {stage: {topic: chance.normal(size=32).astype(np.float32) for topic in topics} for stage in (1, 2, 3)}
    labels = [topics[doc % len(topics)] for doc in range(120)]

    def vectors(stage: int, first: int, count: int) -> np.ndarray:
        rows = np.random.default_rng([stage, 77]).normal(size=(120, 4, 8)) + np.arange(4)[:, None] * 0.3
        for doc in range(2, 120, len(topics)):
            rows[doc, FOLLOWER - 1] = planted[stage][topics[2]].reshape(4, 8)[FOLLOWER - 1]
        return rows.reshape(120, 32)[first : first + count]

    run = write_run(cache, name, SHAPE, vectors, labels if labelled else [None] * 120, part_size=50)
    analyse.run(AnalyseConfig(cache, name, model=PlantedTopics(SHAPE, planted)))
    return run


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_planted(tmp_path_factory.mktemp("planted"), "planted")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run without labels."""
    return write_planted(tmp_path_factory.mktemp("bare"), "bare", labelled=False)


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """The page on a cache, at an address."""

    def start(cache: Path, **address: str) -> AppTest:
        return page_at(cache, PAGE, monkeypatch, **address)

    return start


def said(app: AppTest) -> str:
    """All that stands on the page, HTML included; Markdown's escapes taken back."""
    kinds = ("title", "subheader", "markdown", "caption", "info", "warning", "error")
    parts = [re.sub(r"\\(\W)", r"\1", str(element.value)) for kind in kinds for element in app.get(kind)]
    return "\n".join([*parts, *(element.proto.body for element in app.get("html"))])


def metrics(app: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in app.metric}


def links(app: AppTest) -> list[dict[str, list[str]]]:
    """The queries of the links to heads, in order."""
    found = [element.proto for element in app.get("page_link")]
    return [parse_qs(link.query_string) for link in found if link.page.endswith("head_profile")]


def heads_linked(app: AppTest) -> list[int]:
    return [int(query.get("head", ["1"])[0]) for query in links(app)]


def card_titles(app: AppTest) -> list[list[str]]:
    """The titles of each list of cards on the page."""
    bodies = [element.proto.body for element in app.get("html") if '<div class="hs-cards">' in element.proto.body]
    return [[unescape(title) for title in re.findall(r'hs-title">(.*?)</span>', body)] for body in bodies]


def charts(app: AppTest) -> list[dict[str, Any]]:
    return [element.json for element in figures_of(app)]


def chart(app: AppTest) -> dict[str, Any]:
    """The topics that the head follows and avoids."""
    return next(found for found in charts(app) if any(trace.get("name") == "follows" for trace in found["data"]))


def rows(run: Run, table: str, **wanted: Any) -> list[dict[str, Any]]:
    found = read_analysis(run, table).to_pylist()
    return [row for row in found if all(row[name] == value for name, value in wanted.items())]


def own_of(run: Run, stage: int) -> np.ndarray:
    names = read_topics(run).names
    return read_own_similarity(run, stage, labels_of(run.documents(["topic"])["topic"].to_pylist(), names), len(names))


def test_the_first_head_with_its_figures(open_page: Callable[..., AppTest], planted: Run) -> None:
    app = open_page(planted.cache)
    row = rows(planted, "profiles", stage=1, slicing="heads", head=1)[0]
    assert (row["role"], row["roles"]) == (None, [])
    assert "Head 1 has no clear role" in said(app)
    assert row["because"].removeprefix("no rule holds: ") in said(app)
    probe = rows(planted, "probe", stage=1, slicing="heads", split="document", head=1)[0]
    match = rows(planted, "topic_match", stage=1, slicing="heads", head=1, within=1)[0]
    values = {
        "Mean similarity": row["mean"],
        "Selectivity": row["selectivity"],
        "Alignment": row["alignment"],
        "Sparsity": row["sparsity"],
        "Topic match, top 1": match["rate"],
        "By examples, top 1": rows(planted, "example_match", stage=1, head=1)[0]["rate"],
        "Probe recall": probe["value"],
        "Activation": row["activation"],
        "Variation of activation": row["activation_variation"],
    }
    shares = ("Topic match, top 1", "By examples, top 1", "Probe recall")
    assert metrics(app) == {
        name: f"{100 * value:.1f}\u00a0%" if name in shares else f"{value:.2f}".replace("-", "−")
        for name, value in values.items()
    }
    null = {found["measure"]: found for found in rows(planted, "null_summary", stage=1)}
    verdict = {found["measure"]: found["verdict"] for found in rows(planted, "null", stage=1, head=1)}
    heads = [row for row in rows(planted, "profiles", stage=1, slicing="heads") if row["head"]]
    strengths = [other["activation"] for other in heads]
    for baseline in (
        f"all heads {min(strengths):.2f} to {max(strengths):.2f}",
        *(
            f"random slices {null[name]['slices_low']:.2f} to {null[name]['slices_high']:.2f}: {verdict[name]}"
            for name in ("selectivity", "alignment", "mean")
        ),
        *(
            f"random slices {100 * null[name]['slices_low']:.1f}\u00a0% to "
            f"{100 * null[name]['slices_high']:.1f}\u00a0%: {verdict[name]}"
            for name in ("names", "examples")
        ),
        "normal distribution 0.14",
        "chance 25.0\u00a0%",  # of four heads
        f"chance {100 * match['chance']:.1f}\u00a0%, full",
    ):
        assert baseline.replace("-", "−") in said(app)
    assert f"{row['mean_low']:.2f} to {row['mean_high']:.2f}".replace("-", "−") in said(app)


def test_the_head_is_a_dot_on_the_band_of_random_slices(open_page: Callable[..., AppTest], planted: Run) -> None:
    app = open_page(planted.cache, head=str(FOLLOWER), stage="2")
    assert f"Head {FOLLOWER} lies **above random slices** in" in said(app)
    band = next(found for found in charts(app) if found["data"][0].get("name") == "all random slices")
    dots = [
        (stage_and_head[0], trace["marker"]["size"][at])
        for trace in band["data"]
        for at, stage_and_head in enumerate(trace.get("customdata", []))
    ]
    assert sorted(head for head, _ in dots) == sorted([1, 2, 3, 4] * 3)  # every head at every stage
    assert {head for head, size in dots if size == 13} == {FOLLOWER}


def test_the_planted_head_its_rule_its_topic_and_its_documents(open_page: Callable[..., AppTest], planted: Run) -> None:
    app = open_page(planted.cache, head=str(FOLLOWER), stage="2")
    row = rows(planted, "profiles", stage=2, slicing="heads", head=FOLLOWER)[0]
    assert row["role"] == "selective"
    assert f"Head {FOLLOWER} is selective" in said(app)
    assert RULES["selective"].sentence in said(app)
    for role in row["roles"][1:]:
        assert f"Also {role}" in said(app)
    assert row["because"].split("; ")[0] in said(app)
    drawn = {trace["name"]: [point[0] for point in trace["customdata"]] for trace in chart(app)["data"]}
    assert drawn["follows"] == [FOLLOWED]
    assert sorted(name for names in drawn.values() for name in names) == sorted(TOPICS)
    assert next(note["text"] for note in chart(app)["layout"]["annotations"]) == FOLLOWED
    own = own_of(planted, 2)[:, FOLLOWER]
    most, least = card_titles(app)
    assert most == [f"Document {doc}." for doc in np.argsort(-own, kind="stable")[:5]]
    assert set(least) == {f"Document {doc}." for doc in np.argsort(own, kind="stable")[:5]}
    assert "not guaranteed to correspond to heads" in said(app)


def test_heads_alike_and_siblings_are_links_within_run_and_stage(
    open_page: Callable[..., AppTest], planted: Run, tmp_path: Path
) -> None:
    for name in ("another", "planted"):
        shutil.copytree(planted.folder, tmp_path / name)
    app = open_page(tmp_path, run="planted", head="3", stage="2")
    pairs = [row for row in rows(planted, "redundancy", stage=2, head=3) if row["other"] != 3]
    nearest = [row["other"] for row in sorted(pairs, key=lambda row: -row["cka"])]
    assert heads_linked(app) == [*nearest, 4]  # heads 3 and 4 share the second of two key/value heads
    assert all(query["run"] == ["planted"] and query["stage"] == ["2"] for query in links(app))
    assert "The other heads of key/value group 2 of 2." in said(app)
    first = next(row for row in pairs if row["other"] == nearest[0])
    wanted = f"CKA {first['cka']:.2f} ({first['low']:.2f} to {first['high']:.2f})".replace("-", "−")
    assert wanted in said(app)


def test_previous_and_next_change_the_head_and_the_address(open_page: Callable[..., AppTest], planted: Run) -> None:
    app = open_page(planted.cache)
    app.button(key="next head").click().run()
    assert (app.selectbox(key="head").value, dict(app.query_params)) == (2, {"head": "2"})
    assert "Head 2 " in said(app)
    app.button(key="previous head").click().run()
    app.button(key="previous head").click().run()  # before the first comes the last
    assert (app.selectbox(key="head").value, dict(app.query_params)) == (4, {"head": "4"})
    app.button(key="next head").click().run()
    assert (app.selectbox(key="head").value, dict(app.query_params)) == (1, {"head": "1"})
    keys = next(found.proto for found in app.get("bidi_component") if "step_keys" in found.proto.component_name)
    assert json.loads(keys.json) == {"name": "head keys", "number": 1, "count": 4, "press": 0}
    assert not app.exception
    assert not app.toast


def test_each_stage_has_its_column(open_page: Callable[..., AppTest], planted: Run) -> None:
    app = open_page(planted.cache, head="3", stage="2")
    table = next(element.proto.body for element in app.get("html") if "<table" in element.proto.body)
    assert re.findall(r'<th scope="col"( class="hs-now")?>(\d \w+)</th>', table) == [
        ("", "1 attention"),
        (' class="hs-now"', "2 projected"),
        ("", "3 output"),
    ]
    line = table.split('<th scope="row">Mean similarity</th>')[1].split("</tr>")[0]
    means = [rows(planted, "profiles", stage=stage, slicing="heads", head=3)[0]["mean"] for stage in (1, 2, 3)]
    assert re.findall(r">([−\d.]+)<small>", line) == [f"{mean:.2f}".replace("-", "−") for mean in means]


def test_the_gallery_has_every_head_once_under_its_role(open_page: Callable[..., AppTest], planted: Run) -> None:
    app = open_page(planted.cache, view="gallery", stage="3")
    found = {row["head"]: row["role"] for row in rows(planted, "profiles", stage=3, slicing="heads") if row["head"]}
    ordered = [head for role in [*RULES, None] for head in sorted(found) if found[head] == role]
    assert heads_linked(app) == ordered
    assert ordered[0] == FOLLOWER
    counts = {role: list(found.values()).count(role) for role in found.values()}
    assert f"Selective · {counts['selective']}" in said(app)
    assert f"No clear role · {counts[None]}" in said(app)
    pictures = [element.proto.body for element in app.get("html") if 'role="img"' in element.proto.body]
    assert len(pictures) == 4
    assert f"most {FOLLOWED}," in pictures[0]
    assert [body.count("left: 10%") for body in pictures] == [6] * 4  # a bar a topic
    assert dict(app.query_params) == {"stage": "3", "view": "gallery"}
    beyond = {
        head: [row["measure"] for row in rows(planted, "null", stage=3, head=head) if row["verdict"] == "above"]
        for head in found
    }
    assert beyond[FOLLOWER]
    expected = sorted(len(measures) for measures in beyond.values() if measures)
    assert sorted(int(count) for count in re.findall(r"above random slices in (\d) measure", said(app))) == expected


def test_a_link_of_the_gallery_leads_to_the_head(open_page: Callable[..., AppTest], planted: Run) -> None:
    app = open_page(planted.cache, view="gallery", stage="3")
    query = links(app)[0]
    for name in list(app.query_params):  # as the browser does on a click
        del app.query_params[name]
    for name, values in query.items():
        app.query_params[name] = values[0]
    app.run()
    assert app.segmented_control(key="view").value == "head"
    assert f"Head {FOLLOWER} is selective" in said(app)
    assert dict(app.query_params) == {"stage": "3", "head": str(FOLLOWER)}
    assert not app.toast


def test_without_labels_there_is_what_needs_none(open_page: Callable[..., AppTest], bare: Run) -> None:
    app = open_page(bare.cache, head="2")
    assert "needs documents with a topic" in said(app)
    assert list(metrics(app)) == ["Probe recall", "Activation", "Variation of activation"]
    row = rows(bare, "profiles", stage=1, slicing="heads", head=2)[0]
    assert metrics(app)["Activation"] == f"{row['activation']:.2f}"
    assert not figures_of(app)
    assert not card_titles(app)
    assert "no clear role" not in said(app)
    assert sorted(heads_linked(app)) == [1, 1, 3, 4]
    app = open_page(bare.cache, view="gallery")
    assert heads_linked(app) == [1, 2, 3, 4]
    assert "activation" in said(app)


def test_an_empty_cache_explains_itself(open_page: Callable[..., AppTest], tmp_path: Path) -> None:
    app = open_page(tmp_path / "nothing")
    assert "There are no runs yet" in said(app)
    assert not app.metric


def test_runs_that_are_interrupted_damaged_or_not_analysed(
    open_page: Callable[..., AppTest], planted: Run, tmp_path: Path
) -> None:
    for name, step, state in (("halfway", "embed", "running"), ("raw", "analyse", "running")):
        shutil.copytree(planted.folder, tmp_path / name)
        manifest = json.loads((tmp_path / name / "manifest.json").read_text())
        manifest["steps"][step]["state"] = state
        (tmp_path / name / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "manifest.json").write_text("{")
    assert "was interrupted" in said(open_page(tmp_path, run="halfway"))
    app = open_page(tmp_path, run="raw")
    assert "has vectors, but no figures yet" in said(app)
    assert "python -m precompute analyse raw" in [code.value for code in app.code]
    assert "is damaged. Rebuild" in said(open_page(tmp_path, run="torn"))


@pytest.mark.parametrize("file", ["similarity/stage=1.parquet", "analysis/profiles.parquet", "topics.parquet"])
def test_a_missing_file_is_told_in_a_sentence(
    open_page: Callable[..., AppTest], planted: Run, tmp_path: Path, file: str
) -> None:
    shutil.copytree(planted.folder, tmp_path / "planted")
    (tmp_path / "planted" / file).unlink()
    assert "Rebuild it with" in said(open_page(tmp_path))


def test_hostile_titles_and_topics_are_shown_and_not_obeyed(open_page: Callable[..., AppTest], tmp_path: Path) -> None:
    run = write_planted(tmp_path, "nasty", topics=tuple(f"{number} {NASTY}" for number in range(6)))
    table = run.documents()
    for name in ("title", "text"):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), pa.array([f"{doc} {NASTY}" for doc in range(120)]))
    write_table(run.documents_path, table, EMBEDDED)
    for address in ({"head": str(FOLLOWER)}, {"view": "gallery"}):
        app = open_page(tmp_path, **address)
        html = "\n".join(element.proto.body for element in app.get("html"))
        assert "<img" not in html
        assert "&lt;img src=x" in html
        spoken = "\n".join(str(element.value) for kind in ("markdown", "caption") for element in app.get(kind))
        assert r"\<img src\=x" in spoken  # the evidence names the topic
        assert not re.search(r"(?<!\\)(<img|\*\*bold|\]\(javascript|\$x)", spoken)
    drawn = json.dumps(chart(open_page(tmp_path, head=str(FOLLOWER))))
    assert "&lt;img" in drawn
    assert "<img" not in drawn


def test_two_runs_side_by_side(open_page: Callable[..., AppTest], planted: Run, bare: Run, tmp_path: Path) -> None:
    shutil.copytree(planted.folder, tmp_path / "planted")
    shutil.copytree(bare.folder, tmp_path / "bare")
    app = open_page(tmp_path, run="planted", head="3", beside="bare", beside_head="2")
    table = [element.proto.body for element in app.get("html") if "<table" in element.proto.body][-1]
    assert re.findall(r'<th scope="col"[^>]*>(\w+, head \d)</th>', table) == ["planted, head 3", "bare, head 2"]
    line = table.split('<th scope="row">Activation</th>')[1].split("</tr>")[0]
    wanted = [
        rows(run, "profiles", stage=1, slicing="heads", head=head)[0]["activation"]
        for run, head in ((planted, 3), (bare, 2))
    ]
    assert re.findall(r">([\d.]+)<", line) == [f"{value:.2f}" for value in wanted]
    assert all(query["beside"] == ["bare"] and query["beside_head"] == ["2"] for query in links(app))
    app.selectbox(key="beside_head").select(4).run()
    assert all(query["beside_head"] == ["4"] for query in links(app))
    app.selectbox(key="beside").select("").run()
    assert not any("beside" in name for query in links(app) for name in query)
    assert dict(app.query_params) == {"run": "planted", "head": "3"}
    assert len([element for element in app.get("html") if "<table" in element.proto.body]) == 1
