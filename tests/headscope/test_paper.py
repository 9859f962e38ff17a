"""A figure for a paper, from Python and from the command line."""

from __future__ import annotations

import shutil
from pathlib import Path

import plotly.graph_objects as go
import pytest
from pypdf import PdfReader

from core.errors import Mistake
from headscope import caption_of, save_figure
from headscope.commands import main


@pytest.mark.browser
@pytest.mark.slow
def test_a_command_writes_a_figure_with_its_caption(
    share_cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cka.pdf"
    asked = ["figure", "four", "redundancy", "--stage", "2", "--width", "120", "--to", str(path)]
    assert main([*asked, "--cache", str(share_cache)]) == 0
    printed = capsys.readouterr().out
    pdf = PdfReader(path)
    (sheet,) = pdf.pages
    assert float(sheet.mediabox.width) == pytest.approx(120 * 72 / 25.4, abs=0.01)
    assert "head" in sheet.extract_text()
    assert pdf.metadata is not None
    subject = str(pdf.metadata.subject)
    assert "Values: 4 × 4 cells from " in subject
    assert "Made with: headscope figure four redundancy --stage 2 --to redundancy.pdf" in subject
    assert subject in printed


def test_what_cannot_be_saved_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = go.Figure()
    assert caption_of(figure) == ""
    with pytest.raises(Mistake, match=r"must end with \.svg or \.pdf"):
        save_figure(figure, tmp_path / "a.eps")
    with pytest.raises(Mistake, match=r"The width 'wide' is not valid: column, page or a number of millimetres"):
        save_figure(figure, tmp_path / "a.pdf", width="wide")
    with pytest.raises(Mistake, match=r"There is no browser 'nowhere'"):
        save_figure(figure, tmp_path / "a.pdf", browser="nowhere")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(Mistake, match=r"install Chromium, Chrome, Edge or Firefox, or save the figure from the app"):
        save_figure(figure, tmp_path / "a.pdf")


@pytest.mark.slow
def test_a_browser_that_does_not_answer_is_said(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"did not draw the figure\. Try another one"):
        save_figure(go.Figure(), tmp_path / "a.pdf", browser="false")
