"""The MCP App in the official host of MCP Apps, in a real browser, with a real server behind it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, FrameLocator, Page, expect

from simplemem.server.apps import EXTENSION_ID, MIME_TYPE, app_resource
from tests.web.conftest import Served, Session

pytestmark = pytest.mark.slow

HOST = Path(__file__).parent / "vendor" / "app-host.js"


CAPABILITIES = {"extensions": {EXTENSION_ID: {"mimeTypes": [MIME_TYPE]}}}


def show_app(page: Page, session: Session, result: dict[str, Any]) -> FrameLocator:
    """Show the app in the host, as the result of a tool, and return its frame.

    The host passes the app's calls of tools on to the server, in the same session.
    """
    page.expose_function("passOn", lambda name, arguments: session.call(name, **arguments))
    page.add_script_tag(path=HOST)
    html = app_resource().contents[0].text  # type: ignore[union-attr]
    page.evaluate("([html, result]) => window.showApp(html, result)", [html, result])
    return page.frame_locator("iframe")


def test_after_a_write_the_app_shows_the_change_and_undoes_it(
    serve: Callable[..., Served], chromium: Browser, tmp_path: Path
) -> None:
    server = serve()
    note = tmp_path / "vault" / "Heron.md"
    server.api("PUT", "/memories/Heron", {"content": "It is blue."})
    before = note.read_bytes()
    session = Session(server, capabilities=CAPABILITIES)
    session.call("read_memory", name="Heron")
    written = session.call("update_memory", name="Heron", old_text="blue", new_text="grey")

    page = chromium.new_page()
    app = show_app(page, session, written)
    expect(app.locator("ins")).to_have_text("grey")
    expect(app.locator("del")).to_have_text("blue")
    expect(app.get_by_text("Read before: Heron")).to_be_visible()

    app.get_by_role("button", name="Undo").click()
    expect(app.get_by_text("Undone")).to_be_visible()
    assert note.read_bytes() == before
    page.close()


def test_the_text_of_a_note_runs_nothing_in_the_app(
    serve: Callable[..., Served], chromium: Browser
) -> None:
    session = Session(serve(), capabilities=CAPABILITIES)
    hostile = "<img src=x onerror=parent.postMessage({},'*')><script>document.title='run'</script>"
    written = session.call("create_memory", name="Heron", content=hostile)

    page = chromium.new_page()
    app = show_app(page, session, written)
    expect(app.get_by_text("<script>")).to_be_visible()
    assert app.locator("article img, article script").count() == 0
    page.close()


def test_the_inbox_in_the_app_keeps_one_change_and_leaves_the_other(
    serve: Callable[..., Served], chromium: Browser
) -> None:
    session = Session(serve("--tools", "review"), capabilities=CAPABILITIES)
    for name in ("Heron", "Boat"):
        session.call("create_memory", name=name, content="Seen today.")
    inbox = session.call("review_changes")

    page = chromium.new_page()
    app = show_app(page, session, inbox)
    expect(app.get_by_role("heading", name="2 changes to review")).to_be_visible()
    app.locator("article", has_text="Heron").get_by_role("button", name="Keep").click()
    expect(app.locator("article", has_text="Heron").get_by_text("Kept")).to_be_visible()

    left = session.call("review_changes")["structuredContent"]["changes"]
    assert [change["name"] for change in left] == ["Boat"]
    page.close()
