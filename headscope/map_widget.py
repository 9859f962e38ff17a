"""The head map as a widget of a notebook: the app's own script, with heads, colour and selection as traits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.errors import Mistake, listed
from core.model.stages import check_head, check_stage
from core.runs.results import require
from headscope.opened import OpenedRun, read_as_pages_do

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise Mistake(
        "The map as a widget needs the package anywidget. Run 'pip install anywidget', or draw the maps with "
        "figure('maps')."
    ) from error

from pages.shared.components.map_data import columns, inside, message_of_sample, read_area, stage_map
from pages.shared.data import RunState
from pages.shared.figures.maps import stage_maps_figure
from pages.shared.figures.svg import as_svg
from pages.shared.one_file.pack import map_script, map_style, theme_variables

if TYPE_CHECKING:
    import pandas as pd

_STYLE = (
    theme_variables(':host([data-theme="{}"])'.format)
    + ":host{display:block;padding:.4rem;background:var(--st-background-color)}"
    + map_style()
)
_STILL = 2_500
"""Points of the picture that stands for the widget where none is drawn."""


def map_widget(opened: OpenedRun, stage: int | None, heads: Sequence[int] | None, colour: str) -> MapWidget:
    """The map of a run that is projected; without ``stage`` and ``heads``, of the first stage and of all heads."""
    require(opened.run, opened.manifest, "project")
    read_as_pages_do()
    shown = opened.stages[0] if stage is None else stage
    chosen = list(range(1, opened.shape.heads + 1)) if heads is None else list(heads)
    return MapWidget(opened, stage=shown, heads=chosen, colour=colour)


class MapWidget(anywidget.AnyWidget):
    """Every head's vector of every document. Filter heads, colour, zoom, lasso; Python sees and sets the same.

    ``stage``, ``heads`` (counting from 1) and ``colour`` can be set; ``selected`` holds documents, counting from 0.
    """

    _esm = "\n".join(
        [
            f"{map_script()}\nconst HEADSCOPE_STYLE = {json.dumps(_STYLE)};",
            Path(__file__).with_suffix(".js").read_text(encoding="utf-8"),
        ]
    )
    stage = traitlets.Int()
    heads = traitlets.List(traitlets.Int())
    colour = traitlets.Unicode("head")
    selected = traitlets.List(traitlets.Int(), read_only=True)
    _message = traitlets.Dict().tag(sync=True)
    _picked = traitlets.Dict().tag(sync=True)
    _view = traitlets.Dict().tag(sync=True)

    def __init__(self, opened: OpenedRun, **shown: Any) -> None:
        self._opened, self._turn = opened, 0
        self._run_state = RunState(opened.run, opened.manifest)
        self._told: dict[str, Any] = {}
        super().__init__(**shown)
        self._show()
        self.observe(self._show, ["stage", "heads", "colour"])

    @traitlets.validate("stage")
    def _check_stage(self, proposal: Any) -> int:
        check_stage(proposal["value"], self._opened.stages)
        return int(proposal["value"])

    @traitlets.validate("heads")
    def _check_heads(self, proposal: Any) -> list[int]:
        for head in proposal["value"]:
            check_head(head, self._opened.shape.heads)
        return sorted(set(proposal["value"]))

    @traitlets.validate("colour")
    def _check_colour(self, proposal: Any) -> str:
        if proposal["value"] not in self.colours:
            raise Mistake(f"There is no colouring '{proposal['value']}'. There are: {listed(self.colours)}.")
        return str(proposal["value"])

    @property
    def colours(self) -> tuple[str, ...]:
        """What ``colour`` can be: head, key/value group, activation, topic, and columns of the corpus."""
        return ("head", "group", "activation", *(column.name for column in columns(self._run_state)))

    @property
    def selected_documents(self) -> pd.DataFrame:
        """The selected documents' ids, titles and topics."""
        columns = ["doc", "id", "title", "topic"]
        rows = self._opened.run.document_lookup().rows(np.array(self.selected, dtype=np.int64), columns)
        return rows.to_pandas()

    def _show(self, change: Any = None) -> None:
        """What is set from Python goes to the browser; what has come from there does not go back."""
        now = {"stage": self.stage, "heads": list(self.heads), "colour": self.colour}
        if now == self._told:
            return
        if now["stage"] != self._told.get("stage"):
            self.set_trait("selected", [])
        self._told = now
        self._turn += 1
        told = message_of_sample(self._run_state, self.stage)
        documents, points = told.pop("documents"), told.pop("points")
        titles = documents["title"].to_pylist()
        codes = {name: _packed(documents[name]) for name in documents.column_names if name != "title"}
        every = len(self.heads) == self._opened.shape.heads
        heads = None if every else ",".join(map(str, self.heads)) or "none"
        self._message = {
            **told,
            "turn": self._turn,
            "chosen": {},
            "given": {"heads": heads, "colour": self.colour},
            "points": {name: _packed(points[name]) for name in points.column_names},
            "documents": {**codes, "title": titles},
        }

    @traitlets.observe("_view", "_picked")
    def _heard(self, change: Any) -> None:
        """``heads`` comes as in the app's address: ``1-4,7``; ``none``; nothing for all."""
        told = change["new"]
        heads = _heads(told.get("heads"), self._opened.shape.heads)
        colour = told.get("colour") or "head"
        self._told = {"stage": self.stage, "heads": heads, "colour": colour}
        with self.hold_trait_notifications():  # one message for both, or the first would be sent back
            self.heads, self.colour = heads, colour
        if change["name"] == "_picked":
            self.set_trait("selected", self._chosen(told.get("area"), told.get("doc")))

    def _chosen(self, area: Any, doc: Any) -> list[int]:
        drawn = stage_map(self._run_state, self.stage)
        polygon = read_area(area if isinstance(area, str) else None, self.stage)
        if polygon is not None:
            within = inside(drawn.places[:, np.array(self.heads, dtype=np.int64) - 1], polygon).any(axis=1)
            found: list[int] = np.flatnonzero(within).tolist()
            return found
        return [doc - 1] if isinstance(doc, int) and 0 < doc <= int(self._opened.manifest.corpus["documents"]) else []

    def _repr_mimebundle_(self, **given: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The widget, and a picture for places that draw none: a notebook on the web, or as PDF."""
        bundle = super()._repr_mimebundle_(**given)
        if bundle is None:
            return None
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        return {**data, "image/svg+xml": self._picture()}, metadata

    def _picture(self) -> str:
        from core.runs.results import read_preview

        places = read_preview(self._opened.run, _STILL).places[self.stage]
        figure = stage_maps_figure({self.stage: places}, self._opened.shape, "light", height=420)
        drawn = as_svg(figure, f"Map of all head vectors at stage {self.stage}, coloured by head", 460)
        alone = 'xmlns="http://www.w3.org/2000/svg" width="460" height="420" font-family="sans-serif"'
        return drawn.replace("<svg ", f"<svg {alone} ", 1)


def _packed(column: Any) -> dict[str, Any]:
    values = column.to_numpy()
    return {"type": values.dtype.name, "data": np.ascontiguousarray(values).tobytes()}


def _heads(text: Any, heads: int) -> list[int]:
    if not isinstance(text, str):
        return list(range(1, heads + 1))
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found += range(int(first), int(last or first) + 1)
    return [head for head in found if 1 <= head <= heads]
