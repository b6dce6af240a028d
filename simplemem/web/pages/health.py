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

    from simplemem.models import Finding, FixResult, NoteFix

_LEVELS: Final = ("error", "warning", "note")  # the worst first
_HEADINGS: Final = {"error": "Errors", "warning": "Warnings", "note": "Remarks"}
_MAX_FINDINGS: Final = 100  # that are shown of one check and level
_MAX_FIXES: Final = 50  # whose diffs are shown


@dataclass(frozen=True)
class FindingGroup:
    """Findings of one check and level. `findings` has at most 100 of the `total`."""

    heading: str
    level: str
    check: str
    findings: Sequence[Finding]
    total: int


def routes(page: PageRoutes) -> list[Route]:
    """Return the routes of the check of a vault, whose state they share."""
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
    groups: Sequence[FindingGroup] = ()
    fixes: Sequence[NoteFix] = ()
    if state.plan is not None:
        groups = list(_group_findings(state.plan.findings))
        fixes = state.plan.changes
    return show_page(
        view,
        grant,
        "doctor.html",
        "Problems",
        state=state,
        groups=groups,
        fixes=fixes[:_MAX_FIXES],
        fix_count=len(fixes),
        fixed=request.query_params.get("fixed", ""),
        version=request.query_params.get("version", ""),
        name_of=name_of,
    )


def _group_findings(findings: Sequence[Finding]) -> Iterator[FindingGroup]:
    """Yield the findings by their level and check, the worst level first."""
    in_order = sorted(findings, key=_place_of_group)
    for _, group in groupby(in_order, key=_place_of_group):
        of_group = list(group)
        level = of_group[0].level
        check = of_group[0].check
        yield FindingGroup(
            heading=f"{_HEADINGS[level]}: {check}",
            level=level,
            check=check,
            findings=of_group[:_MAX_FINDINGS],
            total=len(of_group),
        )


def _place_of_group(finding: Finding) -> tuple[int, str]:
    """Return what the group of a finding is sorted by: its level, then the name of its check."""
    return _LEVELS.index(finding.level), finding.check


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
