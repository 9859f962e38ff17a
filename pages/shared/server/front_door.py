"""What stands before the pages: a sentence where the app cannot be shown, the login, or "you are not on the list"."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from core.errors import Mistake
from core.settings import read_settings
from pages.shared.components.asked_for import asked_for
from pages.shared.server.access import DEFAULT, find_gate, may_enter
from pages.shared.server.metrics import count
from pages.shared.server.visit import note
from pages.shared.text import plain

# A file of ours: an emoji or a symbol by name would be fetched from elsewhere by every reader's browser. It goes into
# the page itself, because files need a login.
ICON = f"data:image/png;base64,{b64encode((Path(__file__).parent / 'icon.png').read_bytes()).decode()}"
_NOTED = "the door was noted"


def front_door() -> Callable[[], None] | None:
    """What to draw instead of a page; None for those who may come in."""
    try:
        settings = read_settings()
        gate = find_gate(settings)
    except Mistake as mistake:
        return partial(_closed, mistake.sentences)
    if gate.is_open:
        return None
    user = st.user.to_dict()
    if user.get("is_logged_in") is not True:
        return partial(_login, gate.providers)
    if not may_enter(user, settings.allowed_domains, settings.trusted_providers):
        return partial(_refused, user)
    _note_once("login", "ok")
    _signed_in(user)
    return None


def _closed(sentences: Sequence[str]) -> None:
    note("problem", kind="closed")
    with _card():
        st.subheader("Headscope is not set up yet")
        st.markdown("The operator of this server must fix this first:")
        for sentence in sentences:
            st.error(plain(sentence), icon=":material/build:")


def _login(providers: tuple[str, ...]) -> None:
    with _card():
        st.title("Headscope")
        st.markdown("See what each attention head of a text-embedding model contributes to a document's vector.")
        for name in providers:
            label = "Sign in" if name == DEFAULT else f"Sign in with {plain(name)}"
            st.button(label, icon=":material/login:", key=f"sign in {name}", on_click=st.login, args=(name,))
        st.caption("This server shows its runs to people who have signed in.")
        asked_for(before=True)


def _refused(user: Mapping[str, Any]) -> None:
    _note_once("refused", "refused")
    with _card():
        st.subheader("You are not on the list")
        who = f"as **{plain(user['email'])}**" if user.get("email") else "without an e-mail address"
        st.markdown(
            f"You have signed in {who}. Your e-mail domain is not allowed here, or the address is not verified."
        )
        st.caption("Sign in with another account, or ask whoever runs this server.")
        st.button("Sign out", icon=":material/logout:", on_click=_sign_out)


def _signed_in(user: Mapping[str, Any]) -> None:
    with st.sidebar.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(f"Signed in as {plain(user.get('email') or user.get('name') or 'somebody')}")
        st.button("Sign out", icon=":material/logout:", type="tertiary", on_click=_sign_out)
    with st.sidebar:
        asked_for(before=False)


def _sign_out() -> None:
    note("logout")
    st.logout()


def _note_once(name: str, outcome: str) -> None:
    """Once a session, and without the person's name: the session holds the lines together."""
    if st.session_state.get(_NOTED) != name:
        st.session_state[_NOTED] = name
        count("headscope_logins_total", outcome)
        note(name)


@contextmanager
def _card() -> Iterator[None]:
    """In the middle of the page, narrow."""
    st.space("large")
    middle = st.columns([1, 2, 1])[1]
    with middle, st.container(border=True):
        yield
