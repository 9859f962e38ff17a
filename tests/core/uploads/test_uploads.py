"""Uploaded files: what each format gives, what is said of what cannot be read, and that nothing hangs or crashes."""

from __future__ import annotations

import io
import itertools
import json
import random
import zipfile
from collections.abc import Callable
from typing import Any

import docx
import pytest
from docx.oxml import parse_xml
from pypdf import PdfReader, PdfWriter

from core.errors import Mistake
from core.uploads import MAX_BYTES, MAX_CHARACTERS, READERS, Uploaded, parse_upload, pasted, read_upload
from core.uploads.records import MAX_TEXTS, TEXT_FIELDS
from precompute.steps.embed.corpus_columns import DEFAULTS

WORLD = "Zwölf Boxkämpfer, שלום עולם, مرحبا بالعالم, 日本語の文章です。👩‍👩‍👧 می‌خواهم"
"""Accents, both ways of writing, no spaces, an emoji of five code points, a word held together by a joiner."""


def one(name: str, data: bytes) -> Uploaded:
    (found,) = parse_upload(name, data)
    return found


def refusal(name: str, data: bytes, read: Callable[[str, bytes], list[Uploaded]] = parse_upload) -> str:
    with pytest.raises(Mistake) as caught:
        read(name, data)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith((".", "…"))
    return sentence


# Writers of real files


def pdf(*pages: str) -> bytes:
    """A PDF by hand: each letter of a page is a code of its own, whose meaning stands in the font's ToUnicode."""
    letters = sorted(set("".join(pages)))
    code = {letter: f"{number:02X}" for number, letter in enumerate(letters, start=1)}
    meaning = "\n".join(f"<{code[letter]}> <{letter.encode('utf-16-be').hex()}>" for letter in letters)
    codes = "1 begincodespacerange <00> <FF> endcodespacerange"
    cmap = f"begincmap\n{codes}\n{len(letters)} beginbfchar\n{meaning}\nendbfchar\nendcmap"
    objects = ["<< /Type /Catalog /Pages 2 0 R >>"]
    kids = " ".join(f"{5 + 2 * number} 0 R" for number in range(len(pages)))
    objects.append(f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>")
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 4 0 R >>")
    objects.append(f"<< /Length {len(cmap)} >>\nstream\n{cmap}\nendstream")
    for number, page in enumerate(pages):
        content = f"BT /F1 12 Tf 72 700 Td <{''.join(code[letter] for letter in page)}> Tj ET"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {6 + 2 * number} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    tail = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    return out + f"{tail}trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF".encode()


def rewritten(data: bytes, *passwords: str, algorithm: str) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    writer.encrypt(*passwords, algorithm=algorithm)
    return saved(writer.write)


def saved(write: Callable[[io.BytesIO], Any]) -> bytes:
    out = io.BytesIO()
    write(out)
    return out.getvalue()


def word(*paragraphs: str) -> bytes:
    document = docx.Document()
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    return saved(document.save)


def repacked(data: bytes, **members: bytes) -> bytes:
    """The same archive with some members' contents replaced or added; names with ``__`` for ``/``."""
    given = {name.replace("__", "/").replace("_xml", ".xml"): content for name, content in members.items()}
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.namelist():
            if member not in given:
                new.writestr(member, old.read(member))
        for member, content in given.items():
            new.writestr(member, content)
    return out.getvalue()


FILES: dict[str, Callable[[str], bytes]] = {
    ".txt": str.encode,
    ".md": str.encode,
    ".html": lambda text: f"<!DOCTYPE html><meta charset=utf-8><body><p>{text}</p></body>".encode(),
    ".htm": lambda text: f"<p>{text}".encode(),
    ".pdf": pdf,
    ".docx": word,
    ".json": lambda text: json.dumps({"text": text}).encode(),
}


# What every format shares


def test_every_reader_is_tried() -> None:
    assert set(FILES) == set(READERS)


@pytest.mark.parametrize("suffix", [suffix for suffix in FILES if suffix != ".pdf"])
def test_all_scripts_survive(suffix: str) -> None:
    assert one(f"a{suffix}", FILES[suffix](WORLD)) == Uploaded(f"a{suffix}", WORLD)


def test_a_pdf_gives_the_letters_that_its_font_means() -> None:
    assert one("a.PDF", pdf("Zwölf 日本語", "Page two")).text == "Zwölf 日本語\n\nPage two"


@pytest.mark.slow
@pytest.mark.parametrize("suffix", READERS)
def test_apart_gives_what_is_given_here(suffix: str) -> None:
    data = FILES[suffix]("Zwölf words, and 日本語.")
    assert read_upload(f"a{suffix}", data) == parse_upload(f"a{suffix}", data)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.exe", b"x", "a.exe cannot be read here. Choose a file that ends in .txt, .md, "),
        ("noending", b"x", "noending cannot be read here."),
        ("a.txt", b"", "a.txt is empty."),
        ("a.txt", b" \r\n\t ", "a.txt has no text in it."),
        ("a.txt", b"x" * (MAX_BYTES + 100_000), "a.txt is 20.1 MB; the limit is 20 MB."),
        ("../../etc/\x1b[31ma.exe", b"x", " [31ma.exe cannot"[1:]),
        ("n" * 500 + ".exe", b"x", "n" * 79 + "… cannot be read here."),
    ],
)
def test_what_is_refused_by_its_name_or_size(name: str, data: bytes, said: str) -> None:
    assert refusal(name, data, read_upload).startswith(said)


