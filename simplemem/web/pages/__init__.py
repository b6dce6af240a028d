"""The web page: review of what agents changed, search, notes, and their history.

Each module has the pages of one subject and their `routes`. The HTML is in `web/templates/`. The
page works without the script, and fetches nothing from other hosts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from simplemem.web.browser_sessions import BrowserSessions
from simplemem.web.limits import GuessLimiter
from simplemem.web.pages import (
    agents,
    capture,
    completion,
    edit,
    files,
    graph,
    health,
    history,
    note,
    note_actions,
    proposals,
    review,
    search,
    sign_in,
    vault_list,
)
from simplemem.web.pages.filter_options import read_filter_options
from simplemem.web.pages.page_routes import PageRoutes
from simplemem.web.pages.responses import error_page
from simplemem.web.problem_documents import HTTPError
from simplemem.web.rendering import Renderer
from simplemem.web.routing import API, route
from simplemem.web.static_files import send_static_file
from simplemem.web.templating import compile_templates
from simplemem.web.token_use import TokenUse
from simplemem.web.tokens import Tokens
from simplemem.web.vault_registry import VaultRegistry
from simplemem.web.vault_view import MountedVault

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore
    from simplemem.web.tokens import Grant


@dataclass(frozen=True, kw_only=True)
class PageServices:
    """What the pages of all vaults of a server share.

    Attributes:
        sessions: The sessions of all browsers.
        guesses: Counts the wrong tokens of each address.
        renderer: Makes the HTML of notes.
        tokens: The tokens of the server.
        token_use: When each token was used last.
    """

    sessions: BrowserSessions
    guesses: GuessLimiter
    renderer: Renderer
    tokens: Tokens
    token_use: TokenUse


def routes(registry: VaultRegistry, vault: MountedVault, services: PageServices) -> list[Route]:
    """Return the routes of the page of one vault."""
    page = PageRoutes(registry, vault)
    return [
        *review.routes(page, services.renderer),
        *proposals.routes(page),
        *search.routes(page),
        *note.routes(page, services.renderer),
        *edit.routes(page, services.renderer),
        *completion.routes(page),
        *note_actions.routes(page),
        *capture.routes(page),
        *files.routes(page),
        *history.routes(page),
        *graph.routes(page),
        *health.routes(page),
        *agents.routes(page, services.tokens, services.token_use),
        *sign_in.routes(vault.prefix, services.sessions, services.guesses),
        route(f"{vault.prefix}/static/{{file:path}}", send_static_file, ["GET"]),
    ]


def server_routes(registry: VaultRegistry, services: PageServices) -> list[Route]:
    """Return the routes of the list of vaults, if a server has several; else none.

    The only vault of a server has its own home page there.
    """
    if "" in registry.vaults:
        return []
    return [
        route("/", partial(vault_list.show_vaults, registry), ["GET"]),
        *sign_in.routes("", services.sessions, services.guesses),
        route("/static/{file:path}", send_static_file, ["GET"]),
    ]


def warm_up(store: EnhancedStore) -> None:
    """Prepare what the first search and the first page would have to wait for.

    These are names, links, the term index and the templates.
    """
    store.find_names("")
    read_filter_options(store)
    # By words only, so that no embedding service is asked.
    store.search("the first words", limit=1, mode="text")
    compile_templates()


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
            return error_page(vault, grant, error)
    return None
