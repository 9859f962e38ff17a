"""Headscope in the browser: ``streamlit run app.py``.

The file has two halves. The server imports it once and serves ``app``; Streamlit then runs it anew for every visitor.
"""

import streamlit as st

from pages.shared.front_door import ICON, front_door
from pages.shared.guard import MIDDLEWARE
from pages.shared.server import ROUTES, lifespan
from pages.shared.url import note_page
from pages.shared.visit import visit


def show() -> None:
    """The page that a visitor asks for, or what stands before it."""
    st.set_page_config(page_title="Headscope", page_icon=ICON, layout="wide")
    door = front_door()
    # Pages live one level down: a direct child of pages/ could be reached around this file.
    page = st.navigation(
        {
            "Explore": [
                st.Page("pages/explore/overview.py", title="Overview", icon=":material/dashboard:", default=True),
                st.Page("pages/explore/head_map.py", title="Head map", icon=":material/scatter_plot:"),
                st.Page("pages/explore/heat_map.py", title="Topic heat map", icon=":material/grid_on:"),
                st.Page("pages/explore/head_profile.py", title="Head profile", icon=":material/person_search:"),
            ],
            "Understand": [
                st.Page("pages/understand/stages.py", title="Stages", icon=":material/layers:"),
                st.Page("pages/understand/topics.py", title="Topics", icon=":material/category:"),
                st.Page("pages/understand/layers.py", title="Layers", icon=":material/stacked_line_chart:"),
                st.Page("pages/understand/attention.py", title="Attention", icon=":material/visibility:"),
            ],
            "Use": [
                st.Page("pages/use/your_document.py", title="Your document", icon=":material/upload_file:"),
                st.Page("pages/use/retrieval_lab.py", title="Retrieval lab", icon=":material/manage_search:"),
            ],
        },
        position="sidebar" if door is None else "hidden",
    )
    if door is not None:  # the address is known, but nothing of its page is run
        door()
        return
    note_page(page.url_path)
    visit(page)


if __name__ == "__main__":
    show()
else:
    app = st.App(__file__, lifespan=lifespan, routes=ROUTES, middleware=MIDDLEWARE)
