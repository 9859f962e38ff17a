"""Choices in the address, as the pages read and write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pages.shared import url


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A session of Streamlit's, with an address that is a plain dict."""

    class Session:
        def __init__(self) -> None:
            self.session_state: dict[str, Any] = {}
            self.query_params: dict[str, str] = {}
            self.said: list[str] = []

        def toast(self, text: str, icon: str = "") -> None:
            self.said.append(text)

    made = Session()
    monkeypatch.setattr(url, "st", made)
    return made


def drawn(label: str, options: Sequence[int], key: str) -> int:
    """A widget as Streamlit's are: it shows what the session has under its key."""
    found: int = url.st.session_state[key]
    assert found in options
    return found


def choose(session: Any, value: int | None = None) -> int:
    """One run of a page with one choice; ``value`` is what the reader clicks."""
    if value is not None:
        session.session_state["stage"] = value
    return url.linked(drawn, "Stage", "stage", (1, 2, 3), 1)


def turn_to(session: Any, page: str) -> None:
    """The navigation's links come without an address, and a page's widgets are new ones."""
    session.query_params.clear()
    session.session_state.pop("stage", None)
    url.note_page(page)
    url.keep_choices()


def test_a_choice_survives_turning_the_page(session: Any) -> None:
    url.note_page("one")
    choose(session)
    assert choose(session, 2) == 2
    turn_to(session, "two")
    assert session.query_params == {"stage": "2"}
    assert choose(session) == 2
    assert choose(session, 3) == 3  # and can be changed there
    assert choose(session) == 3


def test_a_link_to_another_page_wins_over_what_was_kept(session: Any) -> None:
    url.note_page("one")
    choose(session)
    choose(session, 2)
    session.query_params.clear()
    session.query_params["stage"] = "3"
    url.note_page("two")
    url.keep_choices()
    assert choose(session) == 3


def test_a_stale_widget_of_the_page_before_does_not_count(session: Any) -> None:
    """Streamlit may still know the old widget's value; the new widget would start at its default."""
    url.note_page("one")
    choose(session)
    choose(session, 2)
    session.query_params.clear()
    session.session_state["stage"] = 1
    url.note_page("two")
    url.keep_choices()
    assert choose(session) == 2


@pytest.mark.parametrize("given", ["9", "", "<script>", "2 "])
def test_what_is_no_option_falls_back_with_a_notice(session: Any, given: str) -> None:
    url.note_page("one")
    session.query_params["stage"] = given
    assert choose(session) == 1
    assert len(session.said) == 1
    assert "stage" not in session.query_params


def test_no_address_is_no_complaint(session: Any) -> None:
    url.note_page("one")
    assert choose(session) == 1
    assert session.said == []
    assert session.query_params == {}


def test_a_reader_faster_than_the_address_is_believed(session: Any) -> None:
    """The browser sends the address that it knows, which may be older than what was last written."""
    url.note_page("one")
    choose(session)
    assert choose(session, 2) == 2
    session.query_params.clear()  # as it was before
    assert choose(session, 3) == 3
    session.query_params["stage"] = "2"  # the browser's Back: the widget is as it was drawn
    assert choose(session) == 2


def test_one_choice_does_not_take_another_back_whose_address_is_on_its_way(session: Any) -> None:
    url.note_page("one")
    choose(session)
    assert choose(session, 2) == 2
    session.query_params.clear()  # the browser has not heard of the stage yet
    url.linked(drawn, "Head", "head", (1, 2), 1)
    session.session_state["head"] = 2  # and its reader chooses a head
    url.note_page("one")
    assert choose(session) == 2
    session.query_params.clear()
    url.linked(drawn, "Head", "head", (1, 2), 1)
    session.query_params.clear()  # the browser's Back: nothing was chosen, and the address is an earlier one
    url.note_page("one")
    assert choose(session) == 1


def test_a_press_that_ends_where_the_page_is_counts_against_an_older_address(session: Any) -> None:
    """Presses faster than the address: 2, then 3 and back to 2 at once, while the browser still says nothing."""
    url.note_page("one")
    choose(session)
    url.decide("stage", 2)
    assert choose(session) == 2
    session.query_params.clear()  # the browser has not heard of it yet when it sends the next presses
    url.decide("stage", 2)
    assert choose(session) == 2
    assert session.query_params == {"stage": "2"}
    session.query_params.clear()  # but without a press it is the reader's Back
    assert choose(session) == 1


class Address(dict[str, str]):
    """An address that remembers what was sent to the browser, as Streamlit sends it: after every change, whole."""

    def __init__(self, **choices: str) -> None:
        super().__init__(**choices)
        self.sent: list[dict[str, str]] = []

    def __setitem__(self, name: str, value: str) -> None:
        super().__setitem__(name, value)
        self.sent.append(dict(self))

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self.sent.append(dict(self))

    def to_dict(self) -> dict[str, str]:
        return dict(self)

    def from_dict(self, given: dict[str, str]) -> None:
        self.clear()
        self.update(given)
        self.sent.append(dict(given))


@pytest.mark.parametrize(("older", "pressed"), [("2", 2), (None, 1)])
def test_a_press_that_was_overtaken_by_the_address_is_written_once_more(
    session: Any, older: str | None, pressed: int
) -> None:
    """The browser sends a press with an address that happens to be right, and takes a later one in the meantime.

    Both sides then agree here, and yet the browser would stay at 3; at the default (1) there is no name to set.
    """
    session.query_params = Address(**({} if older is None else {"stage": older}))
    url.note_page("one")
    choose(session)
    assert choose(session, 3) == 3
    assert session.query_params.sent == [{"stage": "3"}]  # on its way to the browser
    session.query_params = Address(**({} if older is None else {"stage": older}))  # which sends, not having it yet,
    url.decide("stage", pressed)
    url.note_page("one")
    assert choose(session) == pressed
    assert session.query_params.sent == [{} if older is None else {"stage": older}]
    assert choose(session) == pressed
    assert len(session.query_params.sent) == 1  # not again and again


def test_clicks_are_written_to_the_address_at_once(session: Any) -> None:
    session.query_params = Address(run="demo")
    choices = {"layer": (range(1, 7), 6), "head": (range(13), 0)}
    url.note_page("one")
    assert url.linked_clicks(choices) == {"layer": 6, "head": 0}
    url.decide("layer", 2)
    url.decide("head", 5)
    assert url.linked_clicks(choices) == {"layer": 2, "head": 5}
    assert session.query_params.sent == [{"run": "demo", "layer": "2", "head": "5"}]


def test_a_widget_without_a_value_shows_the_default(session: Any) -> None:
    assert url.linked(lambda label, options, key: None, "Stage", "stage", (1, 2, 3), 2) == 2
    assert session.query_params == {}
