"""Headscope in the browser: ``streamlit run app.py``."""

from pathlib import Path

import streamlit as st

from pages.shared.url import note_page

# The icon is a file of ours: an emoji or a symbol by name would be fetched from elsewhere by every reader's browser.
st.set_page_config(
    page_title="Headscope", page_icon=str(Path(__file__).parent / "pages/shared/icon.png"), layout="wide"
)

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
        ],
        "Use": [
            st.Page("pages/use/your_document.py", title="Your document", icon=":material/upload_file:"),
        ],
    }
)
note_page(page.url_path)
page.run()
