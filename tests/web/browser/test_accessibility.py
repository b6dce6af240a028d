"""Every page has no finding of axe, in light and dark, and on a phone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.web.browser.conftest import PHONE_WIDTH, OpenPage
from tests.web.conftest import Served

pytestmark = pytest.mark.slow

PAGES = (
    "/",
    "/?q=plan",
    "/note/Plan",
    "/history/Plan",
    "/edit/Plan",
    "/new",
    "/move/Other",
    "/delete/Other",
    "/daily",
    "/capture",
    "/?show=all",
    "/review/v1",
    "/notes",
    "/tags",
    "/doctor",
    "/agents",
    "/note/none",
)

NOTE = "# Plan\n\nSee [[Other]] and #idea.\n\n- [ ] a task\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"


def findings_of(page: Page) -> list[str]:
    """Return what axe finds on a page: each rule, with the first element that breaks it."""
    violations = Axe().run(page).response["violations"]
    return [f"{violation['id']}: {violation['nodes'][0]['html']}" for violation in violations]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, PHONE_WIDTH])
def test_axe_finds_nothing_on_any_page(
    serve: Callable[..., Served],
    open_page: OpenPage,
    tmp_path: Path,
    scheme: Literal["light", "dark"],
    width: int,
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "Plan.md").write_text(NOTE)
    server = serve()
    server.tool("create_memory", name="Other", content="An agent wrote this.")

    page = open_page(server, width=width, scheme=scheme)
    for path in PAGES:
        page.goto(f"http://127.0.0.1:{server.port}{path}")
        assert findings_of(page) == [], path
