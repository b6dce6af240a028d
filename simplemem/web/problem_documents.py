"""JSON responses, and errors as problem documents (RFC 9457) with our codes.

A problem document contains nothing of a traceback or a note.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from simplemem.errors import SimplememError
from simplemem.tools.render import error_data

log = logging.getLogger("simplemem.web")

UNAUTHORIZED_HINT: Final = (
    "Send `Authorization: Bearer TOKEN`. Ask the operator of the server for a token;"
    " the operator creates one with `simplemem token new NAME`."
)

STATUS: Final[Mapping[str, int]] = {
    "proposed": 202,
    "invalid": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "read_only": 403,
    "not_found": 404,
    "already_exists": 409,
    "ambiguous": 409,
    "conflict": 409,
    "precondition_failed": 412,
    "too_long": 413,
    "unreadable": 422,
    "too_many": 429,
    "unavailable": 503,
}


class Json(JSONResponse):
    """A response of JSON. NaN and infinity become null, and lone surrogates are escaped."""

    def render(self, content: Any) -> bytes:
        """Return the body for a JSON value, in UTF-8."""
        try:
            return super().render(content)
        except ValueError:
            return json.dumps(_finite(content)).encode()


def _finite(value: Any) -> Any:
    """Return a JSON value in which null replaces NaN and infinity, at any depth."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


class HTTPError(SimplememError):
    """A request that is refused with an HTTP status, and the headers of the response.

    Without a `code`, the error has the first code of its status in `STATUS`, or `invalid`.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str = "",
        hint: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.headers = dict(headers or {})
        self.code = code or _code_of(status)  # type: ignore[misc]


def _code_of(status: int) -> str:
    """Return the first code in `STATUS` with a status, or `invalid` if there is none."""
    codes = (code for code, code_status in STATUS.items() if code_status == status)
    return next(codes, "invalid")


def problem(error: SimplememError) -> Response:
    """Return an error as a problem document: its code, message, hint and details.

    A status of 503 has the header `Retry-After`.
    """
    status = status_of(error)
    headers = {"Cache-Control": "no-store"}
    if isinstance(error, HTTPError):
        headers |= error.headers
    elif status == 503:
        headers["Retry-After"] = "2"

    details = error_data(error)
    document: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": details.pop("message"),
    }
    document |= details
    return Json(document, status, headers, "application/problem+json")


def status_of(error: SimplememError) -> int:
    """Return the HTTP status of an error: its own, or that of its code, or else 500."""
    if isinstance(error, HTTPError):
        return error.status
    return STATUS.get(error.code, 500)


async def answer_error(_request: Request, error: Exception) -> Response:
    """Return the problem document for an error of simplemem, as a handler of Starlette."""
    assert isinstance(error, SimplememError)
    return problem(error)


async def answer_http_exception(request: Request, error: Exception, *, hint: str = "") -> Response:
    """Return the problem document for an error of Starlette, as a handler of it.

    Starlette raises one if there is no such route, or it does not allow the method. `hint` says
    where routes are described.
    """
    assert isinstance(error, HTTPException)
    messages = {
        404: "nothing is served at this path",
        405: f"{request.method} is not allowed at this path",
    }
    message = messages.get(error.status_code, HTTPStatus(error.status_code).phrase.lower())
    code = "invalid"
    if error.status_code == 404:
        code = "not_found"
    return problem(
        HTTPError(error.status_code, message, code=code, hint=hint, headers=error.headers)
    )


async def answer_unexpected_error(request: Request, error: Exception) -> Response:
    """Return the problem document (500) for any other exception, as a handler of Starlette.

    It names only the type of the exception. The log says where it was raised.
    """
    log.error("%s of a route failed", request.method, exc_info=error)
    message = f"internal error in simplemem ({type(error).__name__})"
    return problem(
        HTTPError(500, message, code="unavailable", hint="The server's log has details.")
    )
