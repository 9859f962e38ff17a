"""What axe-core finds on a page in the browser.

``axe/axe.min.js`` is axe-core 4.14.0 as npm has it (MPL-2.0, ``axe/LICENSE``); it is for tests alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text(encoding="utf-8")
STREAMLIT_S_OWN = {
    # The sections of the navigation are <div>s between the list and its items.
    "list": '[data-testid="stSidebarNavItems"]',
    "listitem": '[data-testid="stSidebarNavItems"] li',
}
"""By rule, the elements that Streamlit draws so, and that we cannot change."""
_RUN = """async ([own, only]) => {
    const asked = {resultTypes: ['violations'], ...(only && {runOnly: only})};
    const found = (await axe.run(document, asked)).violations;
    return found.filter((rule) => ['serious', 'critical'].includes(rule.impact)).flatMap((rule) => rule.nodes
        // A place within a component is a list: the element that the component is in comes first.
        .filter(({target}) => !(own[rule.id] && document.querySelector([target[0]].flat()[0])?.matches(own[rule.id])))
        .map((node) => `${rule.id}: ${node.html.slice(0, 160)} ${node.failureSummary.slice(0, 200)}`));
}"""


def violations(page: Page, *only: str) -> list[str]:
    """Serious and critical ones, of all rules or ``only`` some."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE)
    found: list[Any] = page.evaluate(_RUN, [STREAMLIT_S_OWN, list(only) or None])
    return [str(each) for each in found]
