"""Headscope in the browser: ``streamlit run app.py``."""

import streamlit as st

st.set_page_config(page_title="Headscope", page_icon=":material/visibility:", layout="wide")

# Pages live one level down: a direct child of pages/ could be reached around this file.
page = st.navigation(
    {
        "Explore": [
            st.Page("pages/explore/overview.py", title="Overview", icon=":material/dashboard:", default=True),
        ],
    }
)
page.run()
