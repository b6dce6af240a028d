"""The web page: search, notes with their backlinks, and what agents changed today.

Today's changes have an undo button each. Each function below `routes` answers one path. The HTML is
in `templates/`. It works without the script, and fetches nothing from other hosts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import parse_qs, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from simplemem.errors import Invalid, SimplememError
from simplemem.note.names import name_of
from simplemem.note.words import format_count
from simplemem.web.browser_sessions import BrowserSessions
from simplemem.web.limits import GuessLimiter
from simplemem.web.problem_documents import HTTPError, status_of
from simplemem.web.render import MAX_CHARACTERS
from simplemem.web.rendering import Renderer
from simplemem.web.routing import API, Handler, is_browser_session, require_grant, route, view_for
from simplemem.web.static_files import send_static_file
from simplemem.web.templating import render_template
from simplemem.web.tokens import Grant
from simplemem.web.tokens import Scope as Right
from simplemem.web.vault_registry import VaultRegistry
from simplemem.web.vault_view import MountedVault, VaultView

if TYPE_CHECKING:
    from simplemem.models import AuthorArgs, Backlink, Found, HistoryEntry, Listed, Memory
    from simplemem.note.name_matching import NamedNote
    from simplemem.store import EnhancedStore

Result = TypeVar("Result")

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_MAX_HITS: Final = 20
_MAX_NAMES: Final = 5  # names of notes, listed above the hits
_MAX_RECENT_NOTES: Final = 20
_MAX_BACKLINKS: Final = 20
_MAX_RELATED_NOTES: Final = 6
_MAX_VERSIONS_OF_NOTE: Final = 5
_MAX_VERSIONS_IN_HISTORY: Final = 50
_MAX_CHANGES_TODAY: Final = 100
_MAX_TAGGED_NOTES: Final = 200
_OWN_PROPERTIES: Final = ("title", "tags", "description")  # shown above the text of a note
# Possessive, so that the time stays linear in the text, however many brackets it has.
_WIKILINK: Final = re.compile(r"\[\[([^\[\]|#]{1,400}+)[^\[\]]*+\]\]")


@dataclass(frozen=True, slots=True)
class TextPart:
    """A part of a property. It links to the note `target`, if there is one."""

    text: str
    target: str = ""


def routes(
    registry: VaultRegistry,
    vault: MountedVault,
    sessions: BrowserSessions,
    guesses: GuessLimiter,
    renderer: Renderer,
) -> list[Route]:
    """Return the routes of the page of one vault.

    `sessions` are those of all browsers, `guesses` counts wrong tokens, and `renderer` makes the
    HTML of notes.
    """

    def at(path: str, handler: Handler, method: str = "GET", *, right: Right = "read") -> Route:
        endpoint = partial(_show_to_signed_in, registry, vault, handler, right)
        return route(vault.prefix + path, endpoint, [method])

    sign_in = partial(_sign_in, vault, sessions, guesses)
    sign_out = partial(_sign_out, vault, sessions)
    return [
        at("/", _show_home),
        at("/search", _show_results),
        at("/latest", _show_latest),
        at("/note/{name:path}", partial(_show_note, renderer)),
        at("/history/{name:path}", _show_history),
        at("/today", _show_today),
        at("/tags", _show_tags),
        at("/tags/{tag:path}", _show_tagged),
        at("/graph", _show_graph),
        at("/doctor", _show_doctor, right="admin"),
        at("/undo", _undo, "POST", right="write"),
        route(f"{vault.prefix}/login", sign_in, ["POST"]),
        route(f"{vault.prefix}/logout", sign_out, ["POST"]),
        route(f"{vault.prefix}/static/{{file}}", send_static_file, ["GET"]),
    ]


async def _show_to_signed_in(
    registry: VaultRegistry, vault: MountedVault, handler: Handler, right: Right, request: Request
) -> Response:
    """Return the answer of a handler to a request of somebody who is signed in and has a right.

    Without a token, returns the sign-in page, which leads back to this page. An error of the
    handler, or a missing right, becomes the error page.
    """
    if request.scope.get("grant") is None:
        return _sign_in_page(vault, str(request.url.path))

    try:
        grant = require_grant(request.scope, right)
        view = await view_for(request, registry, vault, grant)
        return await handler(request, view, grant)
    except SimplememError as error:
        return _error_page(vault, request.scope.get("grant"), error)


# --- search and recent changes


async def _show_home(request: Request, view: VaultView, grant: Grant) -> Response:
    """Show the results of a query. Without one, show recent notes and how much changed today."""
    query = _query_of(request)
    if query:
        results = await _search(view, query, explain=_asks_why(request))
        return _page(view, grant, "home.html", query, **results)

    changes = await _list_changes_today(view)
    return _page(
        view,
        grant,
        "home.html",
        view.vault.root.name,
        changes_today=format_count(len(changes), "change"),
        notes=await _list_recent_notes(view),
    )


async def _show_results(request: Request, view: VaultView, _grant: Grant) -> Response:
    """Return the results part of the page, which the script fetches while the user types.

    Without a query, it has the recent notes.
    """
    query = _query_of(request)
    if query:
        results = await _search(view, query, explain=_asks_why(request))
        return _part(view, "results.html", **results)
    return _part(view, "recent.html", notes=await _list_recent_notes(view))


async def _show_latest(_request: Request, view: VaultView, _grant: Grant) -> Response:
    """Return the list of recent notes, which the script fetches after a change."""
    return _part(view, "latest.html", notes=await _list_recent_notes(view))


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

    found, named = await _ask(view, search_notes_and_names)
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
    page = await _ask(view, lambda store: store.list(sort="modified", limit=_MAX_RECENT_NOTES))
    return page.items


# --- one note


async def _show_note(
    renderer: Renderer, request: Request, view: VaultView, grant: Grant
) -> Response:
    """Show a note, with its links, backlinks, properties and latest versions.

    Raises NotFound if there is none, Ambiguous if several have the name.
    """
    name = request.path_params["name"]

    def read_note(
        store: EnhancedStore,
    ) -> tuple[Memory, Sequence[Backlink], Sequence[HistoryEntry]]:
        note = store.read(name)
        backlinks = store.backlinks(note.name, limit=_MAX_BACKLINKS)
        versions = store.history(note.name, limit=_MAX_VERSIONS_OF_NOTE)
        return note, backlinks, versions

    note, backlinks, versions = await _ask(view, read_note)
    body = _body_without_title(note)
    related = [link for link in backlinks if link.kind == "semantic"]
    properties = {
        str(key): split_property(value)
        for key, value in note.frontmatter.items()
        if key not in _OWN_PROPERTIES
    }
    return _page(
        view,
        grant,
        "note.html",
        note.title,
        note=note,
        rendered_body=await renderer.render(body, view.vault.prefix),
        is_cut=len(body) > MAX_CHARACTERS,
        linking_notes=[link for link in backlinks if link.kind == "link"],
        link_targets=list(dict.fromkeys(link.target for link in note.links if link.resolved)),
        related_notes=related[:_MAX_RELATED_NOTES],
        properties=properties,
        versions=versions,
    )


def _body_without_title(note: Memory) -> str:
    """Return the text of a note, without a first heading that repeats its title in any case."""
    first_line, _, rest = note.content.lstrip().partition("\n")
    if first_line.strip().casefold() == f"# {note.title}".casefold():
        return rest
    return note.content


def split_property(value: object) -> list[TextPart]:
    """Return the value of a property as text, in which each wikilink is a part of its own.

    The items of a list, and the entries of a mapping, have commas between them.
    """
    if isinstance(value, Mapping):
        entries = [[TextPart(f"{key}: "), *split_property(entry)] for key, entry in value.items()]
        return _join_with_commas(entries)

    if isinstance(value, (list, tuple)):
        return _join_with_commas([split_property(item) for item in value])

    text = str(value)
    parts = []
    end = 0
    for link in _WIKILINK.finditer(text):
        target = link[1]
        parts.append(TextPart(text[end : link.start()]))
        parts.append(TextPart(target.rpartition("/")[2], target))
        end = link.end()
    parts.append(TextPart(text[end:]))
    return parts


def _join_with_commas(items: Sequence[Sequence[TextPart]]) -> list[TextPart]:
    """Return the parts of several texts as those of one text, with commas between the texts."""
    parts: list[TextPart] = []
    for item in items:
        if parts:
            parts.append(TextPart(", "))
        parts.extend(item)
    return parts


# --- history


async def _show_history(request: Request, view: VaultView, grant: Grant) -> Response:
    """Show the last 50 versions of a note, with the diff of each.

    Raises NotFound or Ambiguous if the name is not that of one note.
    """
    name = request.path_params["name"]
    entries = await _ask(
        view, lambda store: store.history(name, limit=_MAX_VERSIONS_IN_HISTORY, diff=True)
    )
    return _page(
        view,
        grant,
        "history.html",
        f"History of {name}",
        name=name,
        entries=entries,
        can_undo=_can_undo(view, grant),
    )


async def _show_today(request: Request, view: VaultView, grant: Grant) -> Response:
    """Show what agents changed today, with an undo button per change."""
    return _page(
        view,
        grant,
        "today.html",
        "Today",
        entries=await _list_changes_today(view, diff=True),
        undone=request.query_params.get("undone", ""),
        can_undo=_can_undo(view, grant),
    )


async def _list_changes_today(view: VaultView, *, diff: bool = False) -> list[HistoryEntry]:
    """Return those of the last 100 changes of today that agents made, the latest first.

    They are recognized by the name of the tool, which contains `_` only for an agent. With `diff`,
    each has its diff.
    """
    entries = await _ask(
        view, lambda store: store.history(since="today", limit=_MAX_CHANGES_TODAY, diff=diff)
    )
    return [entry for entry in entries if "_" in entry.tool]


def _can_undo(view: VaultView, grant: Grant) -> bool:
    """Return whether a page shows buttons to undo changes: if the token and the vault allow it."""
    return grant.may("write") and not view.vault.settings.read_only


async def _undo(request: Request, view: VaultView, grant: Grant) -> Response:
    """Undo a version, and redirect to today's changes.

    Raises HTTPError if the body is no form, Invalid if the form names no version, NotFound if there
    is no such version, Conflict or AlreadyExists if a later change prevents it, and ReadOnly.
    """
    form = await _read_form(request)
    version = form.get("version", "")
    if not re.fullmatch(r"v\d{1,12}", version):
        raise Invalid(
            f"{version[:20]!r} is not a version",
            hint="Versions look like v12. The history lists them.",
        )

    author: AuthorArgs = {"who": grant.name, "tool": "page"}
    if is_browser_session(request):
        author["kind"] = "human"

    def undo() -> str:
        return view.executor.store().undo(version, **author).what

    undone = await view.executor.run(undo, writes=True)
    query = urlencode({"undone": undone})
    return RedirectResponse(f"{view.vault.prefix}/today?{query}", 303)


# --- tags, graph and problems


async def _show_tags(_request: Request, view: VaultView, grant: Grant) -> Response:
    """Show all tags, the most frequent first."""
    counts = await _ask(view, lambda store: store.tags())
    by_frequency = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return _page(view, grant, "tags.html", "Tags", counts=by_frequency)


async def _show_tagged(request: Request, view: VaultView, grant: Grant) -> Response:
    """Show up to 200 notes with a tag, whatever its value."""
    from simplemem.models import Filter

    tag = request.path_params["tag"]
    with_tag = Filter(tags={tag: ""})
    page = await _ask(view, lambda store: store.list(filter=with_tag, limit=_MAX_TAGGED_NOTES))
    return _page(view, grant, "tagged.html", f"#{tag}", tag=tag, notes=page.items)


async def _show_graph(_request: Request, view: VaultView, _grant: Grant) -> Response:
    """Show the graph of the vault: a page of its own, whose policy allows only its own script."""

    def draw(store: EnhancedStore) -> str:
        from simplemem.features.graph.drawing import build_store_drawing
        from simplemem.features.graph.graph_export import shorten_drawing
        from simplemem.features.graph.service import graph_of

        graph = graph_of(store).read()
        drawing = build_store_drawing(store, graph, notes="all", texts=False)
        html, _ = shorten_drawing(drawing, "html")
        return html

    html = await _ask(view, draw)
    return HTMLResponse(html, headers={"Content-Security-Policy": "frame-ancestors 'none'"})


async def _show_doctor(_request: Request, view: VaultView, grant: Grant) -> Response:
    """Show the problems that `simplemem doctor` finds. The route is for administrators."""
    findings = await _ask(view, lambda store: store.doctor())
    return _page(view, grant, "doctor.html", "Doctor", findings=findings)


# --- signing in


async def _sign_in(
    vault: MountedVault, sessions: BrowserSessions, guesses: GuessLimiter, request: Request
) -> Response:
    """Begin a session and go to the page that was asked for, or ask for the token again.

    Raises HTTPError for another body than a form, and if the address has sent more than 20 wrong
    tokens in a minute.
    """
    form = await _read_form(request)
    destination = _destination_within(vault, form.get("to", ""))

    session = sessions.sign_in(form.get("token", "").strip())
    if session is None:
        address = ""
        if request.client:
            address = request.client.host
        guesses.count(address)
        return _sign_in_page(vault, destination, "This token is unknown, revoked or expired.")

    response = RedirectResponse(destination, 303)
    sessions.set_cookie(response, session)
    return response


async def _sign_out(vault: MountedVault, sessions: BrowserSessions, request: Request) -> Response:
    """End the session of a browser, if it has one, and redirect to the home page."""
    session = request.cookies.get(sessions.cookie_name, "")
    sessions.sign_out(session)

    response = RedirectResponse(f"{vault.prefix}/", 303)
    sessions.delete_cookie(response)
    return response


def _destination_within(vault: MountedVault, path: str) -> str:
    """Return the path to go to after signing in: `path`, or the home page of the vault.

    It is the home page unless `path` is of this vault, so that no form can lead a browser to
    another host.
    """
    home = f"{vault.prefix}/"
    # A browser takes the rest of `//host` for another host.
    leads_elsewhere = re.match(r"[/\\]{2}", path)
    if path.startswith(home) and path.isprintable() and not leads_elsewhere:
        return path
    return home


async def _read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form, of each name the last one.

    Raises HTTPError for a body of another type, and Invalid for more than ten fields.
    """
    content_type = request.headers.get("content-type", "")
    media_type = content_type.partition(";")[0].strip()
    if media_type != "application/x-www-form-urlencoded":
        hint = "Send it with `Content-Type: application/x-www-form-urlencoded`."
        raise HTTPError(415, "the body must be a form", hint=hint)

    body = await request.body()
    text = body.decode("utf-8", "replace")
    try:
        fields = parse_qs(text, max_num_fields=10)
    except ValueError:
        raise Invalid("the form has more than ten fields") from None
    return {name: values[-1] for name, values in fields.items()}


