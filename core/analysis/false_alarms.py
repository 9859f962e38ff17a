"""How often each rule about heads fires where nothing is to be found: measured, for tooltips, documentation and tests.

On the demo with all-MiniLM-L6-v2, by ``python -m benchmarks.false_alarms`` (ten shuffles; random weights of seed 0) and
``python -m benchmarks.false_types all-MiniLM-L6-v2 5`` (random weights of seeds 0 to 4). Depth on random slices: the
false alarms of ``core.analysis.layer_findings.DepthTest``, 200 slicings at each of four stages.
"""

from __future__ import annotations

from dataclasses import dataclass

SHUFFLED, SLICES, UNTRAINED = "shuffled labels", "random slices in place of heads", "random weights"
ROLE, TYPE, DEPTH, PRUNED = "role", "attention type", "depth", "pruned set"
PEAK, SPECIALISE, BEST = "full embedding beyond guessing", "heads specialise", "a best head"
CUT, ABOUT_HEADS = "a cut is suggested", "said to be about heads"


@dataclass(frozen=True)
class Fired:
    times: int
    of: int

    def __str__(self) -> str:
        return f"{self.times:,} of {self.of:,}"


@dataclass(frozen=True)
class Counted:
    """One kind of rule."""

    unit: str
    """What is counted, in the plural."""
    rates: dict[str, dict[str, Fired]]
    """By rule and by what was searched instead of the run: how often it fired."""


_ROLES = ("selective", "sparse", "uniform", "avoiding", "aligned", "general")
_SHOWN = (
    *("subject–verb", "verb–object", "modifier", "coreference", "induction", "duplicate token"),
    *("semantic similarity", "previous token", "next token", "sink", "delimiter", "rare token", "local", "long-range"),
)
COUNTED: dict[str, Counted] = {
    ROLE: Counted(
        "heads",
        {
            role: {
                SHUFFLED: Fired(11 if role == "aligned" else 0, 360),
                SLICES: Fired(0, 48),
                UNTRAINED: Fired(0, 36),
            }
            for role in _ROLES
        },
    ),
    TYPE: Counted(
        "heads",
        {**{name: {UNTRAINED: Fired(0, 360)} for name in _SHOWN}, "broad": {UNTRAINED: Fired(360, 360)}},
    ),
    DEPTH: Counted(
        "searches over the layers of a stage",
        {
            PEAK: {SHUFFLED: Fired(0, 40), UNTRAINED: Fired(0, 4)},
            SPECIALISE: {SHUFFLED: Fired(0, 40), SLICES: Fired(26, 800), UNTRAINED: Fired(0, 4)},
            BEST: {SHUFFLED: Fired(0, 40), SLICES: Fired(34, 800), UNTRAINED: Fired(0, 4)},
        },
    ),
    PRUNED: Counted(
        "sets",
        {
            CUT: {SHUFFLED: Fired(1, 40), SLICES: Fired(24, 30), UNTRAINED: Fired(0, 4)},
            ABOUT_HEADS: {SHUFFLED: Fired(0, 40), SLICES: Fired(1, 30), UNTRAINED: Fired(0, 4)},
        },
    ),
}


def fires(kind: str, *rules: str) -> str:
    """How often some rules of a kind fire where nothing is to be found, all of them if none is named; a sentence.

    Empty for a rule that was not counted.
    """
    counted = COUNTED[kind]
    found = [counted.rates[rule] for rule in rules or counted.rates if rule in counted.rates]
    if not found:
        return ""
    parts: list[str] = []
    for control in (SHUFFLED, SLICES, UNTRAINED):
        rates = [rate[control] for rate in found if control in rate]
        if rates:
            unit = f" {counted.unit}" if not parts else ""
            parts.append(f"{Fired(sum(rate.times for rate in rates), rates[0].of)}{unit} with {control}")
    said = " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]
    return f"Where there is nothing to find, on the demo, it fires for {said}."


def markdown() -> str:
    """The table of docs/methods.md."""
    controls = (SHUFFLED, SLICES, UNTRAINED)
    lines = [["rule", *controls], ["---"] * (1 + len(controls))]
    for kind, counted in COUNTED.items():
        for rule, rates in counted.rates.items():
            cells = [str(rates[control]) if control in rates else "–" for control in controls]
            lines.append([f"{kind}: {rule}", *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
