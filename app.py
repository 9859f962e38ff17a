"""Headscope in the browser: ``streamlit run app.py``.

The file has two halves. The server imports it once and serves ``app``; Streamlit then runs it anew for every visitor.
"""

import streamlit as st
from streamlit.navigation.page import Page

from core import VERSION
from pages.shared.components.tour import tour
from pages.shared.server.front_door import ICON, front_door
from pages.shared.server.guard import MIDDLEWARE
from pages.shared.server.lifespan import ROUTES, lifespan
from pages.shared.server.visit import shown_run, visit
from pages.shared.theme import PAGE_STYLE
from pages.shared.url import note_page

# A folder per page, with its page.py: a direct child of pages/ could be reached around this file.
PAGES = {
    "Explore": [
        ("overview", "Overview", "dashboard"),
        ("head_map", "Head map", "scatter_plot"),
        ("heat_map", "Topic heat map", "grid_on"),
        ("head_profile", "Head profile", "person_search"),
        ("compare_runs", "Compare runs", "compare"),
    ],
    "Understand": [
        ("stages", "Stages", "layers"),
        ("topics", "Topics", "category"),
        ("aspects", "Aspects", "label"),
        ("layers", "Layers", "stacked_line_chart"),
        ("attention", "Attention", "visibility"),
        ("ablation", "Ablation", "toggle_off"),
    ],
    "Use": [
        ("your_document", "Your document", "upload_file"),
        ("retrieval_lab", "Retrieval lab", "manage_search"),
    ],
}
DEFAULT = "overview"


def _page(section: str, name: str, title: str, icon: str) -> Page:
    first = name == DEFAULT
    return st.Page(
        f"pages/{section.lower()}/{name}/page.py",
        title=title,
        icon=f":material/{icon}:",
        url_path=None if first else name,
        default=first,
    )


def show() -> None:
    """The page that a visitor asks for, or what stands before it."""
    st.set_page_config(page_title="Headscope", page_icon=ICON, layout="wide")
    door = front_door()
    page = st.navigation(
        {section: [_page(section, *page) for page in pages] for section, pages in PAGES.items()},
        position="sidebar" if door is None else "hidden",
        expanded=True,
    )
    if door is not None:  # the address is known, but nothing of its page is run
        door()
        return
    st.html(PAGE_STYLE)
    note_page(page.url_path)
    visit(page)
    st.sidebar.caption(f"Headscope {VERSION}")  # below what the page puts there
    if shown_run() is not None:  # there is something to show
        tour(page.url_path or DEFAULT)


if __name__ == "__main__":
    show()
else:
    app = st.App(__file__, lifespan=lifespan, routes=ROUTES, middleware=MIDDLEWARE)
