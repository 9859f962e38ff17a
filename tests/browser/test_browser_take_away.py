"""What a person takes away from a page, in a real browser: the link to the view, a figure's picture."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect
from pypdf import PdfReader

from tests.support.browser import draw_all, settle
from tests.support.servers import SLOW


@pytest.fixture(scope="module")
def address(served: Callable[[Path], str], retrieved_cache: Path) -> str:
    return served(retrieved_cache)


def test_the_link_that_is_copied_opens_the_same_view_for_somebody_else(
    page: Page, stranger: Page, address: str
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{address}/?head=5&stage=2")
    expect(page.get_by_text("Nearest in head 5")).to_be_visible(timeout=SLOW)
    settle(page)
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible(timeout=SLOW)
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == page.url
    stranger.goto(link)
    expect(stranger.get_by_text("Nearest in head 5")).to_be_visible(timeout=SLOW)
    expect(stranger.get_by_role("radio", name="2 projected").first).to_be_checked(timeout=SLOW)


def test_a_figure_is_saved_as_it_looks(page: Page, address: str) -> None:
    page.goto(f"{address}/stages")
    expect(page.get_by_text("random slicings on 325 documents")).to_be_visible(timeout=SLOW)
    settle(page)
    found = {}
    for kind in ("PNG", "SVG"):
        page.get_by_role("button", name="Save").first.click()
        with page.expect_download() as waiting:
            page.get_by_role("button", name=kind, exact=True).first.click()
        assert waiting.value.suggested_filename == f"random-slices.{kind.lower()}"
        found[kind] = Path(waiting.value.path()).read_bytes()
        settle(page)
    pixels = np.asarray(Image.open(BytesIO(found["PNG"])).convert("RGB"))
    assert pixels.shape[1] > 900  # twice the size on the screen
    assert pixels[0, 0].tolist() == [0xFC, 0xFB, 0xF8]  # the page's ground, not a transparent one
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 50
    assert "random slices" in found["SVG"].decode()


FIGURES = {
    "random-slices": ("stages", "topic match by names", "headscope figure demo 'random slices' --measure names"),
    "redundancy": ("stages", "head", "headscope figure demo redundancy --stage 1 --to redundancy.pdf"),
    "topic-heat-map": ("heat_map", "Stage 1 attention", "headscope serve demo, then open /heat_map"),
    "head-map": ("head_map", "head 11", "headscope serve demo, then open /head_map"),
}
"""A figure of each kind: its page, a text in it, and how its caption says that it is made again."""
DRAWN = {
    "random-slices": ".st-key-random-slices .modebar-btn",
    "redundancy": ".st-key-redundancy .modebar-btn",
    "topic-heat-map": ".hs-heat-map canvas",
    "head-map": ".head-map .box[data-place]",
}
NUMBERS = {
    "random-slices": "all heads together – stage 1 attention 68\u00a0%,",
    "redundancy": "12 × 12 cells from ",
    "topic-heat-map": "Topic heat map: ",
    "head-map": "3,900 vectors at stage 1 attention: 12 heads of 325 documents",
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_for_a_paper_has_its_fonts_and_its_caption(page: Page, address: str, name: str) -> None:
    where, text, remake = FIGURES[name]
    page.goto(f"{address}/{where}")
    drawn = page.locator(DRAWN[name]).first
    draw_all(page)
    expect(drawn).to_be_attached(timeout=SLOW)
    if where == "stages":  # many figures, each with its own
        drawn.locator("xpath=following::button[contains(., 'Save')][1]").click()
    else:
        page.get_by_role("button", name="Save", exact=True).first.click()
    offered = page.locator(f".st-key-picture-of-{name}")
    caption = offered.locator(".caption")
    expect(caption).to_contain_text(NUMBERS[name])
    expect(caption).to_contain_text(remake)
    expect(caption).to_contain_text("Run 'demo': all-MiniLM-L6-v2, layer 6 of 6, 12 heads, mean pooling; 325 documents")
    found = {}
    for kind in ("SVG", "PDF"):
        with page.expect_download() as waiting:
            offered.get_by_role("button", name=kind, exact=True).click()
        assert waiting.value.suggested_filename == f"{name}.{kind.lower()}"
        found[kind] = Path(waiting.value.path())
    svg = found["SVG"].read_text()
    root = ET.fromstring(svg)
    assert root.attrib["width"] == "88mm"
    assert remake in str(root.findtext("{*}desc"))
    assert 'font-family: "Headscope Sans"; font-weight: 400; src: url(data:font/ttf;base64,AAEAAA' in svg
    assert not re.search(r"<script|url\((?![\"']?(?:data:|#|&quot;#))", svg)
    pdf = PdfReader(found["PDF"])
    (sheet,) = pdf.pages
    assert float(sheet.mediabox.width) == pytest.approx(88 * 72 / 25.4, abs=0.01)
    assert text in sheet.extract_text()
    assert pdf.metadata is not None
    assert remake in str(pdf.metadata.subject)
    fonts = [font["/DescendantFonts"][0]["/FontDescriptor"] for font in sheet["/Resources"]["/Font"].values()]
    assert fonts
    assert all(len(font["/FontFile2"].get_data()) > 50_000 for font in fonts)


PLAIN = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 50">
<defs><clipPath id="c"><rect x="0" y="0" width="50" height="50"/></clipPath></defs>
<g transform="translate(10 5)"><path d="m1 2h3v4z" style="fill: rgb(255, 0, 0); opacity: .5"/></g>
<g clip-path="url(#c)"><circle cx="20" cy="20" r="10" fill="none" stroke="#0000ff" stroke-width="3"/></g>
<text x="50" y="30" text-anchor="middle" font-size="10" font-weight="700" xml:space="preserve">Äx−1</text>
<text x="5" y="45" font-size="8">日本</text></svg>"""