# Text


def test_newlines_controls_and_blank_lines() -> None:
    assert one("a.txt", b"a\r\nb\rc\x0cd\x07e\n\n\n \n\nf\t\xef\xbb\xbfg ").text == "a\nb\nc\nde\n\nf\tg"


def test_a_lone_surrogate_is_replaced_and_said() -> None:
    found = one("a.json", b'"before \\ud800 after"')
    assert found == Uploaded("a.json", "before \ufffd after", ("1 broken character was replaced by \ufffd.",))
    assert pasted("\udfff\udfffx").notes == ("2 broken characters were replaced by \ufffd.",)


def test_a_long_text_is_cut_and_said() -> None:
    found = one("a.txt", b"word " * 1_000_000)
    assert len(found.text) == MAX_CHARACTERS - 1  # the space at its end goes
    assert found.notes == ("Only the first 1,000,000 of 5,000,000 characters were kept.",)


@pytest.mark.parametrize("text", ["", "  \n"])
def test_nothing_pasted(text: str) -> None:
    with pytest.raises(Mistake, match=r"^There is no text yet\. Paste some"):
        pasted(text)


@pytest.mark.parametrize(
    ("text", "encoding", "named"),
    [
        (
            "Der Ausschuß prüfte die Größe der Fässer, während draußen über Löhne gestritten wurde.",
            "cp1252",
            "cp1252",
        ),
        ("Съешь же ещё этих мягких французских булок, да выпей чаю.", "cp1251", "cp1251"),
        ("日本語のテキストです。これはとても長い文章です。漢字とひらがなとカタカナ。", "shift_jis", "cp932"),
        ("café", "cp1252", "cp1252"),
        ("日本語", "utf-16", "utf-16"),
        ("plain", "utf-32", "utf-32"),
    ],
)
def test_encodings_are_found_and_said(text: str, encoding: str, named: str) -> None:
    found = one("a.txt", text.encode(encoding))
    assert found.text == text
    assert found.notes[0].startswith(f"It was read as {named}")


def test_a_byte_order_mark_of_utf_8_is_nothing_to_be_said() -> None:
    assert one("a.txt", "\ufeffölig".encode()) == Uploaded("a.txt", "ölig")


def random_bytes(count: int, least: int = 0) -> bytes:
    chosen = random.Random(4)
    return bytes(chosen.randrange(least, 256) for _ in range(count))


@pytest.mark.parametrize("data", [random_bytes(5_000), random_bytes(5_000, 1), b"text\0text", b"\xff\xfe\x00"])
def test_bytes_that_are_no_text(data: bytes) -> None:
    assert refusal("a.txt", data).startswith(("a.txt is not a text file", "a.txt is marked as utf-16, but is damaged."))


def test_a_document_with_the_wrong_ending_is_told_its_right_one() -> None:
    assert "it looks like a .pdf file" in refusal("a.txt", pdf("x"))
    assert "it looks like a .docx file" in refusal("a.md", word("x"))


# Web pages

PAGE = """<html><head><title>T</title><style>p { color: red }</style><script>alert("one")</script></head><body>
<nav>Home | About</nav><div onclick="alert('two')">First   line<br>second <b>li</b>ne</div><script>three()</script>
<p hidden>secret</p><table><tr><td>a</td><td>b</td></tr></table><noscript>four</noscript>&lt;script&gt; is a tag
<template>five</template></body></html>"""


