"""What the page Your document is made of, without a page: sentences, shaded words, documents, cells of a CSV file."""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass, replace
from html import unescape

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pytest

from core.analysis.document_profile import Profile, Ranks, Reliability, consensus
from core.model.attention import Attended, Piece
from core.model.chunks import Chunk, Reach
from core.model.head_words import HeadWords
from core.model.ledger import Explanation, Term
from core.uploads import MAX_CHARACTERS
from pages.shared.cards import Card
from pages.shared.data import RunState
from pages.shared.embedding import EmbeddedText, WhyText
from pages.shared.figures.words import resting, runs, strongest_words, words_html
from pages.shared.heads_in_address import heads_named
from pages.shared.show import defused
from pages.shared.why_similar import WhySimilar
from pages.shared.without_head import WithoutHead
from pages.use.your_document.documents import MOST, PASTED, OwnDocuments
from pages.use.your_document.export import as_json, file_name, whole_table
from pages.use.your_document.figures import MOST_TOPICS, activation_figure, profile_figure, shown_topics
from pages.use.your_document.input import EXAMPLE
from pages.use.your_document.report import PageExperiments, report_html
from pages.use.your_document.state import DocumentView, consensus_sentences, standing
from tests.support.synthetic import FOOTBALL_REPORT, misnamed_run

TOPICS = ("rivers", "engines", "poems")


def a_profile(percentiles: list[list[float]]) -> Profile:
    values = np.array(percentiles)
    return Profile(values / 100, values, np.ones(len(values)), np.full(len(values), 50.0))


def test_the_sentences_tell_consensus_and_dissent() -> None:
    # heads 1, 2 and 4 vote for poems as the full embedding does, head 3 for rivers
    found = a_profile([[20, 50, 93], [10, 20, 80], [30, 20, 90], [99, 20, 10], [10, 5, 60]])
    assert consensus_sentences(found, consensus(found), TOPICS) == [
        "The full embedding puts it with “poems”, nearer than 93 % of the corpus; then come “engines” and “rivers”.",
        "3 of 4 heads vote for it.",
        "Elsewhere: head 3 for “rivers”.",
    ]


def test_the_sentences_of_agreement_and_of_a_document_about_nothing() -> None:
    agreed = a_profile([[99.9, 40, 30]] * 3)
    assert consensus_sentences(agreed, consensus(agreed), TOPICS) == [
        "The full embedding puts it with “rivers”, nearer than all of the corpus; then come “engines” and “poems”.",
        "All 2 heads vote for the same topic.",
    ]
    alone = a_profile([[60, 50, 40], [1, 90, 2], [1, 2, 90]])
    first, second, third = consensus_sentences(alone, consensus(alone), TOPICS)
    assert first.startswith(
        "The full embedding finds no topic that stands out; the nearest is “rivers”, nearer than 60 %"
    )
    assert second == "None of the 2 heads votes for it: it is what they add up to, but no single head votes for it."
    assert third == "Elsewhere: head 1 for “engines”; head 2 for “poems”."


def weighted(percentiles: list[list[float]], rates: list[float], chance: float = 1 / 3) -> list[str]:
    found, reliability = a_profile(percentiles), Reliability(np.array(rates), chance)
    return consensus_sentences(found, consensus(found, "cosine", reliability), TOPICS, reliability)[1:]


def test_the_sentences_weigh_heads_and_name_no_unreliable_ones() -> None:
    # Weights above a third: head 1 (0.6 - 1/3) / (2/3) = 0.4, head 2 0.1, heads 3 and 4 none. Poems 80 %, rivers 20 %.
    percentiles: list[list[float]] = [[20, 50, 93], [10, 20, 80], [90, 20, 10], [99, 20, 10], [98, 5, 60]]
    assert weighted(percentiles, [0.7, 0.6, 0.4, 1 / 3, 0.1]) == [
        "The heads mostly agree: weighted by how often each is right on the corpus, 80 % of the votes are for it, 20 % "
        "for “rivers”.",
        "The most reliable head, 1 (right for 60 of 100 documents; the full embedding for 70), agrees with the full "
        "embedding.",
        "Heads 3–4 are no better than chance and have no vote.",
    ]


