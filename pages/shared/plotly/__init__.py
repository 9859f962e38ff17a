"""The part of Plotly that the app's figures need, as built from frontend/plotly; nothing here is written by hand."""

import hashlib
from pathlib import Path

FILES = {path.name: path for path in sorted(Path(__file__).parent.glob("*.js"))}
_VERSION = hashlib.blake2b(b"".join(path.read_bytes() for path in FILES.values()), digest_size=8).hexdigest()
ADDRESS = f"plotly/{_VERSION}/"
"""Where the app serves them: a browser may keep what it gets there for good."""
