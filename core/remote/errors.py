"""Errors of an object store as sentences with a remedy; its own words are not quoted, for they may hold a key."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator

import pyarrow as pa

from core.cache_address import Address
from core.errors import NoAnswer, RemoteMistake

_CODE = re.compile(r"AWS Error ([A-Z_a-z0-9]{1,40})")
_NO_BUCKET = ("NO_SUCH_BUCKET", "NoSuchBucket")
_DENIED = ("ACCESS_DENIED", "ACCESSDENIED", "FORBIDDEN", "PERMISSION_DENIED", "PERMISSIONDENIED", "HTTP STATUS 403")
_BAD_KEYS = ("INVALID_ACCESS_KEY", "INVALIDACCESSKEY", "SIGNATURE_DOES_NOT_MATCH", "EXPIRED", "INVALID_CLIENT_TOKEN",
             "UNRECOGNIZED_CLIENT", "INVALIDTOKEN", "UNAUTHENTICATED", "COULD NOT CREATE A OAUTH2")  # fmt: skip
_ELSEWHERE = ("HTTP STATUS 301", "PERMANENTREDIRECT", "AUTHORIZATION_HEADER_MALFORMED")
_NO_ANSWER = ("NETWORK_CONNECTION", "CURLCODE", "TIMEOUT", "TIMED OUT", "COULD NOT CONNECT", "COULDN'T RESOLVE",
              "UNAVAILABLE", "SLOW_DOWN", "INTERNAL_FAILURE", "REQUEST_TIMEOUT", "DEADLINE")  # fmt: skip
_KEYS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
}


@contextlib.contextmanager
def as_sentences(address: Address) -> Iterator[None]:
    """Errors of the object store as sentences; that something is not there stays a FileNotFoundError."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException) as error:
        said = sentence(address, str(error))
        raise (NoAnswer if said == _unanswered(address) else RemoteMistake)(said) from None


def sentence(address: Address, said: str) -> str:
    """``said`` is what the library reports."""
    keys, loud = _KEYS[address.scheme], said.upper()

    def has(words: tuple[str, ...]) -> bool:
        return any(word.upper() in loud for word in words)

    if has(_NO_BUCKET):
        return f"There is no bucket '{address.bucket}'. Create it, or correct the cache address ({address})."
    if has(_BAD_KEYS):
        return f"The credentials for {address} are wrong or have expired. Set {keys} in the environment again."
    if has(_DENIED) and address.scheme == "s3" and not os.environ.get("AWS_ACCESS_KEY_ID"):
        return f"{address} requires credentials, and none are set. Set {keys} in the environment."
    if has(_DENIED):
        return (
            f"The credentials in the environment do not allow this at {address}. Grant access or use other credentials."
        )
    if has(_ELSEWHERE):
        return f"The bucket of {address} is in another region. Set AWS_REGION to that region."
    if has(_NO_ANSWER):
        return _unanswered(address)
    code = _CODE.search(said)
    why = f" ({code[1]})" if code else ""
    return f"{address} failed{why}. Try again. If it fails again, check the object store's log."


def _unanswered(address: Address) -> str:
    return f"{address} does not answer. Check the network connection and AWS_ENDPOINT_URL, then try again."