def test_the_sentences_of_heads_that_disagree() -> None:
    # The full embedding says poems. Equal weights: rivers and engines one head each of three, then of two.
    rates = [0.7, 0.6, 0.6, 0.6]
    split = weighted([[20, 50, 93], [90, 20, 10], [10, 90, 20], [10, 20, 90]], rates)
    assert split[0] == (
        "The heads do not agree with each other: weighted by how often each is right on the corpus, 33 % of the votes "
        "are for “rivers”, 33 % for “engines”, 33 % for the full embedding's choice."
    )
    against = weighted([[20, 50, 93], [90, 20, 10], [90, 20, 10], [90, 20, 10]], rates)
    assert against[0] == (
        "The heads mostly disagree: weighted by how often each is right on the corpus, 100 % of the votes are for "
        "“rivers”, 0 % for the full embedding's choice."
    )
    assert against[1].endswith(", votes for “rivers”.")
    assert weighted([[20, 50, 93]] * 4, rates)[0] == "All 3 heads with a vote agree."
    assert weighted([[20, 50, 93]] * 4, [0.7, 0.1, 0.2, 1 / 3]) == [
        "No head is better than chance on this corpus, so their votes are not counted."
    ]


def test_unreliable_heads_fade_and_show_their_reliability() -> None:
    reliability = Reliability(np.array([0.7, 0.6, 0.35, 0.1]), 0.1)
    values, votes = np.zeros((4, 3)), np.array([0, 1, 2])
    drawn = profile_figure(values, TOPICS, votes, 1, "cosine", "light", reliability)
    cells, veil, dots = drawn.data
    # Weights 5/9, 2.5/9 and 0: the best head and the full embedding are clear, head 2 half, head 3 has no vote.
    assert np.array(veil.z)[0] == pytest.approx([0, 0, 0.375, 0.75])
    assert list(dots.x) == [1, 2]
    assert list(drawn.layout.xaxis.ticktext) == ["full<br>70", "1<br>60", "2<br>35", "3<br>10"]
    assert cells.customdata[0][1][0] == "head 1, right for 60 of 100 documents"
    plain = profile_figure(values, TOPICS, votes, 1, "cosine", "light")
    assert len(plain.data) == 2
    assert list(plain.data[1].x) == [1, 2, 3]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> DocumentView:
    """A football report in a run whose topics' names mislead."""
    run = misnamed_run(tmp_path_factory.mktemp("misnamed"))
    text = EmbeddedText(
        (Chunk(0, 5, "Goal!", 20),), dict.fromkeys((1, 2, 3), FOOTBALL_REPORT[None]), Reach(20, 20, None)
    )
    return DocumentView(RunState(run, run.manifest()), "report", text, 0, 1, 1, reference="examples")


def test_a_football_report_is_about_football_where_names_say_politics(report: DocumentView) -> None:
    by_examples = " ".join(consensus_sentences(report.profile, report.consensus, report.topics, report.reliability))
    assert "puts it with “football”" in by_examples
    assert "The most reliable head, 1 (right for 100 of 100 documents; the full embedding for 100)" in by_examples
    by_names = replace(report, reference="names")
    said = consensus_sentences(by_names.profile, by_names.consensus, by_names.topics, by_names.reliability)
    assert said[1:] == ["No head is better than chance on this corpus, so their votes are not counted."]


def test_what_is_taken_away_says_what_votes_weigh(report: DocumentView) -> None:
    found = json.loads(as_json(report))
    assert found["reference"] == "examples"
    assert [(vote["topic"], vote["weight"], vote["reliability"]) for vote in found["topic votes"][:3]] == [
        ("football", 1, 1)
    ] * 3
    table = whole_table(report)
    assert set(table["reference"].to_pylist()) == {"examples"}
    head_1 = table.filter(pc.equal(table["head"], 1))
    assert set(head_1["reliability"].to_pylist()) == set(head_1["weight"].to_pylist()) == {1}
    assert set(table.filter(pc.equal(table["head"], 0))["weight"].to_pylist()) == {None}
    page = report_html(report, None)
    assert "Compared with topics by examples" in page
    assert page.count("<td>right for 100 of 100 documents</td>") == 4, "the full embedding and three heads"
    votes = [row.count("outline:") for row in re.findall("<tr.*?</tr>", page.split("Topic profile")[1])][1:6]
    assert votes[:4] == [0, 1, 1, 1], "the full embedding has no vote of its own"
    by_names = report_html(replace(report, reference="names"), None)
    assert by_names.count("<td>right for 0 of 100 documents</td>") >= 3
    assert "Compared with topics by topic names" in by_names


