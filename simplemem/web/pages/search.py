"""Search, recent notes, and tags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from simplemem.note.names import name_of
from simplemem.note.words import format_count
from simplemem.web.pages.page_routes import PageRoutes
from simplemem.web.pages.responses import ask, show_page, show_part
from simplemem.web.tokens import Grant
from simplemem.web.vault_view import VaultView

if TYPE_CHECKING:
    from simplemem.models import Found, Listed
    from simplemem.note.name_matching import NamedNote
    from simplemem.store import EnhancedStore

_MAX_HITS: Final = 20
_MAX_NAMES: Final = 5  # names of notes, listed above the hits
_MAX_RECENT_NOTES: Final = 20
_MAX_TAGGED_NOTES: Final = 200


def routes(page: PageRoutes) -> list[Route]:
    """Return the routes of search, of the parts that the script fetches, and of tags."""
    return [
        page.get("/notes", _show_recent_notes),
        page.get("/search", _show_results),
        page.get("/latest", _show_latest),
        page.get("/tags", _show_tags),
        page.get("/tags/{tag:path}", _show_tagged),
    ]


async def show_results(request: Request, view: VaultView, grant: Grant) -> Response:
    """Show the page with the results of a query, which the request must have."""
    query = _query_of(request)
    results = await _search(view, query, explain=_asks_why(request))
    return show_page(view, grant, "home.html", query, **results)


async def _show_recent_notes(_request: Request, view: VaultView, grant: Grant) -> Response:
    """Show the notes that changed last."""
    notes = await _list_recent_notes(view)
    return show_page(view, grant, "notes.html", "Notes", notes=notes)


async def _show_results(request: Request, view: VaultView, _grant: Grant) -> Response:
    """Return the results part of the page, which the script fetches while the user types.

    Without a query, it has the recent notes.
    """
    query = _query_of(request)
    if query:
        results = await _search(view, query, explain=_asks_why(request))
        return show_part(view, "results.html", **results)
    return show_part(view, "recent.html", notes=await _list_recent_notes(view))


async def _show_latest(_request: Request, view: VaultView, _grant: Grant) -> Response:
    """Return the list of recent notes, which the script fetches after a change."""
    return show_part(view, "latest.html", notes=await _list_recent_notes(view))


def _query_of(request: Request) -> str:
    """Return the query in an address, or "" if there is none."""
    return request.query_params.get("q", "").strip()


def _asks_why(request: Request) -> bool:
    """Return whether the hits are to have their scores, which takes about twice the time."""
    return request.query_params.get("explain") == "1"


async def _search(view: VaultView, query: str, *, explain: bool) -> dict[str, Any]:
    """Return the values of `results.html`: `hits`, `messages`, and notes whose `names` match.

    With `explain`, the hits have their scores and what these are made of.
    """

    def search_notes_and_names(store: EnhancedStore) -> tuple[Found, list[NamedNote]]:
        """Return what the search finds, and the notes whose names match."""
        found = store.search(query, limit=_MAX_HITS, explain=explain)
        return found, store.find_names(query, limit=_MAX_NAMES)

    found, named = await ask(view, search_notes_and_names)
    names = [{"name": name_of(note.path), "title": note.name} for note in named]
    messages = _describe_results(found)
    return {"query": query, "hits": found.hits, "messages": messages, "names": names}


def _describe_results(found: Found) -> list[str]:
    """Return the sentences above the hits: what is missing, and what limited the search.

    [] if there are hits and nothing else to say.
    """
    missing = []
    if found.absent:
        missing.append(f"No note contains: {', '.join(found.absent)}.")
    if found.not_searched:
        excluded = format_count(found.not_searched, "note")
        missing.append(f"Not looked at: {excluded} excluded from search.")

    messages = [" ".join(missing)]
    if found.hits:
        messages.append(found.notice)
    elif found.index.is_ready:
        messages.append("Nothing found.")
    else:
        messages.append("No answer yet.")

    if not found.index.is_ready:
        messages.append(found.index.reason)
    messages.append(found.degraded)
    return [message for message in messages if message]


async def _list_recent_notes(view: VaultView) -> Sequence[Listed]:
    """Return the 20 notes that changed last, the latest first."""
    page = await ask(view, lambda store: store.list(sort="modified", limit=_MAX_RECENT_NOTES))
    return page.items


async def _show_tags(_request: Request, view: VaultView, grant: Grant) -> Response:
    """Show all tags, the most frequent first."""
    counts = await ask(view, lambda store: store.tags())
    by_frequency = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return show_page(view, grant, "tags.html", "Tags", counts=by_frequency)


async def _show_tagged(request: Request, view: VaultView, grant: Grant) -> Response:
    """Show up to 200 notes with a tag, whatever its value."""
    from simplemem.models import Filter

    tag = request.path_params["tag"]
    with_tag = Filter(tags={tag: ""})
    page = await ask(view, lambda store: store.list(filter=with_tag, limit=_MAX_TAGGED_NOTES))
    return show_page(view, grant, "tagged.html", f"#{tag}", tag=tag, notes=page.items)
