"""The style sheets, scripts and fonts of the page. Their addresses change with their content.

They are in `static/`, and in `static/vendor/` those that other projects made. They need no token:
they are the same for everybody, and say nothing about a vault.
"""

from __future__ import annotations

import base64
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
    ".html": "text/html",
    ".js": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
# Names of files and folders that begin with a letter, so that none leads out of the folder.
_NAME: Final = re.compile(r"(?:[a-z][\w-]*/){0,3}[A-Za-z][\w.-]*")
_PATH: Final = re.compile(rf"(?:/[\w-]+)?/static/{_NAME.pattern}")
# A document is a frame that draws the source of a diagram. Even when opened by itself, it has no
# origin, reaches nothing, and runs only the scripts that are in it. It cannot load scripts from
# the server, because the server refuses requests without an origin.
_FRAME_POLICY: Final = (
    "sandbox allow-scripts; default-src 'none'; script-src {hashes}; style-src 'unsafe-inline';"
    " img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
_LINKED_SCRIPT: Final = re.compile(r'<script src="(?P<name>[\w./-]+)"></script>')
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
    if media_type == "text/html":
        headers["Content-Security-Policy"] = _frame_policy(name)
    if name == _WORKER:
        prefix = request.url.path.removesuffix(f"/static/{name}")
        headers["Service-Worker-Allowed"] = f"{prefix}/capture"
    return Response(_read_file(name), media_type=media_type, headers=headers)


@cache
def _hash_of(name: str) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 of a static file."""
    return hashlib.sha256(_read_file(name)).hexdigest()[:_HASH_LENGTH]


@cache
def _frame_policy(name: str) -> str:
    """Return the Content-Security-Policy of a document: it runs its own scripts and no others."""
    document = _FOLDER.joinpath(name).read_text(encoding="utf-8")
    hashes = []
    for script in _LINKED_SCRIPT.finditer(document):
        digest = hashlib.sha256(_read_file(script["name"])).digest()
        hashes.append(f"'sha256-{base64.b64encode(digest).decode()}'")
    return _FRAME_POLICY.format(hashes=" ".join(hashes))


@cache
def _read_file(name: str) -> bytes:
    """Return the content of a static file. Each file is read once per process.

    In a document, each link to a script is replaced by the script itself.
    """
    content = _FOLDER.joinpath(name).read_bytes()
    if not name.endswith(".html"):
        return content
    return _LINKED_SCRIPT.sub(_inline_script, content.decode()).encode()


def _inline_script(link: re.Match[str]) -> str:
    """Return an element with the script that a link of a document names."""
    return f"<script>{_read_file(link['name']).decode()}</script>"