def test_what_a_reader_sees_and_nothing_that_runs() -> None:
    expected = "Home | About\n\nFirst line\nsecond line\n\na b\n\n<script> is a tag"
    assert one("a.html", PAGE.encode()) == Uploaded("a.html", expected)


def test_the_main_part_without_what_stands_around_it() -> None:
    body = "The glacier has lost a third of its length since it was first drawn. " * 4
    page = f"<nav>Home</nav><main><h1>Ice</h1><p>{body}</p><aside>Buy now</aside></main><footer>©</footer>"
    found = one("a.html", page.encode())
    assert found.text == f"Ice\n\n{body.strip()}"
    assert found.notes == ("Only the main part of the page was read.",)


@pytest.mark.parametrize("mark", ["<main>Short.</main>", "<article>One.</article><article>Two.</article>", ""])
def test_all_that_is_seen_where_no_main_part_holds_enough(mark: str) -> None:
    found = one("a.html", f"<header>Top</header>{mark}<p>Below</p>".encode())
    assert found.text.startswith("Top")
    assert found.text.endswith("Below")
    assert found.notes == ()


def test_the_encoding_that_a_page_names() -> None:
    page = '<meta http-equiv="Content-Type" content="text/html; charset=ISO-8859-7"><p>Καλημέρα κόσμε</p>'
    assert one("a.html", page.encode("iso8859-7")).text == "Καλημέρα κόσμε"
    french = "<meta charset=no-such><p>L'été dernier, à la plage, où nous étions allés"
    assert one("a.html", french.encode("cp1252")).text == "L'été dernier, à la plage, où nous étions allés"


