"""Changes of a note without writing in it: move, delete, tags, tasks; and the daily note."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from simplemem.errors import Conflict, Invalid, NotFound, ReadOnly, SimplememError, Unreadable
from simplemem.note.names import path_of
from simplemem.web.markdown.addresses import edit_url, link_of
from simplemem.web.pages.edit import check_vault_is_writable, refusal_messages, write
from simplemem.web.pages.page_routes import PageRoutes
from simplemem.web.pages.responses import (
    ask,
    author_of,
    can_write,
    read_form,
    read_only_reason,
    show_page,
)
from simplemem.web.problem_documents import status_of
from simplemem.web.tokens import Grant
from simplemem.web.vault_view import VaultView

if TYPE_CHECKING:
    from simplemem.models import AuthorArgs, Backlink, HistoryEntry, Memory, Saved
    from simplemem.note.note import Task
    from simplemem.store import EnhancedStore

_MAX_TASKS: Final = 500  # with a button on the page of a note
_MAX_LINKING_NOTES: Final = 200


def routes(page: PageRoutes) -> list[Route]:
    """Return the routes by which somebody changes a note without writing in it."""
    return [
        page.get("/move/{name:path}", _show_move, right="write"),
        page.post("/move/{name:path}", _move, right="write"),
        page.get("/delete/{name:path}", _show_delete, right="write"),
        page.post("/delete/{name:path}", _delete, right="write"),
        # After signing in again, a browser gets the path to which it had sent a form.
        page.get("/tag/{name:path}", _redirect_to_note),
        page.post("/tag/{name:path}", _change_tag, right="write"),
        page.get("/task/{name:path}", _redirect_to_note),
        page.post("/task/{name:path}", _toggle_task, right="write"),
        page.get("/changed", _show_change),
        page.get("/daily", _show_daily),
        page.post("/daily", _open_daily, right="write"),
    ]


@dataclass(frozen=True, slots=True)
class NoteActions:
    """What the page of a note offers to do with it.

    Attributes:
        can_write: Whether it offers any change.
        can_rewrite: Whether it offers changes of the text; not if the text cannot be read.
        tags: The tags that can be removed, because they are properties.
        tasks: The tasks with a button.
        read_only_reason: Why it offers nothing to somebody who may write other notes; "" otherwise.
    """

    can_write: bool
    can_rewrite: bool
    tags: Sequence[str] = ()
    tasks: Sequence[Task] = ()
    read_only_reason: str = ""


def actions_of(view: VaultView, grant: Grant, note: Memory) -> NoteActions:
    """Return what the page of a note offers to do with it to the bearer of a grant."""
    if not can_write(view, grant):
        return NoteActions(can_write=False, can_rewrite=False)

    reason = read_only_reason(view, [note.name])
    if reason:
        return NoteActions(can_write=False, can_rewrite=False, read_only_reason=reason)
    if note.problem:
        return NoteActions(can_write=True, can_rewrite=False)

    # Imported here, because it loads YAML, which would slow down the start of every server.
    from simplemem.note.note import read_note

    parsed = read_note(note.text.encode("utf-8", "replace"))
    tags = [tag.name for tag in parsed.tags if tag.source != "inline"]
    tasks = parsed.tasks[:_MAX_TASKS]
    return NoteActions(can_write=True, can_rewrite=True, tags=tags, tasks=tasks)


async def _redirect_to_note(request: Request, view: VaultView, _grant: Grant) -> Response:
    """Redirect to the page of a note."""
    return RedirectResponse(link_of(view.vault.prefix, request.path_params["name"]), 303)


# --- moving and deleting


async def _show_move(request: Request, view: VaultView, grant: Grant) -> Response:
    """Show the form that gives a note another name. Raises NotFound, Ambiguous and ReadOnly."""
    name = request.path_params["name"]
    return await _move_page(view, grant, name, name)


async def _move_page(
    view: VaultView,
    grant: Grant,
    name: str,
    new_name: str,
    *,
    messages: Sequence[str] = (),
    status: int = 200,
) -> Response:
    """Return the form that moves a note, with the notes whose links will be rewritten.

    Raises NotFound, Ambiguous and ReadOnly.
    """
    note, linking_notes = await _ask_about_note(view, name)
    if new_name == name:
        # The address may have a short name, and the form is to begin with the full one.
        new_name = note.name
    return show_page(
        view,
        grant,
        "move.html",
        f"Move {note.name}",
        note=note,
        new_name=new_name,
        linking_notes=linking_notes,
        messages=messages,
        status=status,
    )


async def _ask_about_note(view: VaultView, name: str) -> tuple[Memory, Sequence[Backlink]]:
    """Return a note that is to be moved or deleted, and up to 200 notes that link to it.

    Raises ReadOnly if the settings allow no changes of the note, NotFound and Ambiguous.
    """
    check_vault_is_writable(view)
    note, linking_notes = await ask(view, lambda store: _read_with_links(store, name))
    reason = read_only_reason(view, [note.name])
    if reason:
        raise ReadOnly(f"{note.name} may not be changed", hint=reason)
    return note, linking_notes


def _read_with_links(store: EnhancedStore, name: str) -> tuple[Memory, Sequence[Backlink]]:
    """Return a note, and up to 200 notes that link to it."""
    note = store.read(name)
    linking_notes = store.backlinks(note.name, limit=_MAX_LINKING_NOTES, kinds=("link",))
    return note, linking_notes


async def _move(request: Request, view: VaultView, grant: Grant) -> Response:
    """Move a note, and show what was done. If it cannot be moved, show the form again."""
    form = await read_form(request)
    name = request.path_params["name"]
    new_name = form.get("new_name", "").strip()
    author = author_of(request, grant)
    try:
        moved = await write(view, lambda store: store.move(name, new_name, **author))
    except SimplememError as error:
        messages = refusal_messages("Not moved", error)
        return await _move_page(
            view, grant, name, new_name, messages=messages, status=status_of(error)
        )
    return _redirect_to_change(view, moved.version)


async def _show_delete(request: Request, view: VaultView, grant: Grant) -> Response:
    """Ask whether a note is to be deleted, and say which links will lead nowhere.

    Raises NotFound, Ambiguous and ReadOnly.
    """
    note, linking_notes = await _ask_about_note(view, request.path_params["name"])
    return show_page(
        view, grant, "delete.html", f"Delete {note.name}", note=note, linking_notes=linking_notes
    )


async def _delete(request: Request, view: VaultView, grant: Grant) -> Response:
    """Put a note into the trash, and show what was done.

    Raises Conflict if the note has changed since the page asked.
    """
    form = await read_form(request)
    name = request.path_params["name"]
    if_sha256 = form.get("if_sha256", "")
    author = author_of(request, grant)
    deleted = await write(view, lambda store: store.delete(name, if_sha256=if_sha256, **author))
    return _redirect_to_change(view, deleted.version)


def _redirect_to_change(view: VaultView, version: str) -> Response:
    """Redirect to the page that says what a version changed, with the button that undoes it."""
    query = urlencode({"version": version})
    return RedirectResponse(f"{view.vault.prefix}/changed?{query}", 303)


async def _show_change(request: Request, view: VaultView, grant: Grant) -> Response:
    """Show what an operation changed, with the button that undoes it. Raises NotFound."""
    version = request.query_params.get("version", "")
    entries = await ask(view, lambda store: read_operation(store, version))
    first = entries[0]
    rewritten = [entry.name for entry in entries if entry.op == "update"]  # for their links
    return show_page(
        view, grant, "changed.html", "Done", entry=first, rewritten=rewritten, version=version
    )


def read_operation(store: EnhancedStore, version: str) -> list[HistoryEntry]:
    """Return the changes of the operation of a version, those that only rewrote links last.

    Raises NotFound if there is no such version.
    """
    entries = store.history(version)
    if not entries:
        raise NotFound(f"there is no version {version[:20]!r}", hint="The history lists versions.")
    return sorted(entries, key=lambda entry: entry.op == "update")


# --- tags and tasks


async def _change_tag(request: Request, view: VaultView, grant: Grant) -> Response:
    """Add the tag `add` of the form to a note, or remove the tag `remove`; redirect to the note.

    Raises Invalid for what is no tag, Conflict if the note has changed, and Unreadable.
    """
    form = await read_form(request)
    name = request.path_params["name"]
    added = form.get("add", "").strip().lstrip("#")
    removed = form.get("remove", "")
    changes: dict[str, bool | None] = {}  # None removes a tag
    if added:
        changes[added] = True
    if removed:
        changes[removed] = None
    author = author_of(request, grant)

    def change(store: EnhancedStore) -> Saved:
        return store.change_tags(name, changes, **author)

    saved = await write(view, change)
    return RedirectResponse(link_of(view.vault.prefix, saved.name), 303)


async def _toggle_task(request: Request, view: VaultView, grant: Grant) -> Response:
    """Mark a task as done, or as open again, and redirect to the note.

    The form has the line of the task and the hash of the text in which it is there. Raises Invalid
    if there is no task, Conflict if the note has changed in the same place, and Unreadable.
    """
    form = await read_form(request)
    name = request.path_params["name"]
    line = form.get("line", "")
    if_sha256 = form.get("if_sha256", "")
    if not re.fullmatch("[0-9]{1,9}", line):
        raise Invalid("no task is named", hint="Send the line of the task.")

    author = author_of(request, grant)
    line_number = int(line)
    saved = await write(
        view, lambda store: toggle_task(store, name, line_number, if_sha256, author)
    )
    return RedirectResponse(link_of(view.vault.prefix, saved.name), 303)


def toggle_task(
    store: EnhancedStore, name: str, line: int, if_sha256: str, author: AuthorArgs
) -> Saved:
    """Mark the task in a line of a text as done, or as open again, and write the note.

    `if_sha256` is the hash of the text that has the line. If the note has changed since, the mark
    is merged with the change. Raises Conflict if that is not possible, Invalid if the line has no
    task, and Unreadable if the note must not be rewritten.
    """
    note = store.read(name)
    if note.problem:
        raise Unreadable(f"{note.name} cannot be changed: {note.problem}")
    text = note.text
    if if_sha256 != note.sha256:
        text = store.read_text(note.name, version=if_sha256).text

    new_text = _with_toggled_task(text, line)
    if new_text is None:
        raise Invalid(f"line {line} of {note.name} has no task", hint="Open the note again.")

    try:
        return store.write_text(note.name, new_text, if_sha256=if_sha256, **author)
    except Conflict as conflict:
        accepting_merge = conflict.details.get("accept")
        if accepting_merge is None:
            raise
        return store.write_text(note.name, new_text, if_sha256=accepting_merge, **author)


def _with_toggled_task(text: str, line: int) -> str | None:
    """Return a text with the other mark for the task in a line; None if the line has no task."""
    # Imported here, because it loads YAML, which would slow down the start of every server.
    from simplemem.note.note import read_note

    for task in read_note(text.encode()).tasks:
        if task.line == line:
            mark = " " if task.is_done else "x"
            return text[: task.mark] + mark + text[task.mark + 1 :]
    return None


# --- the daily note


async def _show_daily(_request: Request, view: VaultView, grant: Grant) -> Response:
    """Redirect to today's daily note, or offer to create it.

    Raises NotFound if there is none and the bearer of the grant may not write.
    """
    name, exists = await ask(view, find_daily)
    if exists:
        return RedirectResponse(link_of(view.vault.prefix, name), 303)
    if not can_write(view, grant):
        raise NotFound("there is no daily note for today", hint="Your token may not create it.")
    return show_page(view, grant, "daily.html", "Daily note", name=name)


def find_daily(store: EnhancedStore) -> tuple[str, bool]:
    """Return the name of today's daily note, and whether it exists."""
    name = store.daily_name()
    return name, store.extension.exists(path_of(name))


async def _open_daily(request: Request, view: VaultView, grant: Grant) -> Response:
    """Create today's daily note if it does not exist, and redirect to its form."""
    author = author_of(request, grant)
    saved = await write(view, lambda store: store.daily(**author))
    return RedirectResponse(edit_url(view.vault.prefix, saved.name), 303)
