"""A button that copies the link to what is shown; its other half is copy_link.js.

With it, as it is on every page, comes history_steps.js, which keeps the browser's Back to steps that a reader took.
"""

from __future__ import annotations

from pages.shared.components.mount import BUTTON_CSS, component

_copy_link = component(
    "copy_link",
    "history_steps.js",
    "clipboard.js",
    "copy_link.js",
    html='<button type="button" aria-live="polite" disabled>Copy link to this view</button>',
    css=BUTTON_CSS,
)


def copy_link() -> None:
    """The address as the browser has it, heads and colours included, which the server may not know."""
    _copy_link(key="copy link")