@pytest.mark.parametrize("page", ["<div>" * 100_000 + "x", "<SPAN\n>" * 100_000 + "</x>" * 100_000, "<i/>" * 100_000])
def test_tags_within_each_other_by_the_thousand_are_refused_before_a_tree_is_built(
    page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parser looks through all open tags at every further one: it took 33 s for 100,000."""
    monkeypatch.setattr("selectolax.lexbor.LexborHTMLParser", pytest.fail)
    assert refusal("a.html", page.encode()).startswith("a.html has more than 1,000 nested tags.")


@pytest.mark.parametrize(
    "page",
    [
        "<div><div><b>x</b></div><p>y</div>" * 2_000,
        "<p>x<br>" * 2_000 + "<ul>" + "<li>x<a href=y>z" * 2_000 + "<table>" + "<tr><td>x" * 2_000,
        "<script>" + "if (i <n) x();" * 2_000 + "</script><p>x" + "<!-- <div> -->" * 2_000 + "<!--><p>y",
        "<svg>" + "<path d='M0'/>" * 2_000 + "</svg><p>x",
        "<div>" * 900 + "x",
    ],
)
def test_long_pages_are_not_taken_for_deep_ones(page: str) -> None:
    assert one("a.html", page.encode()).text


# PDFs


def test_pages_beyond_the_limit_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.uploads.pdf.MAX_PAGES", 2)
    found = one("a.pdf", pdf("one", "two", "three"))
    assert found == Uploaded("a.pdf", "one\n\ntwo", ("Only the first 2 of 3 pages were read.",))


def test_a_pdf_that_takes_too_long_is_read_as_far_as_it_went(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes on by a second whenever it is looked at, which is before every operator."""
    clock = itertools.count()
    monkeypatch.setattr("core.uploads.pdf.time.monotonic", lambda: float(next(clock)))
    found = one("a.pdf", pdf(*"abcdefgh"))
    assert found.text.startswith("a\n\nb")
    assert "h" not in found.text
    read = len(found.text.split())
    assert found.notes == (f"Only the first {read} of 8 pages were read.",)


def test_a_pdf_whose_first_page_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(step=10)
    monkeypatch.setattr("core.uploads.pdf.time.monotonic", lambda: float(next(clock)))
    assert refusal("a.pdf", pdf("words")).startswith("a.pdf takes longer than 20 seconds to read.")


def test_a_scanned_pdf() -> None:
    writer = PdfWriter()
    for _ in range(3):
        writer.add_blank_page(200, 200)
    assert refusal("scan.pdf", saved(writer.write)).startswith("scan.pdf is scanned; no text was found on its 3 pages.")


def test_a_pdf_without_pages() -> None:
    assert refusal("a.pdf", pdf()) == "a.pdf has no pages. Save it again, or paste the text."


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-128", "AES-256"])
def test_encrypted_pdfs(algorithm: str) -> None:
    locked = rewritten(pdf("secret"), "password", algorithm=algorithm)
    assert refusal("a.pdf", locked).startswith("a.pdf is encrypted and needs a password.")
    only_against_changes = rewritten(pdf("open"), "", "owner", algorithm=algorithm)
    assert one("a.pdf", only_against_changes).text == "open"


def test_a_damaged_page_is_left_out() -> None:
    whole = pdf("one", "two")
    broken = whole.replace(b"/Contents 8 0 R", b"/Contents 1 0 R")
    assert broken != whole
    found = one("a.pdf", broken)
    assert found.text == "one"


@pytest.mark.parametrize("data", [b"garbage", b"%PDF-1.7\n%%EOF", pdf("x")[:200]])
def test_what_is_no_pdf(data: bytes) -> None:
    assert refusal("a.pdf", data).startswith("a.pdf is damaged or not a PDF")


# Word

SPACE = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def test_tables_tabs_insertions_and_no_deletions() -> None:
    document = docx.Document()
    document.add_paragraph("first\tline")
    cells = document.add_table(1, 2).rows[0].cells
    cells[0].text, cells[1].text = "left", "right"
    xml = (
        f"<w:p {SPACE}><w:pPr><w:tabs><w:tab w:val='left' w:pos='9'/></w:tabs></w:pPr><w:r><w:t>kept</w:t></w:r>"
        "<w:ins w:id='1' w:author='a'><w:r><w:t> added</w:t></w:r></w:ins>"
        "<w:del w:id='2' w:author='a'><w:r><w:delText> gone</w:delText></w:r></w:del>"
        "<w:r><w:br/><w:t>below</w:t></w:r></w:p>"
    )
    document.element.body.insert(2, parse_xml(xml))
    assert one("a.docx", saved(document.save)).text == "first\tline\nleft\nright\nkept added\nbelow"


def bombs() -> dict[str, bytes]:
    plain = word("x")
    laughs = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><w:document>&b;</w:document>'
    many = io.BytesIO()
    with zipfile.ZipFile(many, "w") as archive:
        for number in range(2_001):
            archive.writestr(f"{number}.xml", b"")
    lying = bytearray(repacked(plain, media=b"x" * 10))
    entry = lying.rfind(b"PK\x01\x02")
    lying[entry + 24 : entry + 28] = (4_000_000_000).to_bytes(4, "little")
    return {
        "spaces": repacked(plain, word__document_xml=b" " * 30_000_000),
        "ratio": repacked(plain, word__media__a=b"\0" * 30_000_000),
        "members": many.getvalue(),
        "directory": bytes(lying),
        "entities": repacked(plain, word__document_xml=laughs),
        "entities, UTF-16": repacked(plain, word__document_xml=laughs.decode().encode("utf-16")),
        "path": repacked(plain, **{"..__..__etc__passwd": b"x"}),
        "drive": repacked(plain, **{"C:__x": b"x"}),
    }


@pytest.mark.parametrize(("which", "data"), bombs().items(), ids=lambda value: value if isinstance(value, str) else "")
def test_bombs_are_refused_before_they_are_unpacked(which: str, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[object] = []
    monkeypatch.setattr(docx, "Document", opened.append)
    sentence = refusal("a.docx", data)
    assert sentence.endswith("so it was not read.")
    assert not opened


def test_an_old_or_locked_word_file_and_another_kind_of_archive() -> None:
    assert refusal("a.docx", bytes.fromhex("d0cf11e0a1b11ae1") + b"x" * 600).startswith("a.docx is an old Word file")
    other = saved(lambda out: zipfile.ZipFile(out, "w").close())
    assert refusal("a.docx", other).startswith("a.docx is damaged or not a Word document")


# JSON


def test_the_fields_are_the_corpus_readers() -> None:
    assert DEFAULTS["text"] == TEXT_FIELDS


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"just text"', [("a.json", "just text")]),
        ('{"body": "b", "text": "t"}', [("a.json", "t")]),
        ('{"text": 5, "passage": "p"}', [("a.json", "p")]),
        ('[{"content": "c", "title": "On c"}, "s"]', [("a.json: On c", "c"), ("a.json: 2", "s")]),
        ('{"text": "one"}\n\n{"text": "two"}\n', [("a.json: 1", "one"), ("a.json: 2", "two")]),
    ],
)
def test_texts_in_json(text: str, found: list[tuple[str, str]]) -> None:
    assert [(each.name, each.text) for each in parse_upload("a.json", text.encode())] == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"txt": "x"}', "a.json has no text: give a string, or an object with one of text, content, "),
        ('["x", {}]', "a.json, item 2, has no text"),
        ('["x", 5]', "a.json, item 2, is a number, not a text"),
        ("[]", "a.json is an empty list."),
        ('{"text": "x"', "a.json is not valid JSON (Expecting ',' delimiter at line 1)."),
        ("[" * 100_000, "a.json is nested too deeply"),
        ("1" * 5_000, "a.json is a number, not a text: give a string, or an object with one of text, content, "),
        ('["x", 1e999]', "a.json, item 2, is a number, not a text"),
        ('{"text": "x"} y', "a.json is not valid JSON (Extra data at line 1). Fix it"),
        ('{"text": "x"}\n{\n"text": "y"}', "a.json is not valid JSON (Extra data at line 3)."),
        ('{\n"text": "x"}\n{\n"text": "y"}', "a.json is not valid JSON (Extra data at line 3)."),
        ('["x"', "a.json is not valid JSON (Expecting ',' delimiter at line 1)."),
        ('["x"],', "a.json is not valid JSON (Extra data at line 1)."),
        ('["x",\n]', "a.json is not valid JSON (Expecting value at line 2)."),
        ("{}\n" * 1_000, "a.json, item 1, has no text"),
        ('{"text": " "}', "a.json has no text in it."),
    ],
)
def test_json_without_texts(text: str, said: str) -> None:
    assert refusal("a.json", text.encode()).startswith(said)


