"""Accepting and declining what agents propose. The inbox lists the proposals."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from simplemem.errors import Invalid
from simplemem.web.pages.page_routes import PageRoutes
from simplemem.web.pages.responses import author_of, read_form
from simplemem.web.tokens import Grant
from simplemem.web.vault_view import VaultView

if TYPE_CHECKING:
    from simplemem.features.proposals.proposal import Decided


def routes(page: PageRoutes) -> list[Route]:
    """Return the route of decisions about proposals."""
    return [page.post("/proposals", _decide, right="write")]


async def _decide(request: Request, view: VaultView, grant: Grant) -> Response:
    """Accept or decline a proposal, and redirect to the inbox, which offers to undo that.

    Raises HTTPError if the body is no form, Invalid for an unknown decision, NotFound if there is
    no such proposal, Conflict or AlreadyExists if it cannot be accepted, and ReadOnly.
    """
    form = await read_form(request)
    name = form.get("name", "")
    decision = form.get("decision", "")
    if decision not in ("accept", "decline"):
        raise Invalid(f"{decision[:20]!r} is not a decision", hint="Use the buttons of the page.")
    author = author_of(request, grant)

    def decide() -> Decided:
        from simplemem.features.proposals.service import proposals_of

        proposals = proposals_of(view.executor.store())
        if decision == "accept":
            return proposals.accept(name, **author)
        return proposals.decline(name, **author)

    decided = await view.executor.run(decide, writes=True)
    message = f"The proposal {decided.name} was {decided.outcome}."
    query = urlencode({"result": message, "undo": decided.version})
    return RedirectResponse(f"{view.vault.prefix}/?{query}", 303)
