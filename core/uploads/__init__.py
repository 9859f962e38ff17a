"""A file that somebody uploads becomes text: bytes in, texts out, and one sentence for what cannot be read."""

from core.uploads.apart import Watch, unwatched
from core.uploads.read import MAX_BYTES, READERS, parse_upload, read_upload
from core.uploads.uploaded import MAX_CHARACTERS, Uploaded, pasted

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
