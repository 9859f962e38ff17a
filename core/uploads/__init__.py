"""A file that somebody uploads becomes text: bytes in, texts out, and one sentence for what cannot be read."""

from core.uploads.apart import unwatched
from core.uploads.clean import MAX_CHARACTERS, pasted
from core.uploads.read import MAX_BYTES, READERS, parse_upload, read_upload
from core.uploads.turns import Watch
from core.uploads.uploaded import Uploaded

__all__ = [
    "MAX_BYTES",
    "MAX_CHARACTERS",
    "READERS",
    "Uploaded",
    "Watch",
    "parse_upload",
    "pasted",
    "read_upload",
    "unwatched",
]
