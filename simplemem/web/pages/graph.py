"""The drawing of the graph of a vault."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from simplemem.web.pages.page_routes import PageRoutes
from simplemem.web.pages.responses import ask
from simplemem.web.tokens import Grant
from simplemem.web.vault_view import VaultView

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore


def routes(page: PageRoutes) -> list[Route]:
    """Return the route of the graph."""
    return [page.get("/graph", _show_graph)]


async def _show_graph(_request: Request, view: VaultView, _grant: Grant) -> Response:
    """Show the graph of the vault: a page of its own, whose policy allows only its own script."""

    def draw(store: EnhancedStore) -> str:
        from simplemem.features.graph.drawing import build_store_drawing
        from simplemem.features.graph.graph_export import shorten_drawing
        from simplemem.features.graph.service import graph_of

        graph = graph_of(store).read()
        drawing = build_store_drawing(store, graph, notes="all", texts=False)
        html, _ = shorten_drawing(drawing, "html")
        return html

    html = await ask(view, draw)
    return HTMLResponse(html, headers={"Content-Security-Policy": "frame-ancestors 'none'"})
