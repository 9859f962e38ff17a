"""A manifest that a stranger may have written: every value of the kind, size and length that the program relies on."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from core.model.shape import POOLINGS, ModelShape
from core.model.stages import SHARE
from core.runs.schema import DOCUMENTS, EXTRA_TYPES, VECTOR_TYPES

MOST_BYTES = 16 * 2**20
"""Of manifest.json; the largest honest ones list some hundred topics."""
MOST_FILES = 100_000
"""That have a checksum."""
_MOST_DEEP, _MOST_ENTRIES, _LONGEST = 8, 100_000, 100_000
_SHA256 = re.compile(r"[0-9a-f]{64}")
_STATES = ("running", "done", "outdated")
_ANALYSED = ("topics", "labelled", "unlabelled", "label_not_a_topic")


@dataclass(frozen=True)
class Kind:
    """What a value must be: ``holds(value)``, and the same in words."""

    words: str
    holds: Callable[[Any], bool]


def _whole(low: int, high: int) -> Kind:
    return Kind(f"a whole number from {low:,} to {high:,}", lambda value: type(value) is int and low <= value <= high)


def _text(longest: int) -> Kind:
    return Kind(
        f"a text of at most {longest:,} characters", lambda value: isinstance(value, str) and len(value) <= longest
    )


def _one_of(*names: str) -> Kind:
    return Kind(f"one of {', '.join(names)}", lambda value: isinstance(value, str) and value in names)


def _or_nothing(kind: Kind) -> Kind:
    return Kind(f"{kind.words}, or nothing", lambda value: value is None or kind.holds(value))


_TIME = _text(40)
_NAME = _text(500)
_FIELDS: dict[str, Kind] = {
    "model.name": _NAME,
    "model.revision": _or_nothing(_NAME),
    "model.layers": _whole(1, 10_000),
    "model.heads": _whole(1, 1_024),
    "model.kv_heads": _whole(1, 1_024),
    "model.hidden": _whole(1, 1_000_000),
    "model.head_dim": _whole(1, 100_000),
    "model.layer": _whole(1, 10_000),
    "model.pooling": _one_of(*POOLINGS),
    "model.prompt": _or_nothing(_text(_LONGEST)),
    "model.query_prompt": _or_nothing(_text(_LONGEST)),
    "model.max_tokens": _whole(1, 100_000_000),
    "model.dtype": _text(40),
    "model.notes": Kind(
        "a list of texts", lambda value: isinstance(value, list) and all(map(_text(10_000).holds, value))
    ),
    "vectors.dtype": _one_of(*VECTOR_TYPES),
    "vectors.part_size": _whole(1, 2**31 - 1),
    "corpus.source": _text(10_000),
    "corpus.documents": _whole(0, 2**31 - 1),
}
_STEP: dict[str, Kind] = {
    "fingerprint": _NAME,
    "state": _one_of(*_STATES),
    "started": _TIME,
    "finished": _or_nothing(_TIME),
    "seconds": Kind("a number", lambda value: type(value) in (int, float) and math.isfinite(value) and value >= 0),
    "options": Kind("an object", lambda value: isinstance(value, dict)),
}
_OPTIONS: dict[str, Kind] = {
    "limit": _whole(1, 2**53),
    "label_source": _or_nothing(_text(_LONGEST)),
    "source": _text(_LONGEST),
    "model": _or_nothing(_text(_LONGEST)),
    "metric": _text(40),
    "topics": Kind("a list of texts", lambda value: isinstance(value, list) and all(map(_text(_LONGEST).holds, value))),
}
"""Those that pages and later steps go by."""
_COUNT = _whole(0, 2**53)


def problem(found: Any) -> str:
    """What is wrong with a manifest as it was read from JSON; empty where nothing is."""
    if not isinstance(found, dict):
        return "it is not an object"
    for part in ("model", "vectors", "corpus", "versions", "steps"):
        if not isinstance(found.get(part), dict):
            return f"'{part}' is not an object"
    files = found.get("files", {})
    if not isinstance(files, dict) or len(files) > MOST_FILES or not all(map(_is_file, files, files.values())):
        return "'files' must be a SHA-256 for each path"
    if not _is_modest({key: value for key, value in found.items() if key != "files"}):
        return "it is too deeply nested, too long, or contains invalid text"
    for name, kind in _FIELDS.items():
        part, key = name.split(".")
        if key not in found[part]:
            return f"'{name}' is missing"
        if not kind.holds(found[part][key]):
            return f"'{name}' must be {kind.words}"
    if not _whole(1, max(1, found["corpus"]["documents"])).holds(found["vectors"].get("documents", 1)):
        return "'vectors.documents' must be a whole number from 1 to 'corpus.documents'"
    return _shape(found["model"], found["vectors"]) or _extra(found["corpus"]) or _steps(found["steps"])


def _is_file(path: str, digest: Any) -> bool:
    """Whether it is a path in the run's folder, and what can be its SHA-256."""
    parts = PurePosixPath(path).parts
    inside = bool(parts) and len(path) <= 1_000 and "\0" not in path and not {"/", ".."} & set(parts)
    return inside and isinstance(digest, str) and bool(_SHA256.fullmatch(digest))


