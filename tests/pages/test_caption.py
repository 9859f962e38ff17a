"""What a figure's caption says: its numbers by hand, the run, the commit and the command that draws it again."""

from __future__ import annotations

from pathlib import Path

import plotly.graph_objects as go
import pytest

from pages.shared.paper.caption import caption, commit, figure_command
from pages.shared.paper.numbers import numbers

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_values_have_their_labels_and_intervals() -> None:
    figure = go.Figure(
        [
            go.Scatter(
                x=[1.1, 1.9],
                y=[0.5, -0.25],
                error_y={"array": [0.1, 0.05], "arrayminus": [0.2, 0.05]},
                mode="markers",
                name="heads<br>by <b>sample</b>",
            ),
            go.Scatter(x=[1, 2], y=[0.083, 0.083], mode="lines", name="chance"),
            go.Scatter(x=[1, 2], y=[0, 1], fill="toself", hoverinfo="skip", name="a band behind"),
        ]
    )
    figure.update_layout(
        xaxis={"tickvals": [1, 2], "ticktext": ["stage 1<br>attention", "stage 2"]},
        yaxis={"title": {"text": "accuracy"}},
    )
    assert numbers(figure) == (
        "accuracy: heads by sample – stage 1 attention 0.5 (0.3 to 0.6), stage 2 −0.25 (−0.3 to −0.2); chance – 0.083"
    )


def test_many_values_are_a_range_under_each_label() -> None:
    figure = go.Figure(go.Bar(x=[3, 1, 2, 40], y=["a", "a", "a", "b"], orientation="h"))
    figure.update_layout(xaxis={"ticksuffix": " %"})
    assert numbers(figure) == "a 3 values from 1 to 3 %, b 40 %"
    assert numbers(go.Figure(go.Scatter(y=list(range(100))))) == "100 values from 0 to 99"


def test_cells_are_counted_and_a_map_has_no_values() -> None:
    assert numbers(go.Figure(go.Heatmap(z=[[0.5, None], [-1, 0.25], [0, 0]]))) == "3 × 2 cells from −1 to 0.5"
    unseen = {"visible": False}
    assert numbers(go.Figure(go.Scatter(x=[1], y=[2])).update_layout(xaxis=unseen, yaxis=unseen)) == ""


def test_untrusted_names_are_read_as_plotly_shows_them_and_bring_no_controls() -> None:
    figure = go.Figure(go.Bar(x=["Law &amp; &lt;b&gt;Order\u200b"], y=[2]))
    assert numbers(figure) == "Law & <b>Order 2"
    assert "\x00" not in caption(["a\x00b\u202ec"], figure, "", "x")
    assert caption(["a\x00b\u202ec"], figure, "", "x").startswith("Abc. Values: Law & <b>Order 2.")


def test_a_command_is_quoted_and_leaves_out_what_is_not_chosen() -> None:
    chosen = {"stage": 3, "per_topic": 20, "topics": ["Law", "Food, Recipes"], "doc": None, "original": False}
    assert figure_command("my run", "heat map", chosen, "a.pdf") == (
        "headscope figure 'my run' 'heat map' --stage 3 --per-topic 20 --topics Law 'Food, Recipes' --to a.pdf"
    )


def test_sentences_end_and_the_command_comes_last() -> None:
    told = caption(["how near?", " 5 queries", ""], None, "Run 'demo'.", "headscope figure demo probe")
    assert told.startswith("How near? 5 queries. Run 'demo'. Headscope ")
    assert told.endswith(" Made with: headscope figure demo probe")


@pytest.mark.parametrize("kind", ["loose", "packed", "detached", "work tree"])
def test_the_commit_is_read_without_git(tmp_path: Path, kind: str) -> None:
    repository = tmp_path / ".git"
    repository.mkdir()
    (repository / "HEAD").write_text(COMMIT if kind == "detached" else "ref: refs/heads/main\n")
    if kind == "packed":
        (repository / "packed-refs").write_text(f"# pack-refs\n{'f' * 40} refs/heads/other\n{COMMIT} refs/heads/main\n")
    else:
        (repository / "refs" / "heads").mkdir(parents=True)
        (repository / "refs" / "heads" / "main").write_text(f"{COMMIT}\n")
    folder = tmp_path
    if kind == "work tree":
        own = repository / "worktrees" / "beside"
        own.mkdir(parents=True)
        (own / "HEAD").write_text("ref: refs/heads/main\n")
        (own / "commondir").write_text("../..\n")
        folder = tmp_path / "beside"
        folder.mkdir()
        (folder / ".git").write_text(f"gitdir: {own}\n")
    assert commit(folder) == COMMIT


def test_without_a_repository_there_is_no_commit(tmp_path: Path) -> None:
    assert commit(tmp_path) == ""
