"""The problems of a vault, and the fixes of those that can be fixed, for administrators."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from simplemem.errors import Invalid, NotFound
from simplemem.note.names import name_of
from simplemem.web.checkup import Checkups
from simplemem.web.pages.page_routes import PageRoutes
from simplemem.web.pages.responses import author_of, read_form, show_page
from simplemem.web.tokens import Grant
from simplemem.web.vault_view import VaultView

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from simplemem.models import Finding, FixResult

_LEVELS: Final = ("error", "warning", "note")  # the worst first
_HEADINGS: Final = {"error": "Errors", "warning": "Warnings", "note": "Remarks"}
_MAX_FINDINGS: Final = 100  # of one check and level that are shown
_MAX_DIFFS: Final = 50


@dataclass(frozen=True)
class FindingGroup:
    """Findings of one check and level. `findings` are at most 100 of the `total`."""

    heading: str
    level: str
    check: str
    findings: Sequence[Finding]
    total: int


def routes(page: PageRoutes) -> list[Route]:
    """Return the routes of the check of a vault. `POST /doctor/check` starts one."""
    checkups = Checkups()
    return [
        page.get("/doctor", partial(_show_problems, checkups), right="admin"),
        page.post("/doctor/check", partial(_check_again, checkups), right="admin"),
        page.post("/doctor/fix", partial(_fix, checkups), right="admin"),
    ]


async def _show_problems(
    checkups: Checkups, request: Request, view: VaultView, grant: Grant
) -> Response:
    """Show what the latest check found, or its progress. The first visit starts a check."""
    checkup = checkups.of(view)
    if checkup.state.phase == "none":
        checkup.start(view)

    state = checkup.state
    plan = state.plan
    return show_page(
        view,
        grant,
        "doctor.html",
        "Problems",
        state=state,
        groups=[] if plan is None else list(_group_findings(plan.findings)),
        fixes=[] if plan is None else plan.changes[:_MAX_DIFFS],
        fix_count=0 if plan is None else len(plan.changes),
        fixed=request.query_params.get("fixed", ""),
        version=request.query_params.get("version", ""),
        name_of=name_of,
    )


def _group_findings(findings: Sequence[Finding]) -> Iterator[FindingGroup]:
    """Yield the findings by their level and check, the worst level first."""
    by_level = sorted(findings, key=lambda finding: _LEVELS.index(finding.level))
    for level, of_level in groupby(by_level, key=lambda finding: finding.level):
        by_check = sorted(of_level, key=lambda finding: finding.check)
        for check, of_check in groupby(by_check, key=lambda finding: finding.check):
            similar = list(of_check)
            yield FindingGroup(
                heading=f"{_HEADINGS[level]}: {check}",
                level=level,
                check=check,
                findings=similar[:_MAX_FINDINGS],
                total=len(similar),
            )


async def _check_again(
    checkups: Checkups, request: Request, view: VaultView, _grant: Grant
) -> Response:
    """Start a check, unless one is running, and redirect to its page.

    Raises HTTPError if the body is no form.
    """
    await read_form(request)
    checkups.of(view).start(view)
    return RedirectResponse(f"{view.vault.prefix}/doctor", 303)


async def _fix(checkups: Checkups, request: Request, view: VaultView, grant: Grant) -> Response:
    """Make the changes that the page shows, as one step of the history, and check again.

    Raises HTTPError if the body is no form, NotFound if the latest check found nothing to fix,
    Invalid if the page shows an earlier check, Conflict if a note has changed since, and ReadOnly.
    """
    form = await read_form(request)
    checkup = checkups.of(view)
    plan = checkup.state.plan
    if plan is None or not plan.changes:
        raise NotFound("there is nothing to fix", hint="Check the vault first.")
    if form.get("check") != str(checkup.state.number):
        message = "the vault was checked again after this page was made"
        raise Invalid(message, hint="Look at the changes again, and apply them then.")

    author = author_of(request, grant)

    def fix() -> FixResult:
        return view.executor.store().fix(plan, **author)

    result = await view.executor.run(fix, writes=True)
    checkup.forget()
    target = f"/doctor?fixed={len(result.changed)}&version={result.version}"
    return RedirectResponse(view.vault.prefix + target, 303)
