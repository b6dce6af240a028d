"""The problems of a vault, for administrators."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from simplemem.web.pages.page_routes import PageRoutes
from simplemem.web.pages.responses import ask, show_page
from simplemem.web.tokens import Grant
from simplemem.web.vault_view import VaultView


def routes(page: PageRoutes) -> list[Route]:
    """Return the route of the findings of `simplemem doctor`."""
    return [page.get("/doctor", _show_doctor, right="admin")]


async def _show_doctor(_request: Request, view: VaultView, grant: Grant) -> Response:
    """Show the problems that `simplemem doctor` finds. The route is for administrators."""
    findings = await ask(view, lambda store: store.doctor())
    return show_page(view, grant, "doctor.html", "Doctor", findings=findings)
