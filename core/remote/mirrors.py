"""Which folder mirrors which address: an address has one folder on a machine, which says so itself."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from functools import lru_cache
from pathlib import Path

from core.cache_address import Address, is_address, parse
from core.errors import Mistake
from core.remote.mirror import Mirror

_MARKER = ".mirror.json"
_MIRRORS: dict[Path, Mirror] = {}


def cache_at(text: str, mirrors: Path) -> Path:
    """The folder of a cache: the one that is named, or an address's mirror in ``mirrors``, made if need be."""
    if not is_address(text):
        return Path(text).expanduser()
    address = parse(text)
    if isinstance(address, Path):
        return address
    folder = mirrors.expanduser().resolve() / hashlib.sha256(str(address).encode()).hexdigest()[:16]
    if mirror_at(folder) is None:
        mark(folder, address)
        _said_at.cache_clear()
    return folder


def mirror_at(cache: Path) -> Mirror | None:
    """The mirror that a cache folder is, if it is one; always the same object."""
    found = _MIRRORS.get(cache)
    if found is None and (said := _said_at(cache)) is not None:
        found = _MIRRORS.setdefault(cache, Mirror(cache, *said))
    return found


def for_readers(cache: Path) -> Path:
    """The cache itself, of which this process shows pages to people who wait."""
    if (mirror := mirror_at(cache)) is not None:
        mirror.hurry()
    return cache


def mirror_of(path: Path) -> Mirror | None:
    """The mirror that a file lies in, if it does."""
    return next((found for folder in path.parents if (found := mirror_at(folder)) is not None), None)


def shown(cache: Path) -> str:
    """A cache as people know it."""
    mirror = mirror_at(cache)
    return str(mirror.address if mirror is not None else cache)


def mark(folder: Path, address: Address, identity: str = "") -> None:
    """Has the folder say what it mirrors; ``identity`` is what tells it from other mirrors of the same address."""
    if (folder / _MARKER).is_file():
        return
    temporary = folder / f"{_MARKER}{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps({"address": str(address), "id": identity or uuid.uuid4().hex}))
        os.replace(temporary, folder / _MARKER)
    except OSError as error:
        raise Mistake(
            f"'{folder}' cannot be written ({error.strerror}). Name a folder that can with HEADSCOPE_MIRROR."
        ) from error


@lru_cache(maxsize=4096)
def _said_at(folder: Path) -> tuple[Address, str] | None:
    try:
        found = json.loads((folder / _MARKER).read_text(encoding="utf-8"))
        address = parse(found["address"])
        return (address, str(found["id"])) if isinstance(address, Address) else None
    except (OSError, ValueError, KeyError, TypeError, Mistake):
        return None
