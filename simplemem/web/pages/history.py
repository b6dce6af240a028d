"""The versions of a note, what agents changed today, and undo."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from simplemem.errors import Invalid
from simplemem.web.pages.page_routes import PageRoutes
from simplemem.web.pages.responses import ask, author_of, can_undo, read_form, show_page
from simplemem.web.tokens import Grant
from simplemem.web.vault_view import VaultView

if TYPE_CHECKING:
    from simplemem.models import HistoryEntry

_MAX_VERSIONS_IN_HISTORY: Final = 50
_MAX_CHANGES_TODAY: Final = 100


def routes(page: PageRoutes) -> list[Route]:
    """Return the routes of history and undo."""
    return [
        page.get("/history/{name:path}", _show_history),
        page.get("/today", _show_today),
        page.post("/undo", _undo, right="write"),
    ]


async def _show_history(request: Request, view: VaultView, grant: Grant) -> Response:
    """Show the last 50 versions of a note, with the diff of each.

    Raises NotFound or Ambiguous if the name is not that of one note.
    """
    name = request.path_params["name"]
    entries = await ask(
        view, lambda store: store.history(name, limit=_MAX_VERSIONS_IN_HISTORY, diff=True)
    )
    return show_page(
        view,
        grant,
        "history.html",
        f"History of {name}",
        name=name,
        entries=entries,
        can_undo=can_undo(view, grant),
    )


async def _show_today(request: Request, view: VaultView, grant: Grant) -> Response:
    """Show what agents changed today, with an undo button per change."""
    return show_page(
        view,
        grant,
        "today.html",
        "Today",
        entries=await list_changes_today(view, diff=True),
        undone=request.query_params.get("undone", ""),
        can_undo=can_undo(view, grant),
    )


async def list_changes_today(view: VaultView, *, diff: bool = False) -> list[HistoryEntry]:
    """Return those of the last 100 changes of today that agents made, the latest first.

    They are recognized by the name of the tool, which contains `_` only for an agent. With `diff`,
    each has its diff.
    """
    entries = await ask(
        view, lambda store: store.history(since="today", limit=_MAX_CHANGES_TODAY, diff=diff)
    )
    return [entry for entry in entries if "_" in entry.tool]


async def _undo(request: Request, view: VaultView, grant: Grant) -> Response:
    """Undo a version, and redirect to today's changes.

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
    query = urlencode({"undone": undone})
    return RedirectResponse(f"{view.vault.prefix}/today?{query}", 303)
