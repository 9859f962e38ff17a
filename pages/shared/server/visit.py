"""A visitor's run of a page: measured and noted, whatever its end."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import RerunException, StopException, get_script_run_ctx

from pages.shared.server.log import Stopwatch, event, place
from pages.shared.server.metrics import count, observe

if TYPE_CHECKING:
    from streamlit.navigation.page import Page

_SESSION, _NOTED = "this session in the log", "problems that were noted"


def visit(page: Page) -> None:
    """Runs the page; ``st.stop`` and ``st.rerun`` are exceptions, and go on their way."""
    name = page.url_path or "overview"
    _name_tab(page)
    clock, outcome = Stopwatch(), "ok"
    try:
        page.run()
    except StopException:
        outcome = "stopped"
        raise
    except RerunException:
        outcome = "rerun"
        raise
    except Exception:
        outcome = "error"
        raise
    finally:
        _name_tab(page)  # again: the page may have turned to another run
        if not is_probe():
            count("headscope_page_runs_total", name, outcome)
            observe("headscope_page_seconds", clock.seconds, name)
            note("page", page=name, run=shown_run(), ms=clock.ms, outcome=outcome)


def _name_tab(page: Page) -> None:
    """The browser tab's title: ``Head map · demo · Headscope``."""
    st.set_page_config(page_title=" · ".join(part for part in (page.title, shown_run(), "Headscope") if part))


def note(name: str, **fields: str | int | None) -> None:
    """An event of this session; the server's own look at the app leaves no trace."""
    if not is_probe():
        event(name, session=session_id(), **fields)


def note_problem(problem: object, kind: str = "") -> None:
    """A sentence that is shown to somebody: noted once a session, by its kind and place, for it may quote them."""
    seen: set[tuple[str, str]] = st.session_state.setdefault(_NOTED, set())
    at = place(problem) if isinstance(problem, BaseException) else ""
    key = (kind or type(problem).__name__, at)
    if key not in seen and not is_probe():
        seen.add(key)
        count("headscope_problems_total")
        note("problem", run=shown_run(), kind=key[0], at=at or None)


def shown_run() -> str | None:
    """The run that is looked at; the select box offers only real ones."""
    name = st.session_state.get("run")
    return name if isinstance(name, str) else None


def session_id() -> str:
    """A random word that holds a session's lines together; it opens nothing."""
    if _SESSION not in st.session_state:
        st.session_state[_SESSION] = secrets.token_hex(4)
        event("session", session=st.session_state[_SESSION])
    found: str = st.session_state[_SESSION]
    return found


def is_probe() -> bool:
    """Whether this run is the server's own look whether the app runs: a session that the runtime does not know."""
    context = get_script_run_ctx()
    return context is not None and runtime.exists() and not runtime.get_instance().is_active_session(context.session_id)
