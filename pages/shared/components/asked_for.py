"""The page that somebody asked for before the login, found again after it; its other half is asked_for.js."""

from __future__ import annotations

from pages.shared.components.mount import component

_mount = component(
    "asked_for",
    "asked_for.js",
    html='<span class="asked-for"></span>',
)


def asked_for(before: bool) -> None:
    """``before`` the login the address is remembered in the browser's tab; after it the browser goes there, once."""
    _mount(key=f"asked for {before}", data={"before": before}, height=1)
