"""The inbox: what agents changed, grouped by session, to keep, undo, redo or comment on.

It is the home page. Each item has a page of its own, too. Everything works without the script: it
adds the keyboard and replaces items in place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qs, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from simplemem.errors import Invalid
from simplemem.note.words import format_count
from simplemem.web.pages import search
from simplemem.web.pages.page_routes import PageRoutes
from simplemem.web.pages.responses import (
    ask,
    author_of,
    base_url,
    can_write,
    read_form_lists,
    show_page,
    show_part,
)
from simplemem.web.rendering import Renderer
from simplemem.web.tokens import Grant
from simplemem.web.vault_view import VaultView

if TYPE_CHECKING:
    from simplemem.features.proposals.proposal import Proposal
    from simplemem.features.review.inbox import (
        ActionResult,
        Inbox,
        InboxFilter,
        InboxGroup,
        ItemDetails,
        NoteTexts,
        OpenNeighbours,
        ReviewItem,
    )
    from simplemem.features.review.service import ReviewService
    from simplemem.models import AuthorArgs
    from simplemem.store import EnhancedStore

_PAGE_SIZE: Final = 25
_MAX_FIELDS: Final = 500  # of a form, which has one field per chosen item and a few of its own
_MAX_RENDERED_NOTES: Final = 10  # of one item
_MAX_MESSAGE: Final = 600  # characters
_MINUTE_LENGTH: Final = len("2026-01-24T09:00")
_SECOND_LENGTH: Final = len("2026-01-24T09:00:00")
_VERSION: Final = re.compile(r"v\d{1,12}")
_PARTICIPLES: Final = {  # by action
    "keep": "Kept",
    "undo": "Undone",
    "redo": "Redone",
    "reopen": "To be reviewed again",
}
_SINCE_LABELS: Final = {  # by the value of the field `since`
    "": "any time",
    "last look": "my last look",
    "today": "today",
    "yesterday": "yesterday",
    "7 days ago": "a week ago",
}
_CONDITIONS: Final = ("agent", "folder", "since", "show")
_KEPT_FIELDS: Final = (*_CONDITIONS, "at", "layout")  # in the addresses that a page leads to


def routes(page: PageRoutes, renderer: Renderer) -> list[Route]:
    """Return the routes of the inbox and its items. `renderer` makes the HTML of changes."""
    return [
        page.get("/", _show_home),
        page.get("/today", _redirect_home),
        page.get("/review", _redirect_home),
        page.get("/review/news", _show_news),
        page.post("/review", _act, right="write"),
        page.get("/review/{version}", partial(_show_item, renderer)),
        page.get("/review/{version}/change", partial(_show_change, renderer)),
        page.get("/review/{version}/details", _show_details),
    ]


async def _show_home(request: Request, view: VaultView, grant: Grant) -> Response:
    """Show the inbox, or the results of a query if there is one.

    Raises NotFound or Invalid if the filter names no moment.
    """
    if search.is_search(request):
        return await search.show_results(request, view, grant)

    fields = dict(request.query_params)
    inbox, has_notes = await ask(view, partial(_read_home, _filter_of(fields, grant)))
    proposals = await ask(view, _list_proposals)
    return show_page(
        view,
        grant,
        "review.html",
        "Review",
        inbox=inbox,
        proposals=proposals,
        has_notes=has_notes or bool(proposals),
        base_url=base_url(request, view),
        fields=fields,
        is_filtered=any(fields.get(name) for name in _CONDITIONS),
        since_choices=_SINCE_LABELS,
        query_string=_query_string(fields),
        older_page=_page_at(inbox.older, fields),
        newer_page=_page_at(inbox.newer, fields),
        **_count_values(fields),
        session_times=_name_times(inbox.groups),
        message=fields.get("result", "")[:_MAX_MESSAGE],
        decided=_version_of(fields, "decided"),
        undoable=_version_of(fields, "undo"),
    )


async def _redirect_home(_request: Request, view: VaultView, _grant: Grant) -> Response:
    """Lead addresses of former pages to the inbox."""
    return RedirectResponse(f"{view.vault.prefix}/", 303)


def _read_home(conditions: InboxFilter, store: EnhancedStore) -> tuple[Inbox, bool]:
    """Return the inbox, and whether the vault has any note."""
    from simplemem.features.review.service import review_of

    inbox = review_of(store).inbox(conditions)
    has_notes = bool(inbox.agents) or bool(store.list(limit=1).items)
    return inbox, has_notes


def _read_counts(conditions: InboxFilter, store: EnhancedStore) -> Inbox:
    """Return the inbox with only its first item: its other numbers are those of the whole list."""
    from simplemem.features.review.service import review_of

    return review_of(store).inbox(replace(conditions, limit=1, whole_sessions=False))


def _list_proposals(store: EnhancedStore) -> Sequence[Proposal]:
    """Return the proposals of agents that nobody has decided about."""
    from simplemem.features.proposals.service import proposals_of

    return proposals_of(store).list()


async def _show_news(request: Request, view: VaultView, grant: Grant) -> Response:
    """Return the line with the number of open changes, which the script updates."""
    fields = dict(request.query_params)
    inbox = await ask(view, partial(_read_counts, _filter_of(fields, grant)))
    return show_part(view, "review_count.html", inbox=inbox, **_count_values(fields))


async def _show_item(
    renderer: Renderer, request: Request, view: VaultView, grant: Grant
) -> Response:
    """Show one item with all that is known about it, at its permanent address.

    The address may have the filter of the inbox, which decides about the items before and after it.
    Raises NotFound if the latest changes by agents have no such version, and NotFound or Invalid if
    the filter names no moment.
    """
    # The position of a page of the inbox says nothing about the items before and after this one.
    fields = {**request.query_params, "at": ""}
    conditions = _filter_of(fields, grant)
    details, neighbours = await ask(view, partial(_read_page, _version_in(request), conditions))
    layout = _layout_of(request)
    other_layout = "inline" if layout == "side" else "side"
    return show_page(
        view,
        grant,
        "review_page.html",
        f"Review of {details.item.name}",
        item=details.item,
        details=details,
        changes=await _render_changes(renderer, view, details.texts, layout),
        layout=layout,
        other_layout_query=_query_string({**fields, "layout": other_layout}),
        neighbours=neighbours,
        inbox_query=_query_string(request.query_params),
        query_string=_query_string(fields),
        message=fields.get("result", "")[:_MAX_MESSAGE],
        decided=_version_of(fields, "decided"),
    )


async def _show_change(
    renderer: Renderer, request: Request, view: VaultView, grant: Grant
) -> Response:
    """Return the rendered change of an item, which the script puts into the inbox."""
    version = _version_in(request)

    def read_texts(store: EnhancedStore) -> Sequence[NoteTexts]:
        from simplemem.features.review.service import review_of

        review = review_of(store)
        return review.texts_of(review.item(version, grant.name))

    texts = await ask(view, read_texts)
    layout = _layout_of(request)
    changes = await _render_changes(renderer, view, texts, layout)
    return show_part(view, "review_change.html", changes=changes)


async def _show_details(request: Request, view: VaultView, grant: Grant) -> Response:
    """Return what is looked up only for an opened item, which the script puts into the inbox."""
    details = await ask(view, partial(_read_details, _version_in(request), grant.name))
    return show_part(
        view,
        "review_details.html",
        item=details.item,
        details=details,
        query_string=_query_string(dict(request.query_params)),
        can_write=can_write(view, grant),
    )


def _read_details(version: str, person: str, store: EnhancedStore) -> ItemDetails:
    """Return all that is known about an item."""
    from simplemem.features.review.service import review_of

    return review_of(store).details(version, person)


def _read_page(
    version: str, conditions: InboxFilter, store: EnhancedStore
) -> tuple[ItemDetails, OpenNeighbours]:
    """Return all that is known about an item, and the open items around it in the inbox."""
    from simplemem.features.review.service import review_of

    details = _read_details(version, conditions.person, store)
    return details, review_of(store).neighbours(details.item.versions[-1], conditions)


async def _render_changes(
    renderer: Renderer, view: VaultView, texts: Sequence[NoteTexts], layout: str
) -> list[dict[str, Any]]:
    """Return the first ten notes of an item, each with its change as HTML."""
    changes = []
    for note in texts[:_MAX_RENDERED_NOTES]:
        html = await renderer.render_change(note.old, note.new, view.vault.prefix, layout)
        changes.append({"note": note.note, "html": html, "problem": note.problem})
    return changes


# --- actions


class _Outcome(NamedTuple):
    """What became of an action: the items before and after it, and what is left to review.

    `inbox` has the numbers that the script shows, and is None for a form without the script.

    If it decided about the item of the page from which the form came, `decided` is that item, and
    `next` the open item after it; each is "" if there is none.
    """

    results: Sequence[ActionResult]
    before: Sequence[ReviewItem]
    after: Sequence[ReviewItem]
    inbox: Inbox | None = None
    decided: str = ""
    next: str = ""


class _ActionForm(NamedTuple):
    """The fields of the form with which a person acts on items.

    `query_string` is the filter of the inbox, `page` the version of the item from whose page the
    form came, "" for the inbox. The script asks with `is_from_script` for the items as HTML.
    """

    action: str
    versions: list[str]
    comment: str
    query_string: str
    page: str
    is_from_script: bool

    def filter_fields(self) -> dict[str, str]:
        """Return the fields of the filter."""
        return _fields_of(self.query_string)


async def _read_action_form(request: Request) -> _ActionForm:
    """Return the form in the body. Raises HTTPError if there is none, Invalid without a version."""
    form = await read_form_lists(request, _MAX_FIELDS)
    return _ActionForm(
        action=_last_value(form, "action"),
        versions=_versions_in(form.get("versions", ())),
        comment=_last_value(form, "text"),
        query_string=_last_value(form, "back"),
        page=_last_value(form, "item"),
        is_from_script=bool(_last_value(form, "part")),
    )


async def _act(request: Request, view: VaultView, grant: Grant) -> Response:
    """Keep, undo, redo, reopen or comment on items, and show what became of it.

    Returns the items as HTML for the script; else redirects to the address that `_next_address`
    returns. Raises HTTPError if the body is no form, Invalid for an unknown action or if nothing
    was chosen, ReadOnly, and Unavailable if the log is locked.
    """
    form = await _read_action_form(request)
    author = author_of(request, grant)

    def act() -> _Outcome:
        return _perform(form, author, grant, view.executor.store())

    outcome = await view.executor.run(act, writes=True)
    message = _describe_results(form.action, outcome.results, outcome.before)
    if not form.is_from_script:
        return RedirectResponse(_next_address(view, form, message, outcome), 303)
    return show_part(
        view,
        "review_results.html",
        items=outcome.after,
        inbox=outcome.inbox,
        **_count_values(form.filter_fields()),
        message=message,
        problems={result.version: result for result in outcome.results if not result.is_done},
        query_string=form.query_string,
        can_write=can_write(view, grant),
    )


def _perform(form: _ActionForm, author: AuthorArgs, grant: Grant, store: EnhancedStore) -> _Outcome:
    """Do what a form asks for, and return what became of it. Raises what `_act` raises."""
    from simplemem.features.review.service import review_of

    review = review_of(store)
    before = review.items(form.versions, grant.name)
    if form.action == "comment":
        results = [review.comment(form.versions[-1], grant.name, form.comment)]
    else:
        results = _act_on(review, form.action, form.versions, author)

    # An undo of one step can divide an item: the versions of its other steps find all parts.
    versions_before = [version for item in before for version in item.versions]
    after = review.items(versions_before, grant.name)
    conditions = _filter_of(form.filter_fields(), grant)
    outcome = _Outcome(results, before, after)
    if form.is_from_script:
        outcome = outcome._replace(inbox=_read_counts(conditions, store))

    if not form.page or not _has_decided(form.action, results, before):
        return outcome
    next_version = review.neighbours(form.versions[-1], conditions).next
    return outcome._replace(decided=form.page, next=next_version)


def _act_on(
    review: ReviewService, action: str, versions: Sequence[str], author: AuthorArgs
) -> list[ActionResult]:
    """Return what became of an action on each version, oldest first for a redo.

    Raises Invalid for an unknown action.
    """
    if action == "keep":
        return list(review.keep(versions, author["who"]))
    if action == "reopen":
        return list(review.reopen(versions, author["who"]))
    if action == "undo":
        return list(review.undo(versions, **author))
    if action == "redo":
        return [review.redo(version, **author) for version in versions]
    raise Invalid(f"{action[:20]!r} is not an action", hint="Use the buttons of the page.")


def _has_decided(action: str, results: Sequence[ActionResult], items: Sequence[ReviewItem]) -> bool:
    """Return whether an action has kept or undone items as a whole, without a refusal."""
    if action not in ("keep", "undo"):
        return False
    if not all(result.is_done for result in results):
        return False
    done = {result.version for result in results}
    return all(done.issuperset(item.versions) for item in items)


def _describe_results(
    action: str, results: Sequence[ActionResult], items: Sequence[ReviewItem]
) -> str:
    """Return what was done and what was refused, as a sentence for a person.

    `items` are those that the action concerned, as they were before. A change is an item, as in
    the inbox; what is done with a part of an item counts as steps.
    """
    done = {result.version for result in results if result.is_done}
    sentences: list[str] = []
    if done:
        sentences += _describe_done(action, done, items)
    for result in results:
        if not result.is_done:
            sentences.append(f"{result.version}: {result.error}. {result.hint}")
    return " ".join(sentences).strip()


def _describe_done(
    action: str, done: Collection[str], items: Sequence[ReviewItem]
) -> Iterator[str]:
    """Yield the sentences about what was done. `done` are the versions, of which there is one."""
    if action == "comment":
        yield "The comment was added."
        return

    whole_items = [item for item in items if set(item.versions).issubset(done)]
    steps = set(done).difference(*(item.versions for item in whole_items))
    counts = []
    if whole_items:
        counts.append(format_count(len(whole_items), "change"))
    if steps:
        counts.append(format_count(len(steps), "step"))
    yield f"{_PARTICIPLES[action]}: {' and '.join(counts)}."

    if steps and action == "undo":
        yield "The undone step is now a change of its own, so the list has one more."


def _next_address(view: VaultView, form: _ActionForm, message: str, outcome: _Outcome) -> str:
    """Return the address to show after an action, with the filter and with what was done.

    After a form on the page of an item, it is that page, or the page of the next open item if the
    item is now decided. After a form in the inbox, or if no open item is left, it is the inbox.
    """
    fields = form.filter_fields()
    fields["result"] = message[:_MAX_MESSAGE]
    page = form.page
    if outcome.decided:
        page = outcome.next
        fields["decided"] = outcome.decided

    if _VERSION.fullmatch(page):
        return f"{view.vault.prefix}/review/{page}?{urlencode(fields)}"
    return f"{view.vault.prefix}/?{urlencode(fields)}"


# --- what requests contain


def _filter_of(fields: Mapping[str, str], grant: Grant) -> InboxFilter:
    """Return the filter that the fields of an address or a form name."""
    from simplemem.features.review.inbox import InboxFilter

    return InboxFilter(
        person=grant.name,
        agent=fields.get("agent", ""),
        folder=fields.get("folder", ""),
        since=fields.get("since", ""),
        only_unreviewed=fields.get("show", "") != "all",
        only_with_warnings=fields.get("show", "") == "warnings",
        limit=_PAGE_SIZE,
        position=fields.get("at", ""),
        whole_sessions=True,
    )


def _query_string(fields: Mapping[str, str]) -> str:
    """Return the fields that addresses keep, as the query of an address."""
    return urlencode({name: fields[name] for name in _KEPT_FIELDS if fields.get(name)})


def _fields_of(query_string: str) -> dict[str, str]:
    """Return the fields that addresses keep, from the query of an address."""
    fields = parse_qs(query_string[:_MAX_MESSAGE])
    return {name: fields[name][-1] for name in _KEPT_FIELDS if name in fields}


def _count_values(fields: Mapping[str, str]) -> dict[str, Any]:
    """Return what the lines with the count and the progress need to know about the filter."""
    return {
        "warnings_query": _query_string({**fields, "show": "warnings", "at": ""}),
        "unfiltered_query": _query_string({**fields, "show": "", "at": ""}),
        "is_filtered_by_warnings": fields.get("show") == "warnings",
    }


def _page_at(position: str | None, fields: Mapping[str, str]) -> str | None:
    """Return the query of another page of the inbox; None if there is none."""
    if position is None:
        return None
    return _query_string({**fields, "at": position})


def _name_times(groups: Sequence[InboxGroup]) -> list[str]:
    """Return the times of sessions for their headings, one per group.

    They are to the minute, and to the second for sessions that would have the same heading.
    """
    times = [_format_times(group, _MINUTE_LENGTH) for group in groups]
    headings = Counter((group.who, time) for group, time in zip(groups, times, strict=True))
    for position, group in enumerate(groups):
        if headings[group.who, times[position]] > 1:
            times[position] = _format_times(group, _SECOND_LENGTH)
    return times


def _format_times(group: InboxGroup, length: int) -> str:
    """Return the time of a session, from its first change to its last if these differ."""
    started = group.started[:length].replace("T", " ")
    ended = group.ended[:length].replace("T", " ")
    return started if started == ended else f"{started} to {ended}"


def _version_of(fields: Mapping[str, str], name: str) -> str:
    """Return the version that a field of an address names; "" if there is none."""
    version = fields.get(name, "")
    return version if _VERSION.fullmatch(version) else ""


def _version_in(request: Request) -> str:
    """Return the version in the path of a request. Raises Invalid if it is none."""
    version: str = request.path_params["version"]
    _check_version(version)
    return version


def _versions_in(values: Collection[str]) -> list[str]:
    """Return the versions that a form names, separated by blanks, each once.

    Raises Invalid if there is none, or if one of them is no version.
    """
    versions = list(dict.fromkeys(version for value in values for version in value.split()))
    if not versions:
        raise Invalid("no change was selected", hint="Select a change, then choose an action.")
    for version in versions:
        _check_version(version)
    return versions


def _check_version(version: str) -> None:
    """Raise Invalid if a text is no version."""
    if not _VERSION.fullmatch(version):
        raise Invalid(
            f"{version[:20]!r} is not a version",
            hint="Versions look like v12. The history lists them.",
        )


def _layout_of(request: Request) -> str:
    """Return how a change is shown: "side" for side by side, else "inline"."""
    return "side" if request.query_params.get("layout") == "side" else "inline"


def _last_value(form: Mapping[str, Sequence[str]], name: str) -> str:
    """Return the last value of a field; "" if the form lacks it."""
    return form[name][-1] if name in form else ""
