"""The table of steps as commands: a row of ``core.runs.steps.STEPS``, and ``COMMAND`` of the step's folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from core.runs.steps import STEPS
from precompute.options import StepCommand


class _StepCommands(Mapping[str, StepCommand]):
    """A step is imported when somebody asks for it: a command does not wait for what the others need."""

    def __getitem__(self, name: str) -> StepCommand:
        if name not in STEPS:
            raise KeyError(name)
        found: StepCommand = import_module(f"precompute.steps.{name}.command").COMMAND
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(STEPS)

    def __len__(self) -> int:
        return len(STEPS)


STEP_COMMANDS = _StepCommands()
