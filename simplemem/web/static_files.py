"""The style sheet and the script of the page. Their addresses change with their content."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from simplemem.web.problem_documents import HTTPError

_MEDIA_TYPES: Final = {"page.css": "text/css", "page.js": "text/javascript"}
_HASH_LENGTH: Final = 12
_CACHE_BRIEFLY: Final = "public, max-age=600"
_CACHE_FOR_A_YEAR: Final = "public, max-age=31536000, immutable"


def static_url(prefix: str, name: str) -> str:
    """Return the path of a static file of the vault at `prefix`, with a hash of its content.

    Raises FileNotFoundError if there is no such file.
    """
    return f"{prefix}/static/{name}?v={_hash_of(name)}"


async def send_static_file(request: Request) -> Response:
    """Send the style sheet or the script. Raises HTTPError (404) for any other name.

    At the address of `static_url`, a browser may keep it for a year; at any other, for ten minutes.
    """
    name = request.path_params["file"]
    if name not in _MEDIA_TYPES:
        raise HTTPError(404, "nothing is served at this path", code="not_found")

    cache_control = _CACHE_BRIEFLY
    if request.query_params.get("v") == _hash_of(name):
        cache_control = _CACHE_FOR_A_YEAR
    headers = {"Cache-Control": cache_control}
    return Response(_read_file(name), media_type=_MEDIA_TYPES[name], headers=headers)


@cache
def _hash_of(name: str) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 of a static file."""
    return hashlib.sha256(_read_file(name)).hexdigest()[:_HASH_LENGTH]


@cache
def _read_file(name: str) -> bytes:
    """Return the content of a static file. Each file is read once per process."""
    return files("simplemem.web").joinpath("static", name).read_bytes()
