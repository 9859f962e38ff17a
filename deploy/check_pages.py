"""Runs every page of the app without a browser and ends with 1 if one of them failed.

Streamlit's health endpoint answers without running a line of the app: this is for people who want to know whether a
container shows anything (``docker compose exec app python deploy/check_pages.py``). The pages are all of
``pages/``; on "Your document" a text is embedded, so the model is asked too.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parent.parent
PAGES = tuple(sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("pages/*/*/page.py")))
DOCUMENT_PAGE = "pages/use/your_document/page.py"
TEXT = "The telescope found a planet that circles two stars, and astronomers measured the light of both."
LAST_PART = "Export"
PATIENCE = 120
"""Seconds for a page; the model is loaded within one of them."""


def main() -> int:
    sys.path.insert(0, str(ROOT))  # as `streamlit run` does for the folder of the script
    failed = [page for page in PAGES if not passes(page)]
    if not PAGES:
        print("No page was found.", file=sys.stderr)
    return 1 if failed or not PAGES else 0


def passes(page: str) -> bool:
    """Whether the page ran to its end, with something on it and without an exception or an error; says so."""
    started = time.monotonic()
    try:
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=PATIENCE).run()
        app.switch_page(page).run()
        if page == DOCUMENT_PAGE and not app.exception:
            embed(app)
        faults = [str(element.value) for element in (*app.exception, *app.error)]
        if not faults and not app.title:
            faults = ["nothing was shown"]
    except Exception as error:  # AppTest's own: a page that took too long, a button that is not there
        faults = [f"{type(error).__name__}: {error}"]
    print(f"{page}: {'; '.join(faults) or 'ok'} ({time.monotonic() - started:.1f} s)", flush=True)
    return not faults


def embed(app: AppTest) -> None:
    """Pastes a text and waits, as the page's own polling would, for the last part of what it then shows."""
    app.text_area[0].set_value(TEXT)
    next(button for button in app.button if button.label == "Embed").click()
    until = time.monotonic() + PATIENCE
    while not (app.run().exception or app.error or any(heading.value == LAST_PART for heading in app.subheader)):
        if time.monotonic() > until:
            raise TimeoutError(f"no '{LAST_PART}' after {PATIENCE} s")
        time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main())
