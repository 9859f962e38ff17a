"""The page that Streamlit's front end is drawn into, with additions of ours.

A style keeps what is painted in its place while the rest arrives: Streamlit draws the page before its sidebar, and a
grey bar of 38 pixels for everything whose script has not arrived (late_parts.js marks what is late). A script says
where the root of the app is: Streamlit would try ``/head_map/_stcore/health`` first, which fails. Which scripts come
early is in front_end.py.
"""

from __future__ import annotations

import json
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pages.shared.server.front_end import LINKS
from pages.shared.theme import PAGE_SIZE

_PAGES = sorted(file.parent.name for file in Path(__file__).resolve().parents[2].glob("*/*/page.py"))
_GREY_BAR = '[height="auto"] > [data-testid="stSkeleton"]'
"""A part of unknown height whose script is on its way; a figure's height is known, and nothing has to wait for it."""
_BLANK = ':is(.st-key-heat-map, [class*="st-key-hs-grid-"]):not([data-drawn])'
"""A picture of ours whose script has not drawn it yet."""
_BLOCK = ':is([data-testid="stVerticalBlock"], [data-testid="stHorizontalBlock"])'
_IN_PLACE = ":is(.st-key-tour, .st-key-tour-button, .st-key-copy-link)"
"""Parts as high as their grey bars, or without any height."""
_SIDEBAR = 18.75 * PAGE_SIZE
"""Pixels. The unit rem is larger until the app's own font size has arrived."""
STYLE = f"""
[data-testid="stMainBlockContainer"] {{ max-width: none !important; }} /* wide, before the page has said so */
@media (min-width: 769px) {{ /* from here on the sidebar is beside the page, not over it */
  :root:not([data-sidebar]) [data-testid="stAppViewContainer"] {{ padding-left: {_SIDEBAR}px; }}
}}
.st-key-head-map {{ min-height: 24rem; }}
@media (min-width: 420px) {{ /* the upload field is drawn for a narrow screen at first, and higher */
  [class*="st-key-files-"]:not(:has([data-testid="stFileUploaderFile"])) {{ height: 6rem; }}
}}
:root:not([data-navigation]) [data-testid="stSidebarUserContent"],
{_BLOCK} > [data-late] ~ * {{
  opacity: 0; animation: hs-late 0s 30s forwards; /* its place is unknown; if no script ever comes, show it anyway */
}}
@keyframes hs-late {{ to {{ opacity: 1; }} }}
"""
SCRIPT = (
    'window.__streamlit = {BACKEND_BASE_URL: location.origin + location.pathname.replace(/[/]+$/, "")'
    f'.replace(/[/]({"|".join(_PAGES)})$/, "") + "/"}};\n'
    f"{{const LATE = {json.dumps(f'{_GREY_BAR}, {_BLANK}')}, BLOCK = {json.dumps(_BLOCK)}, "
    f"IN_PLACE = {json.dumps(_IN_PLACE)};\n{Path(__file__).with_name('late_parts.js').read_text(encoding='utf-8')}}}"
)
ADDED = f"<style>{STYLE}</style>\n<script>{SCRIPT}</script>\n{LINKS}"
_BEFORE = b'<script type="module"'
_AS_STORED = (b"accept-encoding", b"if-modified-since", b"if-none-match", b"range")


def asks_for_page(scope: Scope) -> bool:
    """Whether a browser opens an address: it alone asks for HTML."""
    return (
        scope["type"] == "http" and scope["method"] == "GET" and "text/html" in Headers(scope=scope).get("accept", "")
    )


async def send_page(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the whole page and the additions; anything else that ``app`` answers goes through as it is."""
    asked = {**scope, "headers": [(name, value) for name, value in scope["headers"] if name not in _AS_STORED]}
    start: Message | None = None
    body = b""

    async def answer(message: Message) -> None:
        nonlocal start, body
        if message["type"] == "http.response.start" and _is_html(message):
            start = message
        elif message["type"] == "http.response.body" and start is not None:
            body += message.get("body", b"")
            if not message.get("more_body"):
                whole = body.replace(_BEFORE, ADDED.encode() + _BEFORE, 1)
                headers = MutableHeaders(raw=list(start["headers"]))
                headers["content-length"] = str(len(whole))
                del headers["etag"], headers["last-modified"]  # of the file without the additions
                await send({**start, "headers": headers.raw})
                await send({"type": "http.response.body", "body": whole})
        else:
            await send(message)

    await app(asked, receive, answer)


def _is_html(start: Message) -> bool:
    return bool(
        start["status"] == 200 and Headers(raw=start["headers"]).get("content-type", "").startswith("text/html")
    )
