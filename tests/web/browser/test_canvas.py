"""The page of a canvas in a browser: a drawing in light and dark, on a phone, without a script."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from tests.web.browser.conftest import PHONE_WIDTH, OpenPage
from tests.web.browser.test_accessibility import findings_of
from tests.web.conftest import Served

pytestmark = pytest.mark.slow

CANVAS = {
    "nodes": [
        {"id": "g", "type": "group", "label": "Plan", "x": -40, "y": -40, "width": 1000},
        {"id": "a", "type": "text", "text": "Start <b>here</b>", "x": 0, "y": 0, "color": "1"},
        {"id": "b", "type": "file", "file": "Other.md", "x": 400, "y": 200, "color": "#12ab9f"},
        {"id": "c", "type": "link", "url": "https://example.org/", "x": 3000, "y": 2000},
    ],
    "edges": [
        {"fromNode": "a", "toNode": "b", "label": "leads to", "color": "5"},
        {"fromNode": "b", "toNode": "c", "fromSide": "right", "toSide": "top"},
    ],
}


@pytest.fixture
def server(serve: Callable[..., Served], tmp_path: Path) -> Served:
    """Return a server on a vault with a canvas."""
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "Map.canvas").write_text(json.dumps(CANVAS))
    (vault / "Other.md").write_text("The other note.\n")
    return serve()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, PHONE_WIDTH])
def test_a_canvas_is_accessible_and_scrolls_in_its_frame(
    server: Served, open_page: OpenPage, scheme: Literal["light", "dark"], width: int
) -> None:
    page = open_page(server, "/canvas/Map.canvas", width=width, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    drawing = page.locator(".drawing")
    assert drawing.evaluate("box => box.scrollWidth > box.clientWidth")
    assert drawing.evaluate("box => box.scrollHeight > box.clientHeight")
    assert findings_of(page) == []


def test_a_canvas_can_be_seen_as_a_whole_and_leads_to_its_notes_without_a_script(
    server: Served, open_page: OpenPage
) -> None:
    page = open_page(server, "/canvas/Map.canvas", script=False)
    page.check("text=Show the whole canvas")
    drawing = page.locator(".drawing")
    assert drawing.locator("svg").bounding_box()["width"] <= drawing.bounding_box()["width"]
    page.uncheck("text=Show the whole canvas")
    drawing.get_by_role("link", include_hidden=True).filter(has_text="Other").click()
    page.wait_for_selector("h1:has-text('Other')")
