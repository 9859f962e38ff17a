"""The table of steps as commands: a row of ``core.runs.steps.STEPS``, and ``COMMAND`` of the step's folder."""

from __future__ import annotations

from importlib import import_module

from core.runs.steps import STEPS
from precompute.options import StepCommand

STEP_COMMANDS: dict[str, StepCommand] = {
    name: import_module(f"precompute.steps.{name}.command").COMMAND for name in STEPS
}
