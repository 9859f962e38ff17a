"""A figure's caption: what it shows, its numbers, and what it takes to make it again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from core import VERSION
from core.runs.describe import heads_in_groups
from core.runs.manifest import Manifest
from core.settings import PROJECT
from pages.shared.paper.numbers import numbers
from pages.shared.text import visible

LONGEST = 2_400
"""Letters of the part with the numbers."""


def caption(sentences: Sequence[str], figure: go.Figure | None, facts: str, remake: str) -> str:
    """``sentences`` say what is shown; ``facts`` is ``run_facts``, ``remake`` a command or an address."""
    told = numbers(figure) if figure is not None else ""
    if len(told) > LONGEST:
        told = told[: told.rindex(" ", 0, LONGEST)].rstrip(",;:– ") + " …"
    parts = [*sentences, f"Values: {told}" if told else "", facts, code_facts()]
    ended = [part if part[-1] in ".!?…" else f"{part}." for part in map(str.strip, parts) if part]
    whole = " ".join([*ended, f"Made with: {remake}"])
    return visible(whole[0].upper() + whole[1:])


def run_facts(name: str, manifest: Manifest) -> str:
    """``Run 'demo': all-MiniLM-L6-v2, layer 6 of 6, 12 heads, mean pooling; 325 documents of 'demo'.``"""
    model, corpus = manifest.model, manifest.corpus
    return (
        f"Run '{name}': {model['name']}, layer {model['layer']} of {model['layers']}, {heads_in_groups(manifest)}, "
        f"{model['pooling']} pooling; {int(corpus['documents']):,} documents of '{corpus['source']}'."
    )


def code_facts() -> str:
    """``Headscope 0.2.0, commit 1a2b3c4d5e6f.``"""
    found = commit()
    return f"Headscope {VERSION}{f', commit {found[:12]}' if found else ''}."


def figure_command(run: str, name: str, choices: Mapping[str, Any], file: str) -> str:
    """The command that draws a figure of ``OpenedRun.figure`` into a file."""
    words = ["headscope", "figure", run, name]
    for choice, value in choices.items():
        if value is None or value is False:
            continue
        given = value if isinstance(value, (list, tuple)) else [] if value is True else [value]
        words += [f"--{choice.replace('_', '-')}", *map(str, given)]
    return shlex.join([*words, "--to", file])


def app_command(run: str) -> str:
    """For a figure that only a page draws; what follows it is the page's address."""
    return f"{shlex.join(['headscope', 'serve', run])}, then open"


@cache
def commit(folder: Path = PROJECT) -> str:
    """The commit that is checked out in ``folder``, from its files; empty without a repository, as in the image."""
    place = folder / ".git"
    try:
        if place.is_file():  # a work tree beside its repository
            place = (folder / place.read_text(encoding="utf-8").split(":", 1)[1].strip()).resolve()
        head = (place / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: "):
            return head
        ref, common = head.removeprefix("ref: "), place / "commondir"
        base = (place / common.read_text(encoding="utf-8").strip()).resolve() if common.is_file() else place
        if (base / ref).is_file():
            return (base / ref).read_text(encoding="utf-8").strip()
        packed = (base / "packed-refs").read_text(encoding="utf-8").splitlines()
        return next((line.split()[0] for line in packed if line.endswith(f" {ref}")), "")
    except (OSError, IndexError, UnicodeDecodeError):
        return ""
