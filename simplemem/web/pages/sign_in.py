"""Signing in to the page with a token, and signing out."""

from __future__ import annotations

import re
from functools import partial

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from simplemem.web.browser_sessions import BrowserSessions
from simplemem.web.limits import GuessLimiter
from simplemem.web.pages.responses import read_form, sign_in_page
from simplemem.web.routing import route


def routes(prefix: str, sessions: BrowserSessions, guesses: GuessLimiter) -> list[Route]:
    """Return the routes by which a browser signs in to the pages below a prefix, and out.

    `prefix` is that of a vault, or "" for the whole server. `sessions` are those of all browsers,
    and `guesses` counts wrong tokens.
    """
    sign_in = partial(_sign_in, prefix, sessions, guesses)
    sign_out = partial(_sign_out, prefix, sessions)
    return [
        route(f"{prefix}/login", sign_in, ["POST"]),
        route(f"{prefix}/logout", sign_out, ["POST"]),
    ]


async def _sign_in(
    prefix: str, sessions: BrowserSessions, guesses: GuessLimiter, request: Request
) -> Response:
    """Begin a session and go to the page that was asked for, or ask for the token again.

    Raises HTTPError for another body than a form, and if the address has sent more than 20 wrong
    tokens in a minute.
    """
    form = await read_form(request)
    destination = _destination_within(prefix, form.get("to", ""))

    session = sessions.sign_in(form.get("token", "").strip())
    if session is None:
        address = ""
        if request.client:
            address = request.client.host
        guesses.count(address)
        return sign_in_page(prefix, destination, "This token is unknown, revoked or expired.")

    response = RedirectResponse(destination, 303)
    sessions.set_cookie(response, session)
    return response


async def _sign_out(prefix: str, sessions: BrowserSessions, request: Request) -> Response:
    """End the session of a browser, if it has one, and redirect to the home page."""
    session = request.cookies.get(sessions.cookie_name, "")
    sessions.sign_out(session)

    response = RedirectResponse(f"{prefix}/", 303)
    sessions.delete_cookie(response)
    return response


def _destination_within(prefix: str, path: str) -> str:
    """Return the path to go to after signing in: `path`, or the home page below the prefix.

    It is the home page unless `path` is below the prefix, so that no form can lead a browser to
    another host.
    """
    home = f"{prefix}/"
    # A browser takes the rest of `//host` for another host.
    leads_elsewhere = re.match(r"[/\\]{2}", path)
    if path.startswith(home) and path.isprintable() and not leads_elsewhere:
        return path
    return home