def test_a_pdf_has_every_mark_where_the_picture_has_it(page: Page, address: str) -> None:
    page.goto(f"{address}/stages")
    encoded = page.evaluate(
        """async (svg) => {
          const { paper } = await import("/paper/paper.js");
          const about = { title: "plain", caption: "A caption – 95 %.", creator: "a test" };
          const bytes = new Uint8Array(await (await paper(svg, "pdf", 100, about)).arrayBuffer());
          return Array.from(bytes);
        }""",
        PLAIN,
    )
    pdf = PdfReader(BytesIO(bytes(encoded)))
    (sheet,) = pdf.pages
    # 100 mm are 283.4646 points, for 100 units of the picture; y goes down from the top.
    assert [round(float(side), 2) for side in sheet.mediabox] == [0, 0, 283.46, 141.73]
    steps = sheet.get_contents().get_data().decode()
    assert steps.startswith("2.8346 0 0 -2.8346 0 141.7323 cm\n")
    # The triangle, moved by its group: (11, 7), (14, 7), (14, 11); red, half transparent.
    assert "1 0 0 rg\n11 7 m\n14 7 l\n14 11 l\nh\nf" in steps
    states = sheet["/Resources"]["/ExtGState"]
    assert 0.5 in [float(state["/ca"]) for state in states.values()]
    # The clip, then the circle from its left end, stroked in blue.
    assert "0 0 m\n50 0 l\n50 50 l\n0 50 l\nh\nW n" in steps
    assert "0 0 1 RG 3 w" in steps
    assert "10 20 m\n10 14.4772 14.4772 10 20 10 c" in steps  # a quarter: handles at 0.5523 of the radius
    # Bold text around the middle: Ä 722, x 556, − 584, 1 556 thousandths of 10 are 24.18 wide (Arial's own widths).
    (left,) = re.findall(r"/F2 10 Tf 1 0 0 -1 ([\d.]+) 30 Tm", steps)
    assert float(left) == pytest.approx(50 - 24.18 / 2, abs=0.02)
    assert "Äx−1" in sheet.extract_text()
    # Letters that the font does not have are a picture; the fonts that are not used are not there.
    assert len(sheet["/Resources"]["/XObject"]) == 1
    assert list(sheet["/Resources"]["/Font"]) == ["/F2"]
    assert pdf.metadata is not None
    assert (pdf.metadata.title, pdf.metadata.subject) == ("plain", "A caption – 95 %.")
