"""The versions of a note, and undo."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from simplemem.errors import Invalid
from simplemem.web.pages.page_routes import PageRoutes
from simplemem.web.pages.responses import ask, author_of, read_form, show_page
from simplemem.web.tokens import Grant
from simplemem.web.vault_view import VaultView

_MAX_VERSIONS: Final = 50
_MAX_MESSAGE_CHARACTERS: Final = 600


def routes(page: PageRoutes) -> list[Route]:
    """Return the routes of history and undo."""
    return [
        page.get("/history/{name:path}", _show_history),
        page.post("/undo", _undo, right="write"),
    ]


async def _show_history(request: Request, view: VaultView, grant: Grant) -> Response:
    """Show the last 50 versions of a note, with the diff of each.

    Raises NotFound or Ambiguous if the name is not that of one note.
    """
    name = request.path_params["name"]
    entries = await ask(view, lambda store: store.history(name, limit=_MAX_VERSIONS, diff=True))
    return show_page(
        view,
        grant,
        "history.html",
        f"History of {name}",
        name=name,
        entries=entries,
        message=request.query_params.get("result", "")[:_MAX_MESSAGE_CHARACTERS],
    )


async def _undo(request: Request, view: VaultView, grant: Grant) -> Response:
    """Undo a version, and redirect to the history of the note that the form names, or to the inbox.

    Raises HTTPError if the body is no form, Invalid if the form names no version, NotFound if there
    is no such version, Conflict or AlreadyExists if a later change prevents it, and ReadOnly.
    """
    form = await read_form(request)
    version = form.get("version", "")
    if not re.fullmatch(r"v\d{1,12}", version):
        raise Invalid(
            f"{version[:20]!r} is not a version",
            hint="Versions look like v12. The history lists them.",
        )

    author = author_of(request, grant)

    def undo() -> str:
        return view.executor.store().undo(version, **author).what

    undone = await view.executor.run(undo, writes=True)
    path = "/"
    if form.get("note"):
        path = f"/history/{quote(form['note'], errors='replace')}"
    query = urlencode({"result": f"Done: {undone}."})
    return RedirectResponse(f"{view.vault.prefix}{path}?{query}", 303)
