"""What the browser tests wait by: a page that is settled can be read once; and what one leaves to the next: nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import settle

SLOWLY = """
import time
import streamlit as st
st.title("Slow")
if st.button("More"):
    st.session_state.count = st.session_state.get("count", 0) + 1
    if st.session_state.count == 2:
        st.rerun()  # drawn in two passes
time.sleep(0.5)
st.html(f"<p class='last'>pressed {st.session_state.get('count', 0)} times</p>")  # comes with a file of its own
"""


def test_a_settled_page_is_there_whole_at_first_after_a_click_and_in_two_passes(
    page: Page, serve: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "slowly.py").write_text(SLOWLY)
    page.goto(serve(tmp_path, str(tmp_path / "slowly.py")))
    for count in range(4):
        settle(page)
        assert page.locator(".last").all_inner_texts() == [f"pressed {count} times"]
        page.get_by_role("button", name="More").click()


def test_what_is_there_twice_for_a_moment_is_waited_for(page: Page) -> None:
    two = "<button>old</button><button onclick='this.textContent = 7'>new</button>"
    for act in (
        lambda only: expect(only).to_have_text("new"),
        lambda only: only.click(),
        lambda only: expect(only).not_to_have_text("old"),
        lambda only: only.bounding_box(),
    ):
        page.set_content(two + "<script>setTimeout(() => document.querySelector('button').remove(), 400)</script>")
        act(page.get_by_role("button"))
        assert page.get_by_role("button").count() == 1


LEAVE = """async () => {
  const found = [document.cookie, localStorage.length, sessionStorage.length, (await indexedDB.databases()).length,
                 innerWidth, matchMedia('(prefers-color-scheme: dark)').matches];
  document.cookie = 'left=behind';
  for (const kept of [localStorage, sessionStorage]) kept.setItem('left', 'behind');
  await new Promise((done) => { indexedDB.open('left').onsuccess = ({target}) => done(target.result.close()); });
  window.open('about:blank');
  return found;
}"""


@pytest.mark.parametrize("time", ["first", "second"])
def test_a_test_finds_nothing_that_another_one_has_left(page: Page, stranger: Page, phone: Page, time: str) -> None:
    for reader, width in ((page, 1400), (stranger, 1400), (phone, 420)):
        reader.route("**", lambda request: request.fulfill(body="", content_type="text/html"))
        reader.goto("http://127.0.0.1/left")
        assert reader.evaluate(LEAVE) == ["", 1, 0, 0, width, False]  # what is stored is that the tour is closed
        reader.emulate_media(color_scheme="dark")
        reader.set_viewport_size({"width": 300, "height": 300})
