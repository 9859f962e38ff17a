"""What a step was made from, as a digest: equal digests, nothing to do again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, is_dataclass
from typing import Any


def fingerprint(inputs: dict[str, Any]) -> str:
    """Of named inputs; dataclasses count by their fields."""
    plain = {name: asdict(value) if is_dataclass(value) else value for name, value in inputs.items()}  # type: ignore[arg-type]
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def part_digest(step: str, documents: Iterable[tuple[str, str]]) -> str:
    """Of one part's inputs: the step's fingerprint, and each document's id and text."""
    digest = hashlib.sha256(step.encode())
    for pair in documents:
        for value in pair:
            data = value.encode()
            digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()
