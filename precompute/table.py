"""The table of steps as commands: a row of ``core.runs.steps.STEPS``, and ``COMMAND`` of the step's folder."""

from __future__ import annotations

from collections import UserDict
from importlib import import_module

from core.runs.steps import STEPS
from precompute.options import StepCommand


class _StepCommands(UserDict[str, StepCommand]):
    """A step is imported when somebody asks for it: a command does not wait for what the others need."""

    def __missing__(self, name: str) -> StepCommand:
        if name not in STEPS:
            raise KeyError(name)
        self.data[name] = import_module(f"precompute.steps.{name}.command").COMMAND
        return self.data[name]


STEP_COMMANDS = _StepCommands()
