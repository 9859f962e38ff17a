"""Which heads of which layers are switched off: a small JSON file that commands, pages and people exchange."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import Mistake
from core.model.shape import ModelShape
from core.model.stages import check_head

HOW = ("zero", "mean")


@dataclass(frozen=True)
class HeadsOff:
    """``off`` are layers and heads, both from 1, in order; ``how`` their output is replaced."""

    model: str
    off: tuple[tuple[int, int], ...]
    how: str = "zero"
    verdict: str = ""
    """What was measured when they were chosen, in a sentence."""

    def to_json(self) -> str:
        about = {"model": self.model, "how": self.how, "off": [list(place) for place in self.off]}
        return json.dumps({**about, **({"verdict": self.verdict} if self.verdict else {})}, ensure_ascii=False)


def read_heads_off(path: Path, model: str, shape: ModelShape, layer: int) -> HeadsOff:
    """Reads such a file, or the Retrieval lab's: its heads of stage 1 that are not kept, at the run's ``layer``.

    ``model`` is the run's; a file of another one is refused.
    """
    given = _object(path)
    if given.get("model") != model:
        raise Mistake(
            f"{path.name} is for the model {str(given.get('model'))[:80]!r}, but this run's model is '{model}'. Give a "
            "file for this model."
        )
    if "weights" in given:
        off = _of_the_lab(given, path.name, shape, layer)
    else:
        places = given.get("off")
        if not isinstance(places, list) or not all(_is_place(place) for place in places):
            raise Mistake(f"{path.name} has no list of [layer, head] under 'off', both counted from 1. Correct it.")
        off = {(int(at), int(head)) for at, head in places}
    for at, head in off:
        shape.layer_index(at)
        check_head(head, shape.heads)
    if not off:
        raise Mistake(f"{path.name} switches no head off, so the model would not change. List at least one.")
    how = given.get("how", "zero")
    if how not in HOW:
        raise Mistake(f"{path.name} has {how!r:.40} as 'how'. Choose one of: {', '.join(HOW)}.")
    return HeadsOff(model, tuple(sorted(off)), how, str(given.get("verdict", ""))[:2_000])


def _object(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise Mistake(f"There is no file '{path}'. Check --heads.")
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise Mistake(f"{path.name} is not valid JSON. Correct it.") from error
    if not isinstance(given, dict):
        raise Mistake(f"{path.name} is not a JSON object with 'model' and 'off'. Correct it.")
    return given


def _is_place(place: object) -> bool:
    return isinstance(place, list) and len(place) == 2 and all(type(number) is int for number in place)


def _of_the_lab(given: dict[str, Any], name: str, shape: ModelShape, layer: int) -> set[tuple[int, int]]:
    weights = given["weights"]
    if given.get("stage") != 1 or given.get("way") != "full":
        raise Mistake(
            f"{name} has heads of stage {given.get('stage')!r:.10} ranked by '{str(given.get('way'))[:20]}'. Only "
            "those of stage 1, ranked by 'full', can be switched off inside the model. Choose those in the lab."
        )
    if not isinstance(weights, dict) or not all(str(head).isdecimal() for head in weights):
        raise Mistake(f"{name} has no weights by head number. Download it again from the Retrieval lab.")
    if len(set(weights.values())) > 1:
        raise Mistake(f"{name} has heads with different weights. A model's heads are on or off: use equal weights.")
    return {(layer, head) for head in range(1, shape.heads + 1) if str(head) not in weights}
