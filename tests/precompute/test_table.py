"""The table of steps: a row each, a folder each, and nothing about them anywhere else."""

from __future__ import annotations

import subprocess
import sys

import pytest

from core.runs.steps import STEPS, made_from_labels, writes
from precompute.cli import COMMANDS
from precompute.table import STEP_COMMANDS
from tests.support import ROOT


def test_every_step_has_its_folder_and_every_folder_its_row() -> None:
    folders = {path.parent.name for path in (ROOT / "precompute" / "steps").glob("*/command.py")}
    assert folders == set(STEPS) == set(STEP_COMMANDS)
    assert [name for name in COMMANDS if name in STEPS] == list(STEPS)


def test_a_step_comes_after_those_that_it_needs() -> None:
    for number, (name, facts) in enumerate(STEPS.items()):
        assert set(facts.needs) <= set(list(STEPS)[:number]), name


def test_all_runs_what_others_need_and_then_what_can_be_left_out() -> None:
    kinds = [facts.in_all for facts in STEPS.values()]
    assert kinds == sorted(kinds, key=["always", "optional", "on request", "last"].index)
    assert [name for name, facts in STEPS.items() if facts.in_all == "always"] == [
        "embed",
        "search",
        "label",
        "analyse",
        "project",
    ]


def test_other_labels_make_figures_about_topics_outdated() -> None:
    assert made_from_labels() == ("analyse", "retrieve", "layers", "aspects", "ablate")


def test_a_file_has_one_step_that_writes_it_beside_embed() -> None:
    paths = [f"analysis/{table}.parquet" for facts in STEPS.values() for table in facts.tables]
    for path in (*paths, "search.sqlite", "labels/column.parquet", "topics.parquet", "map/stage=1.parquet"):
        assert len([step for step in STEPS if step != "embed" and writes(step, path)]) == 1, path


@pytest.mark.slow
def test_help_and_status_load_no_torch() -> None:
    program = (
        "import sys\n"
        "from precompute.cli import main\n"
        "for arguments in (['--help'], ['all', '--help'], ['status']):\n"
        "    try:\n"
        "        main(arguments)\n"
        "    except SystemExit:\n"
        "        pass\n"
        "assert not {'torch', 'transformers', 'sklearn', 'datasets'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True)
