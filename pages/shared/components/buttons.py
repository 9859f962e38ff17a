"""How the buttons of small components look: as Streamlit's own do."""

BUTTON_CSS = """
div { display: flex; flex-wrap: wrap; gap: .5rem; }
button { font: inherit; font-size: .93rem; color: inherit; background: none; cursor: pointer; padding: .3rem .75rem;
  border: 1px solid var(--st-border-color, #8888); border-radius: var(--st-button-radius, .5rem); min-height: 2.2rem; }
button:hover { border-color: var(--st-primary-color); color: var(--st-primary-color); }
button:disabled { opacity: .45; cursor: default; }
button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 2px; }
"""
