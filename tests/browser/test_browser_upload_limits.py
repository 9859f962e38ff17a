"""Several files at once, more than a session may hold: what is taken is read, and the reader learns of the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.servers import SLOW

pytestmark = pytest.mark.browser


def test_files_beyond_the_limit_are_not_lost_without_a_word(
    page: Page, serve: Callable[..., str], demo_cache: Path
) -> None:
    address = serve(demo_cache, HEADSCOPE_UPLOAD_MB="1", HEADSCOPE_UPLOADS_MB="1")
    page.goto(f"{address}/your_document")
    page.locator("input[type=file]").wait_for(state="attached", timeout=SLOW)
    text = b"The quagga grazes. " * 45_000
    page.locator("input[type=file]").set_input_files(
        [{"name": f"{name}.txt", "mimeType": "text/plain", "buffer": text} for name in ("one", "two")]
    )
    expect(page.get_by_role("textbox").first).to_have_value(text.decode().strip(), timeout=SLOW)
    expect(page.get_by_text("Some files were not accepted because you uploaded too many at once.")).to_be_visible()
