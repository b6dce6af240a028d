"""What all pages share: asking the store, forms, and the HTML of responses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from simplemem.errors import Invalid, SimplememError
from simplemem.note.names import path_of
from simplemem.note.scopes import is_private_by_rule
from simplemem.web.problem_documents import HTTPError, status_of
from simplemem.web.routing import is_browser_session
from simplemem.web.templating import render_template
from simplemem.web.tokens import Grant
from simplemem.web.vault_view import MountedVault, VaultView

if TYPE_CHECKING:
    from simplemem.models import AuthorArgs
    from simplemem.store import EnhancedStore

Result = TypeVar("Result")

_MAX_FIELDS: Final = 10  # of a form
_MAX_ADDRESS: Final = 2000  # characters of a page that a form leads back to

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none';"
    # For the diagrams of a note, each in a frame of its own that has no origin.
    " frame-src 'self';"
    # For the capture page, which a phone installs and which works offline.
    " manifest-src 'self'; worker-src 'self'"
)


async def ask(view: VaultView, question: Callable[[EnhancedStore], Result]) -> Result:
    """Return what a function reads from the store of a view. It runs in a thread.

    Raises the errors of the function, and Unavailable if the store cannot be opened.
    """
    return await view.executor.run(lambda: question(view.executor.store()))


def base_url(request: Request, view: VaultView) -> str:
    """Return the address of a vault as the browser of a request reached it, without `/` at its end.

    The header `Host` is one that the server answers to: the guard has checked it.
    """
    return f"{request.url.scheme}://{request.url.netloc}{view.vault.prefix}"


def author_of(request: Request, grant: Grant) -> AuthorArgs:
    """Return who makes a change on the page: a person, if the request is of a browser session."""
    author: AuthorArgs = {"who": grant.name, "tool": "page"}
    if is_browser_session(request):
        author["kind"] = "human"
    return author


def can_write(view: VaultView, grant: Grant) -> bool:
    """Return whether a page offers changes of notes: if the token and the vault allow them."""
    return grant.may("write") and not view.vault.settings.read_only


def read_only_reason(view: VaultView, names: Iterable[str]) -> str:
    """Return why a page offers no change of some notes; "" if all of them may be changed."""
    rules = view.vault.settings.access.read_only
    if not rules:
        return ""

    for name in names:
        if is_private_by_rule(path_of(name), rules):
            return f"{name} is read-only here: the setting access.read_only allows no changes."
    return ""


def page_of_server(view: VaultView, address: str) -> str:
    """Return an address if it is the path of a page of this vault; "" for any other.

    A form that leads back to where somebody came from must not lead to another server.
    """
    is_path = address.startswith(f"{view.vault.prefix}/") and not address.startswith("//")
    is_plain = address.isascii() and address.isprintable() and "\\" not in address
    if not is_path or not is_plain or len(address) > _MAX_ADDRESS:
        return ""
    return address


async def read_form(request: Request) -> dict[str, str]:
    """Return the values of a form by their names. If a name occurs again, the last value counts.

    Raises HTTPError for a body of another type, and Invalid for more than ten fields.
    """
    fields = await read_form_lists(request, _MAX_FIELDS)
    return {name: values[-1] for name, values in fields.items()}


async def read_form_lists(request: Request, max_fields: int) -> dict[str, list[str]]:
    """Return all values of a form by their names.

    Raises HTTPError for a body of another type, and Invalid for more than `max_fields` fields.
    """
    content_type = request.headers.get("content-type", "")
    media_type = content_type.partition(";")[0].strip()
    if media_type != "application/x-www-form-urlencoded":
        hint = "Send it with `Content-Type: application/x-www-form-urlencoded`."
        raise HTTPError(415, "the body must be a form", hint=hint)

    body = await request.body()
    text = body.decode("utf-8", "replace")
    try:
        return parse_qs(text, max_num_fields=max_fields)
    except ValueError:
        raise Invalid(f"the form has more than {max_fields} fields") from None


def show_page(
    view: VaultView,
    grant: Grant,
    template: str,
    title: str,
    /,
    *,
    query: str = "",
    status: int = 200,
    **values: Any,
) -> Response:
    """Return a whole page for somebody who is signed in.

    `query` is the text of the search field, and `values` are the variables of the template.
    """
    values |= {"prefix": view.vault.prefix, "title": title, "grant": grant, "query": query}
    values["can_write"] = can_write(view, grant)
    values["read_only_reason"] = partial(read_only_reason, view)
    return html_response(template, status, **values)


def show_part(view: VaultView, template: str, /, **values: Any) -> Response:
    """Return a part of a page, which the script puts into the page."""
    values["read_only_reason"] = partial(read_only_reason, view)
    return html_response(template, prefix=view.vault.prefix, **values)


def sign_in_page(prefix: str, destination: str, problem: str = "") -> Response:
    """Return the page that asks for a token (401), and leads to `destination` afterwards.

    `prefix` is that of a vault, or "" for the whole server. `problem` says what was wrong with the
    last token, if there was one.
    """
    return html_response(
        "sign_in.html",
        401,
        prefix=prefix,
        title="Sign in",
        destination=destination,
        problem=problem,
    )


def error_page(
    vault: MountedVault,
    grant: Grant | None,
    error: SimplememError,
    *,
    create_address: str = "",
    deleted_note: str = "",
) -> Response:
    """Return the page that shows an error, with the status of the error.

    If the reader may write and a note was not found, `create_address` is where they can create it.
    `deleted_note` is its name, if its deletion can be undone.
    """
    return html_response(
        "error.html",
        status_of(error),
        prefix=vault.prefix,
        title="Error",
        error=error,
        create_address=create_address,
        deleted_note=deleted_note,
        is_signed_in=grant is not None,
    )


def html_response(template: str, status: int = 200, /, **values: Any) -> Response:
    """Render a template into a response with the Content-Security-Policy of the page."""
    html = render_template(template, **values)
    # The name of a file may contain bytes that are no character, which UTF-8 cannot express.
    content = html.encode("utf-8", "replace")
    return HTMLResponse(content, status, {"Content-Security-Policy": POLICY})
