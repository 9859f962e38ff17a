"""The map as a widget, without a notebook: its module in a page, with a model that only remembers what it is told."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from headscope import open_run
from tests.browser.test_browser_head_map import draw, spot
from tests.pages.test_page_head_map import write_mapped

START = """async ({ esm, message }) => {
  const unpacked = (value) => {
    if (value?.bytes === undefined) return value && typeof value === "object" && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).map(([key, own]) => [key, unpacked(own)])) : value;
    const bytes = Uint8Array.from(atob(value.bytes), (letter) => letter.charCodeAt(0));
    return new DataView(bytes.buffer);
  };
  window.told = {};
  const [state, listeners] = [{ _message: unpacked(message) }, {}];
  window.model = {
    get: (name) => state[name],
    set: (name, value) => { window.told[name] = value; },
    save_changes: () => { document.body.dataset.saved = Object.keys(window.told).join(); },
    on: (event, act) => { listeners[event] = act; },
    off: () => {},
  };
  window.show = (next) => { state._message = unpacked(next); listeners["change:_message"](); };
  const { default: widget } = await import(URL.createObjectURL(new Blob([esm], { type: "text/javascript" })));
  window.before = location.href;
  widget.render({ model: window.model, el: document.body });
}"""


def sent(message: Any) -> Any:
    """The message as Jupyter would send it: bytes beside the JSON."""
    if isinstance(message, bytes):
        return {"bytes": base64.b64encode(message).decode()}
    return {key: sent(value) for key, value in message.items()} if isinstance(message, dict) else message


@pytest.fixture
def shown(page: Page, tmp_path: Path) -> tuple[Page, Any]:
    """The widget of the planted run, drawn."""
    write_mapped(tmp_path, "mapped")
    widget = open_run("mapped", cache=tmp_path).map(stage=1)
    page.goto("about:blank")
    page.set_content("<!doctype html><body></body>")
    page.evaluate(START, {"esm": widget._esm, "message": sent(widget._message)})
    expect(page.locator(".head-map .box[data-place]")).to_be_visible()
    return page, widget


def test_a_lasso_comes_back_as_documents_and_python_filters_the_heads(shown: tuple[Page, Any]) -> None:
    page, widget = shown
    page.get_by_role("button", name="Lasso").click()
    (left, top), (right, _), (_, bottom) = spot(page, 0, 1), spot(page, 9, 1), spot(page, 0, 3)
    right = (right + spot(page, 10, 1)[0]) / 2
    draw(page, [(left - 9, top - 12), (right, top - 12), (right, bottom + 12), (left - 9, bottom + 12)])
    expect(page.locator("body")).to_have_attribute("data-saved", "_picked")
    widget._picked = page.evaluate("window.told._picked")
    assert widget.selected == list(range(10))  # as they were planted
    assert widget.selected_documents["doc"].tolist() == list(range(10))
    # The reader's filter reaches Python, and Python's reaches the map.
    page.get_by_role("button", name="head 2", exact=True).dblclick()
    expect(page.locator(".head-map")).to_have_attribute("data-heads", "2")
    expect(page.locator("body")).to_have_attribute("data-saved", "_picked,_view")
    widget._view = page.evaluate("window.told._view")
    assert widget.heads == [2]
    widget.heads, widget.colour = [1, 3], "topic"
    page.evaluate("(next) => window.show(next)", sent(widget._message))
    expect(page.locator(".head-map")).to_have_attribute("data-heads", "1,3")
    expect(page.locator(".head-map")).to_have_attribute("data-colour", "topic")
    expect(page.locator(".head-map .box")).to_have_css("background-color", "rgb(252, 251, 248)")
    page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    expect(page.locator(".head-map .box")).to_have_css("background-color", "rgb(20, 23, 29)")
    assert page.evaluate("location.href === window.before")  # the notebook's address is its own
