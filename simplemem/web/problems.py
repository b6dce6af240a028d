"""JSON as it is sent; and what goes wrong over HTTP, as problem documents (RFC 9457) with our codes. Nothing of a traceback
or a note is told."""

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
    """JSON of whatever notes hold: a number that is none is null, half a character of a file's name is escaped."""

    def render(self, content: Any) -> bytes:
        try:
            return super().render(content)
        except ValueError:
            return json.dumps(_finite(content)).encode()


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Refused(SimplememError):
    """A request that HTTP itself refuses, with its status and what the answer's head says."""

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
        self.status, self.headers = status, dict(headers or {})
        self.code = code or _code_of(status)  # type: ignore[misc]


def _code_of(status: int) -> str:
    """The first code in `STATUS` with this status."""
    codes = (code for code, its_status in STATUS.items() if its_status == status)
    return next(codes, "invalid")


def problem(error: SimplememError) -> Response:
    """A failure as a problem document: its code, what happened, and the way out."""
    shown = error_data(error)
    status = error.status if isinstance(error, Refused) else STATUS.get(error.code, 500)
    said: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
    }
    said |= {"detail": shown.pop("message"), **shown}
    headers = (
        error.headers
        if isinstance(error, Refused)
        else {"Retry-After": "2"}
        if status == 503
        else {}
    )
    return Json(said, status, {"Cache-Control": "no-store", **headers}, "application/problem+json")


async def refused(_request: Request, error: Exception) -> Response:
    """Starlette's handler of our own errors."""
    assert isinstance(error, SimplememError)
    return problem(error)


async def unknown(request: Request, error: Exception, *, hint: str = "") -> Response:
    """Answer Starlette's errors: no such route, or not by this method. The hint says which there are."""
    assert isinstance(error, HTTPException)
    words = {
        404: "nothing is served at this path",
        405: f"{request.method} is not allowed at this path",
    }
    message = words.get(error.status_code, HTTPStatus(error.status_code).phrase.lower())
    code = {404: "not_found"}.get(error.status_code, "invalid")
    return problem(Refused(error.status_code, message, code=code, hint=hint, headers=error.headers))


async def failed(request: Request, error: Exception) -> Response:
    """What nobody foresaw: told in the log by its kind and place."""
    log.error("%s of a route failed", request.method, exc_info=error)
    message = f"internal error in simplemem ({type(error).__name__})"
    return problem(Refused(500, message, code="unavailable", hint="The server's log has details."))
