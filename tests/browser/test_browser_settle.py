"""What the browser tests wait by: a page that is settled can be read once, with all that it will show."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import settle

SLOWLY = """
import time
import streamlit as st
st.title("Slow")

@st.fragment(run_every=0.1)
def clock():
    st.session_state.ticks = st.session_state.get("ticks", 0) + 1
    if st.session_state.ticks == 5:
        st.rerun()

if "clock" in st.query_params:
    if st.session_state.get("ticks", 0) < 5:
        clock()
    else:
        st.text("The clock has gone.")
    st.stop()
if st.button("More"):
    st.session_state.count = st.session_state.get("count", 0) + 1
    if st.session_state.count == 2:
        st.rerun()  # drawn in two passes
time.sleep(0.5)
st.html(f"<p class='last'>pressed {st.session_state.get('count', 0)} times</p>")  # comes with a file of its own
"""


@pytest.fixture(scope="module")
def address(serve: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("slowly")
    (folder / "slowly.py").write_text(SLOWLY)
    return serve(folder, str(folder / "slowly.py"))


def test_a_settled_page_is_there_whole_at_first_after_a_click_and_in_two_passes(page: Page, address: str) -> None:
    page.goto(address)
    for count in range(4):
        settle(page)
        assert page.locator(".last").all_inner_texts() == [f"pressed {count} times"]
        page.get_by_role("button", name="More").click()


def test_a_page_settles_whose_timer_asked_for_a_fragment_that_has_gone(page: Page, address: str) -> None:
    page.goto(f"{address}?clock=1")
    expect(page.get_by_text("The clock has gone.")).to_be_visible()
    settle(page)
