"""The page on which somebody notes a thought down quickly, also on a phone without a connection.

The script stores a text in the browser before it sends it, and sends it again until the server has
confirmed it. A service worker caches this page and the static files that it uses.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from simplemem.errors import SimplememError
from simplemem.web.pages.edit import check_vault_is_writable, is_from_script, refusal_json, write
from simplemem.web.pages.page_routes import PageRoutes
from simplemem.web.pages.responses import author_of, read_form, show_page
from simplemem.web.problem_documents import Json, status_of
from simplemem.web.tokens import Grant
from simplemem.web.vault_view import VaultView

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore


def routes(page: PageRoutes) -> list[Route]:
    """Return the routes of the capture page."""
    return [
        page.get("/capture", _show_capture, right="write"),
        page.post("/capture", _take_capture, right="write"),
        page.get("/captured", _show_captured, right="write"),
    ]


async def _show_capture(_request: Request, view: VaultView, grant: Grant) -> Response:
    """Show the field. The page contains nothing of a note, because browsers cache it."""
    check_vault_is_writable(view)
    return _capture_page(view, grant)


async def _show_captured(_request: Request, view: VaultView, grant: Grant) -> Response:
    """Show the field after a text was saved without the script."""
    check_vault_is_writable(view)
    return _capture_page(view, grant, message="Saved.")


async def _take_capture(request: Request, view: VaultView, grant: Grant) -> Response:
    """Add a text to a note, but only once for each id, because a browser may send it again.

    The script gets the name of the note as JSON. If the text cannot be added, the page has it
    again, and says why.
    """
    # Imported here, because it would slow down the start of every server.
    from simplemem.features.capture import Capture, add_capture, read_made

    form = await read_form(request)
    text = form.get("text", "")
    capture = Capture(form.get("id", ""), text, read_made(form.get("made", "")))
    author = author_of(request, grant)

    def add(store: EnhancedStore) -> str:
        return add_capture(store, capture, author)

    try:
        name = await write(view, add)
    except SimplememError as error:
        if is_from_script(request):
            return refusal_json(error)
        message = f"Not saved: {error.message}"
        return _capture_page(view, grant, text=text, message=message, status=status_of(error))

    if is_from_script(request):
        return Json({"name": name})
    return RedirectResponse(f"{view.vault.prefix}/captured", 303)


def _capture_page(
    view: VaultView, grant: Grant, *, text: str = "", message: str = "", status: int = 200
) -> Response:
    """Return the page with the field, and with a new id for what will be typed there."""
    return show_page(
        view,
        grant,
        "capture.html",
        "Capture",
        text=text,
        message=message,
        id=secrets.token_hex(16),
        status=status,
    )
