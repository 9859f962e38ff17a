"""Your document in a real browser, with the real model, figures and maps, by a person's gestures."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import docx
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Locator, Page, expect
from pypdf import PdfWriter

from core.runs.results import read_topics
from core.runs.run import Run
from tests.support.browser import choose, fits, narrow, settle
from tests.support.servers import SLOW

SENTENCE = "The council voted to close the harbour road to lorries after a petition of four hundred residents"
LAST = "Export"
EVIL = "<script>window.ran = 1</script><img src=x onerror='window.ran = 1'>"


@pytest.fixture(scope="module")
def address(served: Callable[[Path], str], retrieved_cache: Path) -> str:
    return served(retrieved_cache)


@pytest.fixture
def opened(page: Page, address: str) -> Callable[..., Page]:
    def open_(query: str = "") -> Page:
        page.goto(f"{address}/your_document{query}")
        expect(page.get_by_role("button", name="Embed")).to_be_visible(timeout=SLOW)
        settle(page)
        return page

    return open_


def through(page: Page) -> None:
    """Waits until the document has gone through the model and all of the page is there."""
    expect(page.get_by_role("heading", name=LAST)).to_be_visible(timeout=2 * SLOW)
    settle(page)
    expect(words(page)).to_be_visible(timeout=SLOW)
    assert not page.get_by_test_id("stException").count()


def open_form(page: Page) -> None:
    """It folds to one line when there is an answer."""
    if not page.get_by_role("textbox").first.is_visible():
        page.get_by_text("Change the text or add documents").click()
        expect(page.get_by_role("textbox").first).to_be_visible()


def paste(page: Page, text: str) -> None:
    open_form(page)
    box = page.get_by_role("textbox").first
    box.fill(text)
    box.press("Control+Enter")


def upload(page: Page, folder: Path, *files: tuple[str, bytes]) -> None:
    """From a folder, as people do; bytes would go to the browser through the driver, which 50 MB keep busy for long."""
    for name, data in files:
        (folder / name).write_bytes(data)
    page.locator("input[type=file]").set_input_files([folder / name for name, _ in files])


def words(page: Page) -> Locator:
    return page.locator(".hs-words")


def test_paste_profile_stage_head_words_and_downloads(
    opened: Callable[..., Page], analysed_cache: Path, tmp_path: Path
) -> None:
    page = opened()
    run = Run(analysed_cache, "demo")
    document = run.documents(["title", "text"]).slice(40, 1).to_pylist()[0]
    paste(page, document["text"])
    through(page)
    # A document of the corpus is its own nearest neighbour: in the full embedding, the head, and by votes.
    for column in range(3):
        first = page.locator(".hs-cards").nth(column).locator(".hs-title").first
        expect(first).to_have_text(re.compile(r"\w"))
        assert first.inner_text().split(" …")[0] in document["title"]
    expect(page.get_by_role("heading", name="Topic profile")).to_be_visible()
    expect(page.locator(".hs-figures")).to_be_visible()
    page.get_by_test_id("stButtonGroup").get_by_role("radio", name="3 output").click()
    expect(page).to_have_url(re.compile("stage=3"), timeout=SLOW)
    settle(page)
    page.get_by_test_id("stButtonGroup").get_by_role("radio", name="7", exact=True).click()
    expect(page.get_by_role("heading", name="Where head 7 looks")).to_be_visible(timeout=SLOW)
    expect(page).to_have_url(re.compile("head=7"))
    through(page)
    expect(words(page)).to_contain_text("[CLS]")
    expect(words(page).locator("b").nth(50)).to_be_attached()
    assert not page.locator(".hs-words i").count() or "first 256 of" in page.inner_text("body")

    found = {}
    for label, name in (("Parquet", "p"), ("CSV", "c"), ("JSON", "j"), ("HTML report", "h")):
        with page.expect_download() as waiting:
            page.get_by_role("button", name=label, exact=True).last.click()
        found[label] = tmp_path / name
        waiting.value.save_as(found[label])
        assert waiting.value.suggested_filename.startswith("headscope-pasted-text.")
    table, topics = pq.read_table(found["Parquet"]), read_topics(run).names
    assert len(table) == 3 * 13 * len(topics)
    assert set(table["stage"].to_pylist()) == {1, 2, 3}
    assert all(0 <= value <= 100 for value in table["percentile"].to_pylist())
    assert sum(table["vote"].to_pylist()) == 3 * 12  # every head votes once at every stage
    same = pacsv.read_csv(found["CSV"])
    assert same["topic"].to_pylist() == table["topic"].to_pylist()
    told = json.loads(found["JSON"].read_text(encoding="utf-8"))
    assert (told["stage"], told["run"], len(told["neighbours"])) == (3, "demo", 13)
    assert {each["documents"][0]["id"] for each in told["neighbours"]} == {run.documents(["id"])["id"][40].as_py()}
    report = found["HTML report"].read_text(encoding="utf-8")
    assert "Where head 7 looks" in report
    assert "<h2>Without this head</h2>" in report
    assert "<h2>Why are these two similar?</h2>" not in report, "nobody has asked"
    assert not re.search(
        r"<script|<a |href|src=|url\(|https?://", re.sub(r"<details>.*?</details>|&lt;.*?&gt;", "", report)
    )
    _opens_offline(page, found["HTML report"])


def _opens_offline(page: Page, report: Path) -> None:
    """In a page of its own without a network, with every script and request noticed."""
    asked: list[str] = []
    context = page.context.browser.new_context(offline=True)  # type: ignore[union-attr]
    shown = context.new_page()
    shown.on("request", lambda request: asked.append(request.url))
    shown.set_content(report.read_text(encoding="utf-8"))
    expect(shown.get_by_role("heading", name="Topic profile, percentiles among the corpus")).to_be_visible()
    expect(shown.locator("td").nth(100)).to_be_attached()
    for name in ("One small map per stage", "Activation of each head"):  # as on the page
        expect(shown.get_by_role("img", name=name)).to_be_visible()
    assert asked == []
    context.close()


def _docx(text: str) -> bytes:
    document, stream = docx.Document(), io.BytesIO()
    document.add_paragraph(text)
    document.save(stream)
    return stream.getvalue()


def _pdf(text: str | None, password: str | None = None) -> bytes:
    """A page with one line of text, by hand; or a blank one, or one that needs a password, by pypdf."""
    stream = io.BytesIO()
    if text is None or password is not None:
        writer = PdfWriter()
        writer.add_blank_page(200, 200)
        if password is not None:
            writer.encrypt(password, algorithm="RC4-128")
        writer.write(stream)
        return stream.getvalue()
    content = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 200] /Contents 4 0 R "
        b"/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
    ]
    found, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(found))
        found += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return found + b"xref\n0 5\n0000000000 65535 f \n%strailer\n<< /Size 5 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (
        table,
        len(found),
    )


def _bomb() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"0" * 60_000_000)
    return stream.getvalue()


GOOD: dict[str, Callable[[str], bytes]] = {
    "a.txt": str.encode,
    "a.md": lambda text: f"# News\n\n{text}".encode(),
    "a.html": lambda text: f"<html><body><p>{text}</p><script>window.ran = 1</script></body></html>".encode(),
    "a.pdf": lambda text: _pdf(text),
    "a.docx": lambda text: _docx(text),
    "a.json": lambda text: json.dumps({"title": "News", "text": text}).encode(),
}


def test_every_type_is_uploaded_shown_edited_and_embedded(opened: Callable[..., Page], tmp_path: Path) -> None:
    page = opened()
    upload(
        page,
        tmp_path,
        *((name, make(f"{SENTENCE} ({number} of six)")) for number, (name, make) in enumerate(GOOD.items())),
    )
    expect(page.get_by_role("combobox", name="Text to change")).to_be_visible(timeout=SLOW)
    for number, name in enumerate(GOOD):
        choose(page, "Text to change", name)
        text = page.get_by_role("textbox", name="What was read")
        expect(text).to_have_value(re.compile(rf"{SENTENCE} \({number} of six\)"), timeout=SLOW)
        assert "window.ran" not in text.input_value()
        settle(page)
    text.fill(f"{SENTENCE}, and the ferry stopped.")
    page.get_by_role("button", name="Embed all 6").click()
    through(page)
    expect(page.get_by_role("tab")).to_have_count(6)
    expect(words(page)).to_contain_text("and the ferry stopped.")
    assert page.evaluate("window.ran") is None

    choose(page, "The other document", "a.txt")
    expect(page.get_by_text("They are least alike in head")).to_be_visible(timeout=SLOW)
    settle(page)
    # Another page and back: the documents are still there.
    page.get_by_role("link", name="Topics").click()
    expect(page.get_by_role("heading", name="Topics", exact=True)).to_be_visible(timeout=SLOW)
    settle(page)
    page.get_by_role("link", name="Your document").click()
    through(page)
    expect(words(page)).to_contain_text("and the ferry stopped.")
    open_form(page)
    expect(page.get_by_role("textbox").first).to_have_value(re.compile("and the ferry stopped"))


def test_the_answer_begins_at_the_top_and_a_new_upload_does_not_hide_it(
    opened: Callable[..., Page], tmp_path: Path
) -> None:
    page = opened()
    paste(page, f"{SENTENCE}, and nothing else was said.")
    heading = page.get_by_role("heading", name="What it is about")
    expect(heading).to_be_in_viewport(ratio=1, timeout=2 * SLOW)
    expect(page.get_by_text("The full embedding puts it with")).to_be_in_viewport()
    expect(page.get_by_role("button", name="Embed")).not_to_be_visible()
    expect(page.get_by_role("tooltip")).to_have_count(0)
    through(page)
    expect(heading).to_be_in_viewport(ratio=1)

    open_form(page)
    upload(page, tmp_path, *((f"{name}.txt", f"{SENTENCE} by {name}.".encode()) for name in ("ann", "bob")))
    expect(page.get_by_role("textbox", name="What was read")).to_have_value(f"{SENTENCE} by ann.", timeout=SLOW)
    expect(heading).to_be_visible()
    expect(words(page)).to_contain_text("and nothing else was said")
    page.get_by_role("button", name="Embed all 2").click()
    expect(page.get_by_role("tab")).to_have_count(3, timeout=SLOW)
    expect(page.get_by_role("tab", name="ann.txt")).to_have_attribute("aria-selected", "true")
    answer_of(page, "by ann")
    expect(heading).to_be_in_viewport(ratio=1)
    through(page)
    page.get_by_role("tab", name="bob.txt").click()
    answer_of(page, "by bob")
    expect(heading).to_be_in_viewport(ratio=1)


def answer_of(page: Page, words_of_it: str) -> None:
    """Until another tab is drawn, the words of the one before are still there."""
    expect(words(page).filter(has_text=words_of_it)).to_be_visible(timeout=SLOW)
    expect(words(page)).to_have_count(1)


def test_without_a_head_the_neighbours_are_shown_before_and_after(opened: Callable[..., Page]) -> None:
    page = opened("?off_layer=6&off_head=11")
    paste(page, SENTENCE)
    expect(page.get_by_text(re.compile(r"^Without layer 6 head 11, the embedding turns by \d+\.\d°"))).to_be_visible(
        timeout=2 * SLOW
    )
    for side in ("with", "without"):
        expect(page.locator(f".st-key-neighbours-{side} .hs-title")).to_have_count(6)
    expect(page.get_by_text("the corpus documents are the stored ones, with the head on")).to_be_visible()


BAD: dict[str, tuple[Callable[[], bytes], str]] = {
    "scan.pdf": (lambda: _pdf(None), "scan.pdf is scanned; no text was found"),
    "locked.pdf": (lambda: _pdf(None, "secret"), "locked.pdf is encrypted and needs a password"),
    "bomb.docx": (_bomb, "bomb.docx unpacks to far more than a Word document should"),
    "program.txt": (lambda: b"\x7fELF\x02\x01\x01\x00\x00\x00" * 50, "program.txt is not a text file"),
    "nothing.txt": (lambda: b"", "nothing.txt is empty"),
}


def test_bad_files_get_a_sentence_each_and_the_page_stays_usable(opened: Callable[..., Page], tmp_path: Path) -> None:
    page = opened()
    upload(
        page, tmp_path, *((name, make()) for name, (make, _) in BAD.items()), ("half.json", b'{"text": "a \\ud800 b"}')
    )
    for _, sentence in BAD.values():
        expect(page.get_by_text(sentence)).to_be_visible(timeout=SLOW)
    # The one that is only half bad was read, and says what was replaced.
    expect(page.get_by_role("textbox", name="What was read")).to_have_value("a \ufffd b")
    expect(page.get_by_text("1 broken character was replaced")).to_be_visible()
    upload(page, tmp_path, ("large.txt", b"x" * 50_000_000))
    expect(page.get_by_text(re.compile("must be 20.*MB or smaller"))).to_be_visible(timeout=SLOW)
    page.get_by_role("button", name="Embed").click()
    through(page)
    expect(words(page)).to_contain_text("a \ufffd b")


def test_odd_texts_are_shown_as_text_and_never_run(opened: Callable[..., Page]) -> None:
    page = opened()
    page.get_by_role("button", name="Embed").click()
    expect(page.get_by_text("There is no text yet. Paste some, or upload a file.")).to_be_visible(timeout=SLOW)
    paste(page, "word")
    expect(page.get_by_text("Only 3 tokens: too short for a reliable profile.")).to_be_visible(timeout=2 * SLOW)
    through(page)
    odd = f"{EVIL} مرحبا بالعالم 你好，世界 👩‍🚀 {SENTENCE}"
    paste(page, odd)
    through(page)
    assert page.evaluate("window.ran") is None
    for part in ("<script>", "مرحبا بالعالم", "你好，世界", "👩‍🚀", SENTENCE):
        expect(words(page)).to_contain_text(part)
    expect(words(page)).to_have_attribute("dir", "auto")


def test_five_megabytes_are_taken_cut_and_said(opened: Callable[..., Page], tmp_path: Path) -> None:
    page = opened()
    upload(page, tmp_path, ("long.txt", f"{SENTENCE}. ".encode() * 52_000))
    expect(page.get_by_text(re.compile("Only the first 1,000,000 of 5,1.* characters were kept"))).to_be_visible(
        timeout=2 * SLOW
    )
    page.get_by_role("button", name="Embed").click()
    through(page)
    expect(page.get_by_text(re.compile("first 256 of 1.*,.* tokens"))).to_be_visible()


def test_a_long_document_is_read_in_chunks(opened: Callable[..., Page]) -> None:
    page = opened()
    paste(page, f"{SENTENCE}. " * 40 + "The surgeon washed her hands before the operation. " * 40)
    through(page)
    page.get_by_text("Read all of it, in chunks").click()
    expect(page.get_by_role("heading", name="Along the document")).to_be_visible(timeout=SLOW)
    through(page)
    choose(page, "Part of the document", None)
    expect(words(page)).to_contain_text("surgeon", timeout=SLOW)
    through(page)
    expect(words(page)).not_to_contain_text("council")


def test_another_person_s_page_does_not_freeze_or_show_anything(
    opened: Callable[..., Page], stranger: Page, address: str
) -> None:
    page = opened()
    paste(page, "A private letter about a lighthouse. " + SENTENCE)
    other = narrow(stranger)
    other.goto(f"{address}/topics")
    expect(other.get_by_role("heading", name="Topics", exact=True)).to_be_visible(timeout=SLOW)
    other.goto(f"{address}/your_document")
    expect(other.get_by_role("button", name="Try an example")).to_be_visible(timeout=SLOW)
    assert "lighthouse" not in other.content()
    other.get_by_role("button", name="Try an example").click()
    through(other)
    fits(other, 420)
    through(page)
    assert "lighthouse" not in page.url
