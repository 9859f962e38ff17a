"""What the browser tests wait by: a page that is settled can be read once, with all that it will show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page

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
