"""A view is a link: choices are in the address (the query string).

Streamlit's own ``bind="query-params"`` does not do: after a change of the page the browser's Back shows the wrong
address, and a reader who is faster than the address is overruled by it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import streamlit as st

Choice = TypeVar("Choice", int, str)
_KEPT, _PAGE, _TURNED = "the address kept from page to page", "the page that is shown", "the page was turned"
_SHOWN, _CHOSEN = "choices that the page has shown", "the reader has just chosen"
_OVERTAKEN = "choices that were sent before the address that was written last had arrived"
MOST_LETTERS = 200
"""Of words in the address; a link's further ones are left out."""


def linked(
    widget: Callable[..., Any], label: str, name: str, options: Sequence[Choice], default: Choice, **looks: Any
) -> Choice:
    """A widget over ``options``, such as ``st.selectbox``, whose value is in the address as ``name``."""
    choice_from_url(name, options, default)
    value = widget(label, options, key=name, **looks)
    chosen: Choice = default if value is None else value
    choice_to_url(name, chosen, default)
    return chosen


def linked_toggle(label: str, name: str, help: str) -> bool:
    """A toggle, off by default, that is in the address as 1 when it is on."""
    return bool(linked(lambda label, _, **looks: int(st.toggle(label, **looks)), label, name, (0, 1), 0, help=help))


def linked_clicks(choices: Mapping[str, tuple[Sequence[int], int]]) -> dict[str, int]:
    """Choices without widgets, as ``name: (options, default)``: what clicks have set, or the address."""
    for name, (options, default) in choices.items():
        choice_from_url(name, options, default)
    chosen = {name: int(st.session_state[name]) for name in choices}
    choices_to_url({name: (chosen[name], default) for name, (_, default) in choices.items()})
    return chosen


def choice_from_url(name: str, options: Sequence[Choice], default: Choice) -> None:
    """Sets the widget of key ``name`` to what the address says, before the widget is drawn.

    The address wins when somebody else changed it: on arrival by a link, and after the browser's Back. Values that are
    no option (stale, mistyped or hostile) fall back to the default, with a notice; so does, without one, a choice that
    another run does not offer.
    """
    given = st.query_params.get(name)
    ours = given == st.session_state.get(_written(name))
    if _widget_counts(name, ours) and st.session_state.get(name) in options:
        if not ours:  # the browser sent this before it had the address that was written last
            st.session_state.setdefault(_OVERTAKEN, set()).add(name)
        return
    found = next((option for option in options if str(option) == given), None)
    if found is None and given is not None and not ours:
        st.toast(f"The link has an unknown value for '{name}'; the default is shown.", icon=":material/link_off:")
    st.session_state[name] = default if found is None else found


def words_from_url(name: str, most: int = MOST_LETTERS) -> None:
    """The same for a text that anybody may have written: cut off, on one line, without what cannot be printed."""
    given = st.query_params.get(name)
    if _widget_counts(name, given == st.session_state.get(_written(name))):
        return
    printable = "".join(letter if letter.isprintable() else " " for letter in (given or "")[: 4 * most])
    st.session_state[name] = " ".join(printable.split())[:most]


def choice_to_url(name: str, value: Choice, default: Choice) -> None:
    """Puts the choice into the address; a default leaves no trace there."""
    text = None if value == default else str(value)
    overtaken: set[str] = st.session_state.get(_OVERTAKEN, set())
    if text != st.query_params.get(name) or name in overtaken:  # what the browser has by now is another one, then
        if text is not None:
            st.query_params[name] = text
        elif name in st.query_params:
            del st.query_params[name]
        else:
            st.query_params.from_dict(st.query_params.to_dict())
    overtaken.discard(name)
    st.session_state[_written(name)], st.session_state[_drawn(name)] = text, st.session_state.get(name, value)
    kept = st.session_state.setdefault(_KEPT, {})
    kept.pop(name, None)
    if text is not None:
        kept[name] = text


def choices_to_url(choices: Mapping[str, tuple[Choice, Choice]]) -> None:
    """Several choices at once, as ``name: (value, default)``: the browser's Back undoes a click, not a part of it."""
    wanted = {name: value for name, value in st.query_params.to_dict().items() if name not in choices}
    wanted |= {name: str(value) for name, (value, default) in choices.items() if value != default}
    if wanted != st.query_params.to_dict():
        st.query_params.from_dict(wanted)
    for name, (value, default) in choices.items():
        choice_to_url(name, value, default)


def decide(name: str, value: Choice) -> None:
    """Sets a choice from a callback: it counts even where it is what the page shows already.

    Without this, presses that come faster than the address would be undone by the address from before them: two of them
    that end where the page already is leave the widget as it was drawn, and then the address is believed.
    """
    st.session_state[name] = value
    st.session_state.pop(_drawn(name), None)


def note_page(page: str) -> None:
    """Called by app.py with the page that is about to run."""
    turned = st.session_state.get(_PAGE) not in (None, page)
    st.session_state[_TURNED], st.session_state[_PAGE] = turned, page
    if turned:
        st.session_state[_SHOWN] = set()
    st.session_state[_CHOSEN] = any(map(_changed, st.session_state.get(_SHOWN, ())))


def keep_choices() -> None:
    """Gives a page that was just turned to the choices of the one before; the navigation's links come without them.

    All at once, for every change of the address is a step of the browser's history; and from within the page, for the
    browser drops what is said before it has turned.
    """
    if st.session_state.pop(_TURNED, False) and not len(st.query_params):
        st.query_params.update(st.session_state.get(_KEPT, {}))


def _widget_counts(name: str, ours: bool) -> bool:
    """Whether the widget is to be believed, and not the address; ``ours`` is an address that we have written ourselves.

    Widgets are where one of them has changed since it was drawn: their reader was faster than the address, which takes
    its time to the browser and back. The browser's Back changes none.
    """
    shown: set[str] = st.session_state.setdefault(_SHOWN, set())
    # On a page that was just turned to, the widget is a new one, whatever its key still says.
    if name not in shown or name not in st.session_state:
        shown.add(name)
        return False
    return ours or st.session_state.get(_CHOSEN, False) or _changed(name)


def _changed(name: str) -> bool:
    return name in st.session_state and st.session_state[name] != st.session_state.get(_drawn(name))


def _written(name: str) -> str:
    return f"written to the address: {name}"


def _drawn(name: str) -> str:
    return f"shown by the widget: {name}"
