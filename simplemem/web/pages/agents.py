"""Who may use a vault and who does: tokens, clients, sessions, and the state of the index.

Tokens are those of the whole server, so the page is for administrators whose token is not limited
to a part of it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from simplemem.errors import Invalid
from simplemem.server.client_log import ClientActivity
from simplemem.web.pages.page_routes import PageRoutes
from simplemem.web.pages.responses import ask, base_url, read_form, show_page
from simplemem.web.problem_documents import HTTPError
from simplemem.web.token_use import TokenUse
from simplemem.web.tokens import Grant, Tokens, limiting_folder, scopes_of
from simplemem.web.vault_registry import VaultRegistry
from simplemem.web.vault_view import VaultView

_SECONDS_PER_DAY: Final = 86_400
_MAX_DAYS: Final = 36_500
_MAX_NUMBER: Final = 1_000_000_000
_MAX_CLIENTS: Final = 100


@dataclass(frozen=True)
class TokenRow:
    """A token as the page lists it. Times are in seconds since 1970; None stands for never."""

    name: str
    rights: str
    limits: str  # what it is limited to, and its quotas; "" without any
    expires: int | None
    last_use: int | None
    has_expired: bool


def routes(page: PageRoutes, tokens: Tokens, token_use: TokenUse) -> list[Route]:
    """Return the routes of agents and tokens."""
    show = partial(_show_agents, page.registry, tokens, token_use)
    return [
        page.get("/agents", show, right="admin"),
        page.post("/agents/new", partial(_create_token, tokens), right="admin"),
        page.post("/agents/revoke", partial(_revoke_token, tokens), right="admin"),
    ]


async def _show_agents(
    registry: VaultRegistry,
    tokens: Tokens,
    token_use: TokenUse,
    request: Request,
    view: VaultView,
    grant: Grant,
) -> Response:
    """Show the tokens, the clients since the server was started, and the state of the index.

    Raises HTTPError if the token is limited to a part of the server, and Unavailable if the file of
    tokens cannot be read.
    """
    _require_whole_server(grant)
    views = [other for other in registry.views() if other.vault is view.vault]
    return show_page(
        view,
        grant,
        "agents.html",
        "Agents",
        tokens=[_row_of(stored, token_use) for stored in tokens.all()],
        clients=_clients_of(views),
        session_count=sum(len(other.manager.session_ids()) for other in views),
        index=await ask(view, lambda store: store.state()),
        base_url=base_url(request, view),
        profile=view.vault.profile.name,
        revoked=request.query_params.get("revoked", ""),
    )


def _require_whole_server(grant: Grant) -> None:
    """Raise HTTPError (403) if a token is limited to some vaults, to folders or to a user."""
    if grant.is_limited:
        raise HTTPError(
            403,
            "tokens are those of the whole server, and this one is limited to a part of it",
            code="forbidden",
            hint="Use a token that is not limited to vaults, folders or a user.",
        )


def _row_of(grant: Grant, token_use: TokenUse) -> TokenRow:
    """Return the row of a token."""
    return TokenRow(
        name=grant.name,
        rights=", ".join(grant.scopes),
        limits="; ".join(grant.limits),
        expires=grant.expires,
        last_use=token_use.last_use(grant),
        has_expired=grant.has_expired,
    )


def _clients_of(views: Sequence[VaultView]) -> list[ClientActivity]:
    """Return the clients of several views, the one that was heard from last first, at most 100."""
    clients = [client for view in views for client in view.clients.latest_first()]
    clients.sort(key=lambda client: client.last_seen, reverse=True)
    return clients[:_MAX_CLIENTS]


# --- changes of tokens


async def _create_token(
    tokens: Tokens, request: Request, view: VaultView, grant: Grant
) -> Response:
    """Create a token from a form, and show it once, with how to connect a client.

    Raises HTTPError if the token of the request is limited to a part of the server, Invalid if a
    field is wrong or the name is taken, and Unavailable if the file of tokens cannot be written.
    """
    _require_whole_server(grant)
    form = await read_form(request)
    new_grant = _read_grant(form)
    token = tokens.new(new_grant)
    response = show_page(
        view,
        grant,
        "new_token.html",
        "New token",
        name=new_grant.name,
        token=token,
        base_url=base_url(request, view),
    )
    response.headers["Cache-Control"] = "no-store"
    return response


def _read_grant(form: dict[str, str]) -> Grant:
    """Return the grant that a form describes.

    Raises Invalid if a number or a folder is wrong, or if two rights exclude each other.
    """
    days = _read_number(form, "days", _MAX_DAYS)
    expires = int(time.time()) + days * _SECONDS_PER_DAY if days else None
    folder = form.get("folder", "").strip().strip("/")
    return Grant(
        form.get("name", "").strip(),
        scopes_of(
            write=bool(form.get("write")),
            propose=bool(form.get("propose")),
            admin=bool(form.get("admin")),
        ),
        folders=(limiting_folder(folder),) if folder else (),
        user=form.get("user", "").strip(),
        calls=_read_number(form, "calls", _MAX_NUMBER),
        kilobytes=_read_number(form, "kilobytes", _MAX_NUMBER),
        expires=expires,
    )


def _read_number(form: dict[str, str], field: str, greatest: int) -> int:
    """Return the number in a field of a form, 0 if it is empty.

    Raises Invalid unless it is a whole number from 0 to `greatest`.
    """
    text = form.get(field, "").strip()
    if not text:
        return 0
    is_number = text.isascii() and text.isdecimal()
    if not is_number or int(text[:12]) > greatest:
        raise Invalid(f"{field} must be a whole number, not {text[:20]!r}")
    return int(text)


async def _revoke_token(
    tokens: Tokens, request: Request, view: VaultView, grant: Grant
) -> Response:
    """Revoke the token that a form names, and redirect to the list.

    Raises HTTPError if the token of the request is limited to a part of the server, NotFound if
    there is no such token, and Unavailable if the file of tokens cannot be written.
    """
    _require_whole_server(grant)
    form = await read_form(request)
    revoked = tokens.revoke(form.get("name", ""))
    query = urlencode({"revoked": revoked.name})
    return RedirectResponse(f"{view.vault.prefix}/agents?{query}", 303)