def test_the_report_has_the_experiments_that_the_page_shows(report: DocumentView) -> None:
    """0.5 = 0.3 of head 1 + 0.25 of head 2 − 0.05 of the embeddings; two words of the texts, one of them the same."""
    bare = report_html(report, None)
    assert "Without this head" not in bare
    assert "Why are these two similar?" not in bare
    terms = (Term("embedding"), Term("head", 1, 1), Term("head", 1, 2))
    pieces = (Piece(0, 4, "Goal", False), Piece(4, 5, "!", False))
    words = HeadWords(
        (pieces, pieces),
        (np.array([0.1, 0.05]), np.array([0.2, -0.05])),
        (("Goal",), ("Goal",)),
        np.array([[0.2, 0.0], [0.0, -0.01]]),
    )
    own, other = WhyText("report", "Goal!"), WhyText("<b>other", "Goal!")
    found = Explanation(0.5, terms, np.array([-0.05, 0.3, 0.25]))
    similar = WhySimilar(own, other, found, None, False, terms[1], words)
    without = WithoutHead(
        "Without layer 1 head 2, the embedding turns by 9.0°.",
        "1 of the 2 nearest documents remain among the nearest.",
        {"With all heads": [Card("1. <i>first", ["football", "was 2"], "Text.", -0.25)], "Without layer 1 head 2": []},
        "Cosines of the model's own embedding (stage 3).",
    )
    page = report_html(report, None, seen=PageExperiments(without=without, similar=similar))
    assert "the embedding turns by 9.0°. 1 of the 2 nearest documents remain among the nearest." in page
    assert "<summary>−0.25 <b>1. &lt;i&gt;first</b>" in page
    assert "“report” and “&lt;b&gt;other”" in page
    bars = re.findall(r'<text[^>]*text-anchor="(?:start|end)">([+−.\d]+)</text>', page.split("taken apart")[1])
    assert bars[:4] == ["+0.300", "+0.250", "−0.050", "0.500"], "the waterfall"
    grid = re.search(r"<h3>Layers × heads</h3>.*?<tbody>(.*?)</tbody>", page)
    assert grid is not None
    assert re.sub("<[^>]+>", " ", grid[1]).split() == ["layer", "1", ".300", ".250", ".550"]
    assert "It adds 0.300 to the cosine: 0.150 by what it read in the first text, 0.150 by" in page
    assert 'class="hs-less"' in page
    assert "<script" not in page
    assert "<b>other" not in page


def test_a_document_that_is_near_to_everything_is_told_to_be() -> None:
    for percentiles, side in (([99, 90, 88], "nearer to"), ([90, 3, 2], "farther from")):
        found = a_profile([percentiles] * 3)
        assert consensus_sentences(found, consensus(found), TOPICS)[1] == (
            f"But it is {side} nearly every topic than most of the corpus is, so this says little."
        )


def test_heads_and_standings_in_words() -> None:
    assert [heads_named([3]), heads_named([1, 2, 3, 7])] == ["head 3", "heads 1–3, 7"]
    assert [standing(0.2), standing(50), standing(99.4), standing(99.7)] == [
        "farther than all of the corpus",
        "nearer than 50 % of the corpus",
        "nearer than 99 % of the corpus",
        "nearer than all of the corpus",
    ]