def _is_modest(found: Any, deep: int = 0) -> bool:
    """Nested and long within bounds, and every text such as can be sent to a browser."""
    if deep > _MOST_DEEP:
        return False
    if isinstance(found, str):
        return len(found) <= _LONGEST and not any("\ud800" <= letter <= "\udfff" for letter in found)
    if isinstance(found, (dict, list)):
        inner = [*found, *found.values()] if isinstance(found, dict) else found
        return len(inner) <= _MOST_ENTRIES and all(_is_modest(one, deep + 1) for one in inner)
    return True


def _shape(model: dict[str, Any], vectors: dict[str, Any]) -> str:
    if model["heads"] % model["kv_heads"]:
        return "'model.kv_heads' must divide 'model.heads'"
    if model["layer"] > model["layers"]:
        return "'model.layer' must not be beyond 'model.layers'"
    possible = ModelShape.of(model).possible_stages
    stages = vectors.get("stages")
    # Not by equality alone: True counts as 1.
    whole = isinstance(stages, list) and all(type(stage) is int for stage in stages)
    if not whole or not stages or stages != sorted(set(stages)) or not set(stages) <= set(possible):
        return f"'vectors.stages' must be some of {', '.join(map(str, possible))}, in order"
    if stages == [SHARE]:
        return f"'vectors.stages' must not be {SHARE} alone"
    return ""


def _extra(corpus: dict[str, Any]) -> str:
    extra = corpus.get("extra")
    if not isinstance(extra, dict) or not all(kind in EXTRA_TYPES for kind in extra.values() if isinstance(kind, str)):
        return f"'corpus.extra' must name columns and their kinds ({', '.join(EXTRA_TYPES)})"
    if not all(isinstance(kind, str) for kind in extra.values()) or set(extra) & set(DOCUMENTS.names):
        return "'corpus.extra' must name columns of the corpus's own"
    return ""


def _steps(steps: dict[str, Any]) -> str:
    for name, step in steps.items():
        if not isinstance(step, dict):
            return f"'steps.{name}' is not an object"
        for key, kind in _STEP.items():
            if key in step and not kind.holds(step[key]):
                return f"'steps.{name}.{key}' must be {kind.words}"
        for key, kind in _OPTIONS.items():
            if key in (options := step.get("options", {})) and not kind.holds(options[key]):
                return f"'steps.{name}.options.{key}' must be {kind.words}"
        counts = step.get("counts", {})
        if not isinstance(counts, dict) or not all(map(_COUNT.holds, counts.values())):
            return f"'steps.{name}.counts' must be whole numbers"
    analyse = steps.get("analyse", {})
    if analyse.get("state") in ("done", "outdated") and not set(_ANALYSED) <= set(analyse.get("counts", {})):
        return f"'steps.analyse.counts' must have {', '.join(_ANALYSED)}"
    if analyse.get("state") in ("done", "outdated") and not analyse["counts"]["topics"]:
        return "'steps.analyse.counts.topics' must be at least 1"
    return ""
