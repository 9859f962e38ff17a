"""What pages read from the cache: opened once a process, shared by all sessions, read-only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import streamlit as st

from core.errors import Mistake
from core.manifest import Manifest
from core.store import Run, default_cache, open_run, run_names


@dataclass(frozen=True)
class RunState:
    """A run as the app sees it now: ``manifest`` is None where it cannot be read, and ``problem`` says why."""

    run: Run
    manifest: Manifest | None
    problem: str = ""

    @property
    def finished(self) -> bool:
        return self.manifest is not None and self.manifest.is_done("embed")

    @property
    def version(self) -> str:
        """Changes whenever the run's vectors do: the key of everything that is cached about it."""
        assert self.manifest is not None
        step = self.manifest.steps["embed"]
        return f"{step.fingerprint}/{step.finished}"


def cache_folder() -> Path:
    return default_cache()


def runs() -> list[RunState]:
    """All runs of the cache, finished or not."""
    return [run_state(name) for name in run_names(cache_folder())]


def run_state(name: str) -> RunState:
    run = open_run(cache_folder(), name)
    try:
        return RunState(run, run.manifest())
    except Mistake as mistake:
        return RunState(run, None, str(mistake))


def documents(state: RunState) -> pa.Table:
    """The documents' own columns and the corpus's, texts included."""
    return _documents(state.run, state.version)


def head_vectors(state: RunState, stage: int, head: int) -> np.ndarray:
    """``[doc, dim]``; head 0 is the full embedding."""
    return _head_vectors(state.run, state.version, stage, head)


@st.cache_resource(max_entries=8, show_spinner="Reading the documents …")
def _documents(run: Run, version: str) -> pa.Table:
    return run.documents()


@st.cache_resource(max_entries=64, show_spinner="Reading the head's vectors …")
def _head_vectors(run: Run, version: str, stage: int, head: int) -> np.ndarray:
    vectors = run.head_vectors(stage, head)
    vectors.setflags(write=False)
    return vectors