TEXT = "Ada <b>😀 wrote"
#       0   4  7 8
ATTENDED = Attended(
    (
        Piece(None, None, "[CLS]", True),
        Piece(0, 3, "Ada", False),
        Piece(4, 7, "<b>", False),
        Piece(7, 8, "😀", False),
        Piece(7, 8, "😀", False),  # an emoji of two tokens
        Piece(9, 11, "wr", False),
        Piece(None, None, "[SEP]", True),
    ),
    np.array([[0.5, 0.1, 0.05, 0.02, 0.03, 0.2, 0.1], [0.0, 0.9, 0.02, 0.02, 0.02, 0.02, 0.02]]),
    9,
)


def test_the_text_in_runs_with_what_lies_between() -> None:
    found = runs(TEXT, ATTENDED, 1)
    assert [run.text for run in found] == ["[CLS]", "Ada", " ", "<b>", "😀", " ", "wr", "[SEP]"]
    shares = [run.share for run in found]
    assert shares[2] is None
    assert shares[5] is None
    assert [share for share in shares if share is not None] == pytest.approx([0.5, 0.1, 0.05, 0.05, 0.2, 0.1])
    assert resting(ATTENDED, 1) == pytest.approx(0.6)
    assert strongest_words(TEXT, ATTENDED, 1) == ["wr", "Ada", "<b>"]


def test_shaded_words_are_escaped_and_end_where_the_model_stopped() -> None:
    page = words_html(TEXT, ATTENDED, 1)
    body = page.split('<div class="hs-words" dir="auto">')[1]
    assert "<b>😀" not in body
    assert "&lt;b&gt;" in body
    assert '<b style="--s:100" title="20.0\u00a0%">wr</b>' in body  # the strongest of the text's own
    assert '<b style="--s:50" title="10.0\u00a0%">Ada</b>' in body
    assert '<small style="--s:100" title="50.0\u00a0%">[CLS]</small>' in body
    assert body.endswith("<i>ote</i></div>")
    shown = unescape(re.sub("<small.*?</small>|<[^>]*>", "", body))
    assert shown == TEXT  # nothing of the text is lost, and nothing added
    assert "20.0\u00a0% of the head's attention" in page


def test_a_token_to_rest_on_does_not_leave_the_others_pale() -> None:
    page = words_html(TEXT, ATTENDED, 2)  # "Ada" has 90 %; the emoji, of two tokens, comes next with 4 %
    assert "≥ 4.0\u00a0% of the head's" in page
    assert '<b style="--s:100" title="90.0\u00a0%">Ada</b>' in page
    assert '<b style="--s:50" title="2.0\u00a0%">wr</b>' in page


def test_tokens_without_characters_are_shown_by_their_names() -> None:
    found = Attended((Piece(None, None, "ab", False), Piece(None, None, "<i>", False)), np.array([[0.4, 0.6]]), 2)
    body = words_html("whatever", found, 1)
    assert '<b style="--s:67" title="40.0\u00a0%">ab</b> <b style="--s:100" title="60.0\u00a0%">&lt;i&gt;</b>' in body


@dataclass
class File:
    name: str
    data: bytes

    def getvalue(self) -> bytes:
        return self.data


@pytest.mark.slow
def test_uploads_are_taken_and_what_cannot_be_read_is_told() -> None:
    kept = OwnDocuments()
    first = kept.take(
        [File("a.txt", b"One."), File("b.txt", b"\x00\x01\x02"), File("c.exe", b"x"), File("a.txt", b"Two.")]
    )
    assert first is not None
    assert kept.found[first].text == "One."
    assert list(kept.names().values()) == ["Pasted text", "a.txt", "a.txt (2)"]
    assert len(kept.problems) == 2
    assert kept.problems[0].startswith("b.txt is not a text file")
    assert kept.problems[1].startswith("c.exe cannot be read here")
    kept.remove(first)
    assert list(kept.names().values()) == ["Pasted text", "a.txt"]
    assert kept.problems == []


@pytest.mark.slow
def test_who_is_interrupted_while_files_are_read_may_give_them_again() -> None:
    kept = OwnDocuments()
    files = [File("a.txt", b"One."), File("b.json", b"[" + b'"x",' * 4_900_000 + b'"x"]')]

    def watch(before: int) -> None:
        if len(kept.found) > 1:  # the second, which takes a second or two, is being read
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kept.take(files, watch=watch)
    assert kept.uploads == 0  # the uploader keeps its files
    first = kept.take([files[0], File("b.txt", b"Two.")])
    assert first is not None
    assert kept.found[first].text == "One."
    assert list(kept.names().values()) == ["Pasted text", "a.txt", "b.txt"]


