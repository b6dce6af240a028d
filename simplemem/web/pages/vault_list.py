"""The list of the vaults of a server that has several."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from simplemem.web.pages.page_routes import destination_of
from simplemem.web.pages.responses import html_response, sign_in_page
from simplemem.web.tokens import Grant
from simplemem.web.vault_registry import VaultRegistry


async def show_vaults(registry: VaultRegistry, request: Request) -> Response:
    """Show the vaults that the token of a browser may see, or ask for a token."""
    grant: Grant | None = request.scope.get("grant")
    if grant is None:
        return sign_in_page("", destination_of(request))

    visible = [vault for name, vault in registry.vaults.items() if registry.is_visible(name, grant)]
    return html_response("vaults.html", prefix="", title="Vaults", grant=grant, vaults=visible)
