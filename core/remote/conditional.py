"""Writes that succeed only if nobody else has written the object meanwhile: If-None-Match and If-Match.

pyarrow cannot make them, so these requests go through obstore. Not every store honours them. Some refuse, and some
ignore the condition, which is worse: ``ConditionalWrites.write`` tries each store once before it relies on it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

from core.cache_address import Address


class Unconditional(Exception):
    """This store makes no conditional writes, or obstore cannot reach it with the credentials that are set."""


@dataclass(frozen=True)
class Tagged:
    """An object as it was read. ``tag`` names this version of it; both are None where there is no such object."""

    data: bytes | None
    tag: dict[str, str] | None


class ConditionalWrites:
    def __init__(self, address: Address, connect: float, silence: float) -> None:
        self._address, self._connect, self._silence = address, connect, silence
        self._honoured: bool | None = None
        """Whether the store keeps to conditions; None until it was tried."""

    @cached_property
    def _store(self) -> Any:
        from obstore.store import GCSStore, S3Store

        options: dict[str, Any] = {
            "client_options": {
                "connect_timeout": timedelta(seconds=self._connect),
                "timeout": timedelta(seconds=self._silence),
            },
            "retry_config": {"max_retries": 1},
        }
        where = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
        if self._address.scheme == "gs":
            return GCSStore(self._address.bucket, prefix=self._address.prefix or None, **options)
        if where:
            options["endpoint"] = where if "://" in where else f"https://{where}"
            options["client_options"]["allow_http"] = options["endpoint"].startswith("http://")
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
        return S3Store(self._address.bucket, prefix=self._address.prefix or None, region=region, **options)

    def read(self, name: str) -> Tagged:
        import obstore

        try:
            found = obstore.get(self._store, name)
            return Tagged(bytes(found.bytes()), _tag(found.meta))
        except FileNotFoundError:
            return Tagged(None, None)
        except Exception as error:  # pyarrow takes over, and says in a sentence what is wrong
            raise Unconditional from error

    def write(self, name: str, data: bytes, tag: dict[str, str] | None) -> dict[str, str] | None:
        """Replaces the version ``tag``, or makes a new object where that is None. Returns the new version's tag, or
        None if somebody else has written the object since."""
        written = self._put(name, data, tag)
        if written is not None and self._honoured is None:
            # The object is there now: a store that makes it once more does not look at conditions.
            self._honoured = self._put(name, data, None) is None
        if self._honoured is False:
            raise Unconditional
        return written

    def _put(self, name: str, data: bytes, tag: dict[str, str] | None) -> dict[str, str] | None:
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        try:
            return _tag(
                obstore.put(self._store, name, data, mode="create" if tag is None else tag, use_multipart=False)
            )
        except (AlreadyExistsError, PreconditionError, FileNotFoundError):
            return None
        except Exception as error:
            raise Unconditional from error


def _tag(found: Any) -> dict[str, str]:
    return {name: found[name] for name in ("e_tag", "version") if found.get(name) is not None}