@pytest.mark.slow
def test_a_session_keeps_no_more_documents_than_its_limit() -> None:
    kept = OwnDocuments()
    kept.take([File(f"{number}.txt", b"Text.") for number in range(MOST + 3)])
    assert len(kept.found) == MOST
    assert kept.problems == [f"Only {MOST - 1} documents are kept at a time. Remove some, and add the rest."]


def test_asking_cleans_the_text_and_refuses_nothing() -> None:
    kept = OwnDocuments()
    assert not kept.ask(PASTED, " \n ")
    assert kept.problems == ["There is no text yet. Paste some, or upload a file."]
    assert kept.ask(PASTED, "One\r\ntwo\x07\ud800")
    assert kept.problems == []
    assert kept.found[PASTED].asked == "One\ntwo\ufffd"
    assert kept.ask(PASTED, "x" * (MAX_CHARACTERS + 5))
    assert len(kept.found[PASTED].asked or "") == MAX_CHARACTERS
    assert kept.found[PASTED].notes == (
        f"Only the first {MAX_CHARACTERS:,} of {MAX_CHARACTERS + 5:,} characters were kept.",
    )


def test_the_example_has_the_length_that_is_promised() -> None:
    assert 140 <= len(EXAMPLE.split()) <= 180


@pytest.mark.slow
def test_the_pasted_text_can_always_be_come_back_to() -> None:
    kept = OwnDocuments()
    kept.take([File("a.txt", b"One.")])
    kept.remove(PASTED)
    assert next(iter(kept.found)) == PASTED
    assert kept.found[PASTED].text == ""


def test_cells_that_begin_as_formulas_do_are_defused_and_numbers_are_not() -> None:
    table = pa.table({"topic": ["=1+1", "+x", "-y", "@z", "plain", "a=b", None], "cosine": [-0.5, 1.0, 2, 3, 4, 5, 6]})
    stream = io.BytesIO()
    pacsv.write_csv(defused(table), stream)
    stream.seek(0)
    read = pacsv.read_csv(stream, convert_options=pacsv.ConvertOptions(strings_can_be_null=True))
    assert read["topic"].to_pylist() == ["'=1+1", "'+x", "'-y", "'@z", "plain", "a=b", None]
    assert read["cosine"].to_pylist() == [-0.5, 1, 2, 3, 4, 5, 6]
    assert defused(pa.table({"=cmd": [1], "": [2]})).column_names == ["'=cmd", ""]


def test_a_name_becomes_a_file_s_name() -> None:
    assert file_name("../My report (2).pdf") == "headscope-my-report-2-pdf"
    assert file_name("…") == "headscope-document"
    assert len(file_name("x" * 500)) <= 80


def test_topics_that_heads_vote_for_are_drawn_however_far_down() -> None:
    order = np.arange(100)
    assert shown_topics(order[:5], np.array([4])).tolist() == [0, 1, 2, 3, 4]
    found = shown_topics(order, np.array([98, 3, 60]))
    assert len(found) == MOST_TOPICS
    assert found.tolist() == [*range(MOST_TOPICS - 2), 60, 98]


def test_the_corpus_s_middle_half_is_drawn_from_its_quartiles() -> None:
    corpus = Ranks.of([np.arange(101, dtype=np.float32)[:, None] * np.array([1.0, 2.0])])
    drawn = activation_figure(np.array([50.0, 200.0]), corpus, 1, "light")
    wide, half, document = drawn.data
    assert np.nan_to_num(np.array(wide.x), nan=-1).tolist() == [5, 95, -1, 10, 190, -1]
    assert np.nan_to_num(np.array(half.x), nan=-1).tolist() == [25, 75, -1, 50, 150, -1]
    assert list(document.x) == [50, 200]
    assert list(document.customdata) == pytest.approx([50, 99.5], abs=0.02)
