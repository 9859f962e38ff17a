"""manifest.json: what a run is, what was done to it, and with what. Never a secret, never an absolute path."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from core.errors import Mistake
from core.model.shape import ModelShape
from core.model.stages import STUDY
from core.runs.files import replacing
from core.runs.manifest_check import MOST_BYTES, problem
from core.runs.schema import SCHEMA_VERSION

TEXTS_LEFT_OUT = "left out"
"""``texts`` of a corpus whose texts were not published."""


@dataclass(frozen=True)
class Step:
    """One step of the job: ``state`` is 'running' until it has ended well, then 'done'.

    It is 'outdated' once a step before it has changed what it was made from: its files are whole, but not of this run
    as it is now.
    """

    fingerprint: str
    state: str
    started: str
    finished: str | None = None
    seconds: float = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest:
    model: Mapping[str, Any]
    """``name, revision, layers, heads, kv_heads, hidden, head_dim, layer, pooling, prompt, query_prompt, …``"""
    vectors: Mapping[str, Any]
    """``dtype`` (float16, or float32 where that does not hold the values), ``stages``, ``part_size``.

    ``documents``, if not all documents have vectors: how many have.
    """
    corpus: Mapping[str, Any]
    """``source, fingerprint, documents, extra`` (the corpus's own columns and their kinds)."""
    versions: Mapping[str, str]
    steps: Mapping[str, Step] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION
    files: Mapping[str, str] = field(default_factory=dict)
    """The SHA-256 of each file that a finished step wrote, by path; see core.runs.checksums. Empty in older runs."""

    @property
    def shape(self) -> ModelShape:
        return ModelShape.of(self.model)

    @property
    def has_texts(self) -> bool:
        """Whether documents have their texts: not in a run that was published without them."""
        return self.corpus.get("texts") != TEXTS_LEFT_OUT

    @property
    def stages(self) -> tuple[int, ...]:
        return tuple(self.vectors["stages"])

    @property
    def swept_stages(self) -> tuple[int, ...]:
        """Those of the layer sweep; sweeps of older versions have none of stage 4."""
        counts = self.steps["layers"].counts if "layers" in self.steps else {}
        return self.stages[: int(counts.get("stages", len(self.study_stages)))]

    @property
    def study_stages(self) -> tuple[int, ...]:
        """Those of the study; every run has one."""
        return tuple(stage for stage in self.stages if stage in STUDY)

    @property
    def vectors_fingerprint(self) -> str:
        """What figures of all stages are made from. Stage 4 may come later, and is no part of embed's fingerprint."""
        return self.steps["embed"].fingerprint + ("" if self.stages == self.study_stages else "+share")

    @property
    def with_vectors(self) -> int:
        """How many documents of the finished run have vectors."""
        return int(self.vectors.get("documents", self.corpus["documents"]))

    @property
    def is_sampled(self) -> bool:
        """Whether the vectors of some documents only are kept."""
        return self.with_vectors < int(self.corpus["documents"])

    @property
    def parts(self) -> int:
        """How many parts a stage of the finished run has."""
        return -(-self.with_vectors // int(self.vectors["part_size"]))

    def is_done(self, step: str, fingerprint: str | None = None) -> bool:
        """Whether ``step`` has ended well, and from the inputs of that fingerprint if one is given."""
        record = self.steps.get(step)
        return record is not None and record.state == "done" and fingerprint in (None, record.fingerprint)

    def is_outdated(self, step: str, fingerprint: str | None = None) -> bool:
        """Whether ``step`` had ended well, from the inputs of that fingerprint, when a step before it was done anew."""
        record = self.steps.get(step)
        return record is not None and record.state == "outdated" and fingerprint in (None, record.fingerprint)

    def with_step(self, name: str, step: Step) -> Manifest:
        return replace(self, steps={**self.steps, name: step})

    def write(self, path: Path) -> None:
        with replacing(path) as temporary:
            text = json.dumps(asdict(self), indent=1, ensure_ascii=False, sort_keys=False)
            temporary.write_bytes(_sealed(text.encode()))


_SEAL = re.compile(rb',\n "sha256": "([0-9a-f]{64})"\n}\n\Z')


def _sealed(text: bytes) -> bytes:
    """A manifest whose last key is the SHA-256 of all that stands before it."""
    body = text.removesuffix(b"\n}")
    return body + b',\n "sha256": "%s"\n}\n' % hashlib.sha256(body).hexdigest().encode()


def is_unchanged(data: bytes) -> bool:
    """Whether a manifest is, to the bit, as it was written; an older one has no checksum, and is believed."""
    seal = _SEAL.search(data)
    if seal is None:
        return "sha256" not in json.loads(data)
    return hashlib.sha256(data[: seal.start()]).hexdigest().encode() == seal[1]


def read_manifest(path: Path, run: str) -> Manifest:
    """The manifest of the run of that name; a missing, damaged or foreign one is refused with what to do."""
    rebuild = f"python -m precompute embed {run} --source … --replace"
    try:
        if path.stat().st_size > MOST_BYTES:
            raise Mistake(
                f"The manifest.json of run '{run}' is larger than {MOST_BYTES // 2**20} MB, and is not read. Rebuild "
                f"the run with '{rebuild}'."
            )
        found = json.loads(path.read_text(encoding="utf-8"))
        version = found["schema_version"]
    except FileNotFoundError as error:
        raise Mistake(f"The run '{run}' has no manifest.json. Build it with '{rebuild}'.") from error
    except OSError as error:
        raise Mistake(
            f"The manifest.json of run '{run}' cannot be read ({error.strerror or error}). Check that this program "
            "can read the cache folder."
        ) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Mistake(f"The manifest.json of run '{run}' is damaged. Rebuild the run with '{rebuild}'.") from error
    if version != SCHEMA_VERSION:
        raise Mistake(
            f"The run '{run}' was written with schema version {str(version)[:20]}, this program reads "
            f"{SCHEMA_VERSION}. Rebuild it with '{rebuild}'."
        )
    if wrong := problem(found):
        raise Mistake(
            f"The manifest.json of run '{run}' is missing what this program needs ({wrong}). Rebuild the run with "
            f"'{rebuild}'."
        )
    try:
        found.pop("sha256", None)
        steps = {name: Step(**step) for name, step in found.pop("steps").items()}
        manifest = Manifest(**found, steps=steps)
    except TypeError as error:  # a key that is missing, or that nobody knows
        raise Mistake(
            f"The manifest.json of run '{run}' is missing what this program needs ({error}). Rebuild the run with "
            f"'{rebuild}'."
        ) from error
    return manifest
