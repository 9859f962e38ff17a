"""What people type: a cache's address (``s3://bucket/prefix``, ``gs://bucket/prefix``), and the names of its runs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from core.errors import Mistake

SCHEMES = ("s3", "gs")
"""Of the object stores; ``file://`` is a folder."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,220}")
_RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_FROM_ENVIRONMENT = (
    "Credentials and settings come from the environment alone: take them out of the address, and set "
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or GOOGLE_APPLICATION_CREDENTIALS, instead."
)


@dataclass(frozen=True)
class Address:
    scheme: str
    bucket: str
    prefix: str
    """Without slashes around it; '' for the bucket itself."""

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}" + (f"/{self.prefix}" if self.prefix else "")

    def path(self, name: str = "") -> str:
        """An object's path as pyarrow has it."""
        return "/".join(part for part in (self.bucket, self.prefix, name) if part)


def is_address(text: str) -> bool:
    return _SCHEME.match(text) is not None


def parse(text: str) -> Address | Path:
    """An address, or the folder that ``file://`` names; nothing that may be a secret is quoted where it is refused."""
    try:
        found = urlsplit(text)
    except ValueError:
        raise Mistake("This is not a valid cache address. Give a folder, s3://bucket/prefix or gs://…") from None
    scheme = found.scheme.lower()
    if scheme not in (*SCHEMES, "file"):
        raise Mistake(
            f"A cache cannot be at '{scheme[:20]}://'. Give a folder, or an address that begins with s3://, gs:// "
            "or file://."
        )
    if "@" in found.netloc or found.query or found.fragment:
        raise Mistake(
            f"The address of the cache contains more than a bucket and a prefix ('@', '?' or '#'). {_FROM_ENVIRONMENT}"
        )
    if scheme == "file":
        if found.netloc not in ("", "localhost") or not found.path.startswith("/"):
            raise Mistake("The address of the cache is not a folder on this machine. Write file:///folder/cache.")
        return Path(unquote(found.path))
    names = [name for name in found.path.split("/") if name]
    if not _BUCKET.fullmatch(found.netloc) or any(name in (".", "..") or not name.isprintable() for name in names):
        raise Mistake(f"'{scheme}://' needs a bucket and a prefix. Write {scheme}://bucket/prefix.")
    return Address(scheme, found.netloc, "/".join(names))


def is_run_name(name: str) -> bool:
    """Whether ``name`` is one plain folder name."""
    return bool(_RUN_NAME.fullmatch(name)) and ".." not in name and not name.endswith(".")


def check_run_name(name: str) -> str:
    """A run's name is one plain folder name: no separators, no leading dot, nothing that leaves the cache."""
    if not is_run_name(name):
        raise Mistake(
            f"{name[:80]!r} cannot name a run. Use 1–64 letters, digits, dots, dashes and underscores, "
            "beginning with a letter or digit."
        )
    return name
