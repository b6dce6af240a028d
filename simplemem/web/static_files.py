"""The style sheets, scripts and fonts of the page. Their addresses change with their content.

They are in `static/`, and in `static/vendor/` those that other projects made. They need no token:
they are the same for everybody, and say nothing about a vault.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from simplemem.web.problem_documents import HTTPError

_FOLDER: Final = files("simplemem.web").joinpath("static")
_MEDIA_TYPES: Final = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
# Names of files and folders that begin with a letter, so that none leads out of the folder.
_NAME: Final = re.compile(r"(?:[a-z][\w-]*/){0,3}[A-Za-z][\w.-]*")
_PATH: Final = re.compile(rf"(?:/[\w-]+)?/static/{_NAME.pattern}")
_WORKER: Final = "capture-worker.js"  # the service worker, for the capture page alone
_HASH_LENGTH: Final = 12
_CACHE_BRIEFLY: Final = "public, max-age=600"
_CACHE_FOR_A_YEAR: Final = "public, max-age=31536000, immutable"


def is_static_path(path: str) -> bool:
    """Return whether a path of the server has the form of the path of a static file."""
    return _PATH.fullmatch(path) is not None


def static_url(prefix: str, name: str) -> str:
    """Return the path of a static file of the vault at `prefix`, with a hash of its content.

    Raises FileNotFoundError if there is no such file.
    """
    return f"{prefix}/static/{name}?v={_hash_of(name)}"


async def send_static_file(request: Request) -> Response:
    """Send a file of the folder `static/`. Raises HTTPError (404) if there is none of the name.

    At the address of `static_url`, a browser may keep it for a year; at any other, for ten minutes.
    """
    name = request.path_params["file"]
    media_type = _MEDIA_TYPES.get(PurePosixPath(name).suffix)
    if media_type is None or not _NAME.fullmatch(name) or not _FOLDER.joinpath(name).is_file():
        raise HTTPError(404, "nothing is served at this path", code="not_found")

    cache_control = _CACHE_BRIEFLY
    if request.query_params.get("v") == _hash_of(name):
        cache_control = _CACHE_FOR_A_YEAR
    headers = {"Cache-Control": cache_control}
    if name == _WORKER:
        prefix = request.url.path.removesuffix(f"/static/{name}")
        headers["Service-Worker-Allowed"] = f"{prefix}/capture"
    return Response(_read_file(name), media_type=media_type, headers=headers)


@cache
def _hash_of(name: str) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 of a static file."""
    return hashlib.sha256(_read_file(name)).hexdigest()[:_HASH_LENGTH]


@cache
def _read_file(name: str) -> bytes:
    """Return the content of a static file. Each file is read once per process."""
    return _FOLDER.joinpath(name).read_bytes()
