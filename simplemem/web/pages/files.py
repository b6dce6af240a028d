"""Images of the vault, and the page of a canvas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from simplemem.errors import NotFound
from simplemem.web.canvas import Canvas, read_canvas
from simplemem.web.canvas_drawing import draw_canvas
from simplemem.web.markdown.addresses import CANVAS, media_type_of
from simplemem.web.pages.page_routes import PageRoutes
from simplemem.web.pages.responses import ask, show_page
from simplemem.web.tokens import Grant
from simplemem.web.vault_view import VaultView

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

# An SVG that is opened by itself is a document: it may not run scripts, and fetches nothing.
_IMAGE_POLICY: Final = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_MAX_CANVAS_BYTES: Final = 2_000_000


def routes(page: PageRoutes) -> list[Route]:
    """Return the routes of images and canvases."""
    return [
        page.get("/file/{path:path}", _send_image),
        page.get("/canvas/{path:path}", _show_canvas),
    ]


async def _send_image(request: Request, view: VaultView, _grant: Grant) -> Response:
    """Send an image of the vault. Raises NotFound if there is none, or if it is no image."""
    path = request.path_params["path"]
    media_type = media_type_of(path)
    data = None
    if media_type is not None:
        data = await ask(view, lambda store: store.extension.bytes_of(path))
    if data is None:
        raise NotFound(f"there is no image {path!r}")

    headers = {
        "Content-Security-Policy": _IMAGE_POLICY,
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, max-age=60",
    }
    return Response(data, media_type=media_type, headers=headers)


async def _show_canvas(request: Request, view: VaultView, grant: Grant) -> Response:
    """Show a canvas. Raises NotFound if there is none at the path, or if it cannot be shown."""
    path = request.path_params["path"]

    canvas = await ask(view, lambda store: _read_canvas_at(store, path))
    if canvas is None:
        raise NotFound(f"there is no canvas {path!r} that can be shown")

    title = path.rpartition("/")[2].removesuffix(CANVAS)
    return show_page(
        view,
        grant,
        "canvas.html",
        title,
        canvas=canvas,
        drawing=draw_canvas(canvas),
        path=path,
    )


def _read_canvas_at(store: EnhancedStore, path: str) -> Canvas | None:
    """Return the canvas at a path; None if there is none, it is too large, or it is not valid."""
    if not path.lower().endswith(CANVAS):
        return None

    data = store.extension.bytes_of(path)
    if data is None or len(data) > _MAX_CANVAS_BYTES:
        return None
    return read_canvas(data, path, store.extension.resolve_links)