@pytest.mark.parametrize("number", ["7" * 5_000, "-" + "7" * 5_000, "1e999", "-1E+999", "NaN", "-Infinity"])
def test_a_huge_number_beside_the_text_is_no_obstacle(number: str) -> None:
    assert one("a.json", f'{{"id": {number}, "text": "x"}}'.encode()).text == "x"


@pytest.mark.parametrize("text", [json.dumps(["text"] * 60), '"text"\n \n' * 60, '\r\n"text"' * 60])
def test_more_texts_than_are_taken(text: str) -> None:
    found = parse_upload("a.json", text.encode())
    assert len(found) == MAX_TEXTS
    assert found[0].notes == ("Only the first 50 of 60 texts were read.",)


# Nothing but a text or a sentence comes of any bytes


def harmless(name: str, data: bytes) -> bool:
    """Whether the file gave a text; any exception but a Mistake is the test's failure."""
    try:
        parse_upload(name, data)
    except Mistake:
        return False
    return True


def mutations(data: bytes, count: int) -> list[bytes]:
    chosen = random.Random(11)
    found = []
    for _ in range(count):
        changed = bytearray(data)
        for _ in range(chosen.randrange(1, 6)):
            at = chosen.randrange(len(changed))
            kind = chosen.randrange(3)
            if kind == 0:
                changed[at] = chosen.randrange(256)
            elif kind == 1:
                del changed[at : at + chosen.randrange(1, 40)]
            else:
                changed[at:at] = changed[: chosen.randrange(1, 60)]
        found.append(bytes(changed))
    return found


@pytest.mark.parametrize(("suffix", "step", "count"), [(".pdf", 7, 250), (".docx", 700, 60), (".html", 3, 100)])
def test_broken_files_give_a_text_or_a_sentence(suffix: str, step: int, count: int) -> None:
    data = PAGE.encode() if suffix == ".html" else FILES[suffix]("Some words, and some more of them.")
    cut = [harmless(f"a{suffix}", data[:end]) for end in range(1, len(data), step)]
    changed = [harmless(f"a{suffix}", each) for each in mutations(data, count)]
    assert harmless(f"a{suffix}", data)
    assert suffix == ".docx" or any(cut + changed)
    assert suffix == ".html" or not all(cut + changed)


def test_a_broken_document_within_a_whole_archive() -> None:
    whole = word("Some words, and some more of them.")
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        xml = archive.read("word/document.xml")
    changed = [harmless("a.docx", repacked(whole, word__document_xml=each)) for each in mutations(xml, 60)]
    assert any(changed)
    assert not all(changed)


# Apart: what it does to the app is in tests/core/uploads/test_uploads_apart.py


@pytest.mark.slow
def test_a_sentence_comes_back_from_apart() -> None:
    assert refusal("a.docx", bombs()["entities"], read_upload).startswith("a.docx declares entities of its own")