# --- responses


async def _ask(view: VaultView, question: Callable[[EnhancedStore], Result]) -> Result:
    """Return what a function reads from the store of a view. It runs in a thread.

    Raises the errors of the function, and Unavailable if the store cannot be opened.
    """
    return await view.executor.run(lambda: question(view.executor.store()))


def _page(
    view: VaultView, grant: Grant, template: str, title: str, /, *, query: str = "", **values: Any
) -> Response:
    """Return a whole page for somebody who is signed in.

    `query` is the text of the search field, and `values` are those of the template.
    """
    prefix = view.vault.prefix
    return _html_response(template, prefix=prefix, title=title, grant=grant, query=query, **values)


def _part(view: VaultView, template: str, /, **values: Any) -> Response:
    """Return a part of a page, which the script puts into the page."""
    return _html_response(template, prefix=view.vault.prefix, **values)


def _sign_in_page(vault: MountedVault, destination: str, problem: str = "") -> Response:
    """Return the page that asks for a token (401), and leads to `destination` afterwards.

    `problem` says what was wrong with the last token, if there was one.
    """
    return _html_response(
        "sign_in.html",
        401,
        prefix=vault.prefix,
        title="Sign in",
        destination=destination,
        problem=problem,
    )


def _error_page(vault: MountedVault, grant: Grant | None, error: SimplememError) -> Response:
    """Return the page that shows an error, with the status of the error."""
    return _html_response(
        "error.html",
        status_of(error),
        prefix=vault.prefix,
        title="Error",
        error=error,
        is_signed_in=grant is not None,
    )


def show_unknown_path(registry: VaultRegistry, request: Request) -> Response | None:
    """Return the error page for a path at which nothing is served, with the search of its vault.

    Returns None if the client does not ask for HTML, for a path of the REST API, and for a path in
    no vault, or in one that the grant of the request may not see.
    """
    if not request.headers.get("accept", "").startswith("text/html"):
        return None

    grant: Grant | None = request.scope.get("grant")
    path = request.url.path
    for vault in registry.vaults.values():
        is_page = path.startswith(f"{vault.prefix}/") and not path.startswith(vault.prefix + API)
        is_visible = grant is None or registry.is_visible(vault.name, grant)
        if is_page and is_visible:
            hint = "Search for the note, or go to the home page."
            error = HTTPError(404, "nothing is at this address", code="not_found", hint=hint)
            return _error_page(vault, grant, error)
    return None


def _html_response(template: str, status: int = 200, /, **values: Any) -> Response:
    """Render a template into a response with the Content-Security-Policy of the page."""
    html = render_template(template, **values)
    # The name of a file may contain bytes that are no character, which UTF-8 cannot express.
    content = html.encode("utf-8", "replace")
    return HTMLResponse(content, status, {"Content-Security-Policy": POLICY})
