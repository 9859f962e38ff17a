"""What a browser may do with our pages: the headers that every answer carries."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import streamlit

from pages.shared.server.index_page import SCRIPT

_INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)


def _inline_scripts() -> list[str]:
    """The scripts within Streamlit's own page and ours, by their digests; nothing else written into a page runs."""
    page = Path(streamlit.__file__).parent / "static" / "index.html"
    found = _INLINE.findall(page.read_text(encoding="utf-8")) if page.is_file() else []
    return [f"'sha256-{b64encode(sha256(each.encode()).digest()).decode()}'" for each in (*found, SCRIPT)]


POLICY = {
    "default-src": ["'self'"],
    # Streamlit makes blobs of components; regl, with which Plotly draws some charts, compiles its commands.
    "script-src": ["'self'", "blob:", "'unsafe-eval'", *_inline_scripts()],
    "style-src": ["'self'", "'unsafe-inline'"],  # Streamlit, Plotly and the map write styles
    "img-src": ["'self'", "data:", "blob:"],
    "font-src": ["'self'", "data:"],
    "connect-src": ["'self'", "data:", "blob:"],
    "worker-src": ["'self'", "blob:"],
    "object-src": ["'none'"],
    "base-uri": ["'self'"],
    "form-action": ["'self'"],
    "frame-ancestors": ["'self'"],
}
HEADERS = {
    "Content-Security-Policy": "; ".join(" ".join([name, *sources]) for name, sources in POLICY.items()),
    "X-Frame-Options": "SAMEORIGIN",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # an address names a run and a document: other sites need not learn it
}
