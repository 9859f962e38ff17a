"""The rows of a run's tables, once they are read: what a report and the pages look figures up in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from core.runs.labels import LabelFacts, label_facts
from core.runs.manifest import Manifest

Row = dict[str, Any]


@dataclass(frozen=True)
class Tables:
    """The rows of a run's tables."""

    manifest: Manifest
    rows: dict[str, list[Row]] = field(default_factory=dict)
    _indexes: dict[tuple[str, ...], dict[tuple[Any, ...], list[Row]]] = field(default_factory=dict, compare=False)

    def pick(self, table: str, **wanted: Any) -> list[Row]:
        """The rows in which every column of ``wanted`` has that value; pages ask for hundreds in one run."""
        index = self._indexes.get((table, *wanted))
        if index is None:
            index = {}
            for row in self.rows[table]:
                index.setdefault(tuple(row[name] for name in wanted), []).append(row)
            self._indexes[table, *wanted] = index
        return list(index.get(tuple(wanted.values()), ()))

    def one(self, table: str, **wanted: Any) -> Row | None:
        found = self.pick(table, **wanted)
        return found[0] if found else None

    @property
    def labelled(self) -> int:
        return int(self.manifest.steps["analyse"].counts["labelled"])

    @property
    def labels(self) -> LabelFacts:
        """Where the labels come from that these figures are of."""
        return label_facts(self.manifest)
