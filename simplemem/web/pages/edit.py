"""Writing a note in a form: editing an existing note, and creating one.

The forms work without the script, which puts an editor in place of the text field (`edit.js`).
Every save names the hash of the text that it is based on. If the note has changed since, nothing is
written, and the page shows both texts and their merge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from simplemem.errors import Conflict, Invalid, NotFound, ReadOnly, SimplememError, Unreadable
from simplemem.note.line_ends import restore_line_ends, text_for_form
from simplemem.note.words import format_count
from simplemem.web.markdown.addresses import edit_url, link_of
from simplemem.web.pages.completion import list_folders
from simplemem.web.pages.page_routes import PageRoutes
from simplemem.web.pages.responses import (
    author_of,
    read_form,
    read_only_reason,
    show_page,
    show_part,
)
from simplemem.web.problem_documents import Json, status_of
from simplemem.web.rendering import Renderer
from simplemem.web.tokens import Grant
from simplemem.web.vault_view import VaultView

if TYPE_CHECKING:
    from simplemem.models import AuthorArgs, Memory, Saved
    from simplemem.note.line_merge import Merged
    from simplemem.store import EnhancedStore

Result = TypeVar("Result")
_MERGE_SIDES: Final = ("your text", "the note as it is now")


def routes(page: PageRoutes, renderer: Renderer) -> list[Route]:
    """Return the routes of the editor. `renderer` makes the HTML of previews."""
    return [
        page.get("/edit/{name:path}", _show_editor, right="write"),
        page.post("/edit/{name:path}", partial(_take_edit, renderer), right="write"),
        page.get("/new", _show_new, right="write"),
        page.post("/new", partial(_take_new, renderer), right="write"),
        page.post("/preview", partial(_show_preview, renderer), right="read"),
    ]


class Draft(NamedTuple):
    """What somebody typed, with line ends as a form has them, and the hash it is based on."""

    name: str
    typed: str
    if_sha256: str


@dataclass(frozen=True, slots=True)
class LostRace:
    """The texts of a conflict, as a form shows them.

    `merged` is the merge of `mine` and `current`, with marks in the places that both changed.
    """

    mine: str
    current: str
    current_sha256: str
    merged: str
    conflicts: int


def check_vault_is_writable(view: VaultView) -> None:
    """Raise ReadOnly if the settings make the vault read-only."""
    if view.vault.settings.read_only:
        raise ReadOnly("this vault is read-only", hint="The setting read_only allows no changes.")


async def write(view: VaultView, change: Callable[[EnhancedStore], Result]) -> Result:
    """Return what a function that changes notes returns. It runs when no other write does.

    Raises ReadOnly for a read-only vault, and the errors of the function.
    """
    check_vault_is_writable(view)
    return await view.executor.run(lambda: change(view.executor.store()), writes=True)


def is_from_script(request: Request) -> bool:
    """Return whether the script of the page sent a form: it asks for JSON."""
    return request.headers.get("accept", "").startswith("application/json")


def refusal_json(error: SimplememError) -> Response:
    """Return the answer to the script for a form that was refused."""
    return Json({"message": error.message, "hint": error.hint}, status_of(error))


# --- an existing note


async def _show_editor(request: Request, view: VaultView, grant: Grant) -> Response:
    """Show a note in the form that changes it. Raises NotFound, Ambiguous and ReadOnly."""
    check_vault_is_writable(view)
    name = request.path_params["name"]
    note = await view.executor.run(lambda: view.executor.store().read(name))

    draft = Draft(note.name, text_for_form(note.text), note.sha256)
    problem = read_only_reason(view, [note.name]) or _reason_not_to_rewrite(note)
    return _editor_page(view, grant, draft, problem=problem)


def _reason_not_to_rewrite(note: Memory) -> str:
    """Return why a note can only be read; "" if it may be changed."""
    if note.problem:
        return f"This note cannot be changed here: {note.problem}."
    if "\0" in note.text:
        return "This note cannot be changed here: it contains a character that no form can send."
    return ""


async def _take_edit(
    renderer: Renderer, request: Request, view: VaultView, grant: Grant
) -> Response:
    """Save the text of a form, and lead to the note; or show a preview of it.

    If the text cannot be saved, the page has it in the form again, and says why. The script asks
    for JSON, and gets the new hash.
    """
    form = await read_form(request)
    name = request.path_params["name"]
    draft = Draft(name, form.get("text", ""), form.get("if_sha256", ""))
    if form.get("action") == "preview":
        html = await _render_preview(renderer, view, draft.typed)
        return _editor_page(view, grant, draft, preview=html)

    author = author_of(request, grant)
    try:
        saved = await write(view, lambda store: save_draft(store, draft, author))
    except SimplememError as error:
        if is_from_script(request):
            return refusal_json(error)
        return await _show_refusal(view, grant, draft, error)

    if is_from_script(request):
        return Json({"sha256": saved.sha256, "warnings": saved.warnings})
    if saved.warnings:
        draft = Draft(saved.name, draft.typed, saved.sha256)
        return _editor_page(view, grant, draft, messages=("The note is saved.", *saved.warnings))
    return RedirectResponse(link_of(view.vault.prefix, saved.name), 303)


def save_draft(store: EnhancedStore, draft: Draft, author: AuthorArgs) -> Saved:
    """Write what somebody typed, if the note is still what it is based on.

    A text that equals the one that it is based on is not written. Raises Conflict if the note has
    changed since, Unreadable if it must not be rewritten, Invalid if the new text could not be
    edited here again, and what `EnhancedStore.write_text` raises.
    """
    note = store.read(draft.name)
    problem = _reason_not_to_rewrite(note)
    if problem:
        raise Unreadable(problem.removesuffix("."), hint="Repair it in a text editor.")

    base = _text_at(store, note, draft.if_sha256)
    text = restore_line_ends(base or note.text, draft.typed)
    _check_properties(text)
    if base is not None and text == base:
        return store.write_text(note.name, note.text, if_sha256=note.sha256, **author)
    return store.write_text(note.name, text, if_sha256=draft.if_sha256, **author)


def _text_at(store: EnhancedStore, note: Memory, sha256: str) -> str | None:
    """Return the text that a note had at a hash; None if it is no longer kept."""
    if sha256 == note.sha256:
        return note.text
    try:
        return store.read_text(note.name, version=sha256).text
    except SimplememError:
        return None


def _check_properties(text: str) -> None:
    """Raise Invalid if the properties of a text cannot be read: the page could not change them."""
    from simplemem.note.note import read_note  # reads YAML, which no start of a server needs

    problem = read_note(text.encode("utf-8", "replace")).problem
    if problem:
        raise Invalid(f"the text is not saved: {problem}", hint="Correct the properties.")


async def _show_refusal(
    view: VaultView, grant: Grant, draft: Draft, error: SimplememError
) -> Response:
    """Return the page that has a draft which could not be saved, and says why.

    After a conflict, it also has the note as it is now, and a merge.
    """
    if isinstance(error, NotFound):
        title = draft.name.rpartition("/")[2]
        folder = draft.name.rpartition("/")[0]
        message = f"{error.message}. You can save your text as a new note."
        values = NewNote(title=title, folder=folder, template="", typed=draft.typed)
        return await _new_page(view, grant, values, messages=(message,), status=status_of(error))

    if isinstance(error, Conflict):
        race = await view.executor.run(lambda: _read_lost_race(view.executor.store(), draft))
        return show_page(
            view,
            grant,
            "conflict.html",
            f"Conflict in {draft.name}",
            name=draft.name,
            race=race,
            conflict_count=format_count(race.conflicts, "place"),
            status=409,
        )
    messages = tuple(filter(None, (f"Not saved: {error.message}", error.hint)))
    return _editor_page(view, grant, draft, messages=messages, status=status_of(error))


def _read_lost_race(store: EnhancedStore, draft: Draft) -> LostRace:
    """Return the texts of a conflict. Without the text they began as, all lines count as new."""
    from simplemem.note.merge import merge  # reads YAML, which no start of a server needs

    note = store.read(draft.name)
    base = _text_at(store, note, draft.if_sha256)
    mine = restore_line_ends(base or note.text, draft.typed)
    merged: Merged = merge(base, mine, note.text, _MERGE_SIDES)
    return LostRace(
        mine=text_for_form(draft.typed),
        current=text_for_form(note.text),
        current_sha256=note.sha256,
        merged=text_for_form(merged.text),
        conflicts=merged.conflicts,
    )


def _editor_page(
    view: VaultView,
    grant: Grant,
    draft: Draft,
    *,
    problem: str = "",
    preview: str = "",
    messages: tuple[str, ...] = (),
    status: int = 200,
) -> Response:
    """Return the form that changes a note. With a `problem`, its text can only be read."""
    return show_page(
        view,
        grant,
        "edit.html",
        f"Edit {draft.name}",
        name=draft.name,
        text=text_for_form(draft.typed),
        if_sha256=draft.if_sha256,
        problem=problem,
        preview=preview,
        messages=messages,
        status=status,
    )


# --- a new note


class NewNote(NamedTuple):
    """The fields of the form that creates a note."""

    title: str
    folder: str
    template: str
    typed: str

    @property
    def name(self) -> str:
        """The name of the note: its folder, if it has one, and its title."""
        folder = self.folder.strip().strip("/")
        title = self.title.strip()
        if not folder:
            return title
        return f"{folder}/{title}"


async def _show_new(request: Request, view: VaultView, grant: Grant) -> Response:
    """Show the form that creates a note. The address may give its `name`."""
    check_vault_is_writable(view)
    folder, _, title = request.query_params.get("name", "").rpartition("/")
    values = NewNote(title=title, folder=folder, template="", typed="")
    return await _new_page(view, grant, values)


async def _take_new(
    renderer: Renderer, request: Request, view: VaultView, grant: Grant
) -> Response:
    """Create a note, and lead to it; with a template, lead to the form that changes it.

    If it cannot be created, the page has the form again, and says why.
    """
    form = await read_form(request)
    values = NewNote(
        title=form.get("title", ""),
        folder=form.get("folder", ""),
        template=form.get("template", ""),
        typed=form.get("text", ""),
    )
    if form.get("action") == "preview":
        html = await _render_preview(renderer, view, values.typed)
        return await _new_page(view, grant, values, preview=html)

    author = author_of(request, grant)
    try:
        saved = await write(view, lambda store: create_note(store, values, author))
    except SimplememError as error:
        if is_from_script(request):
            return refusal_json(error)
        messages = tuple(filter(None, (f"Not saved: {error.message}", error.hint)))
        return await _new_page(view, grant, values, messages=messages, status=status_of(error))

    address = link_of(view.vault.prefix, saved.name)
    if values.template:
        address = edit_url(view.vault.prefix, saved.name)
    if is_from_script(request):
        return Json({"url": address})
    return RedirectResponse(address, 303)


def create_note(store: EnhancedStore, values: NewNote, author: AuthorArgs) -> Saved:
    """Create a note with the typed text, which follows that of the template if one is chosen.

    Raises Invalid without a title, and what `EnhancedStore.create` and `create_from` raise.
    """
    if not values.title.strip():
        raise Invalid("the note has no title", hint="Give it a title.")

    text = text_for_form(values.typed)
    if not values.template:
        return store.create(values.name, text, **author)

    saved = store.create_from(values.template, values.name, **author)
    if text.strip():
        saved = store.update(saved.name, append=text, **author)
    return saved


async def _new_page(
    view: VaultView,
    grant: Grant,
    values: NewNote,
    *,
    preview: str = "",
    messages: tuple[str, ...] = (),
    status: int = 200,
) -> Response:
    """Return the form that creates a note, with 20 folders and the templates of the vault."""

    def read_choices(store: EnhancedStore) -> tuple[list[str], list[str]]:
        """Return the first folders and the templates of the vault."""
        return list_folders(store), store.template_names()

    folders, templates = await view.executor.run(lambda: read_choices(view.executor.store()))
    return show_page(
        view,
        grant,
        "new.html",
        "New note",
        values=values,
        text=text_for_form(values.typed),
        folders=folders,
        templates=templates,
        preview=preview,
        messages=messages,
        status=status,
    )


# --- the preview


async def _show_preview(
    renderer: Renderer, request: Request, view: VaultView, _grant: Grant
) -> Response:
    """Return the HTML of a text, which the script shows beside the editor."""
    form = await read_form(request)
    html = await _render_preview(renderer, view, form.get("text", ""))
    return show_part(view, "preview.html", html=html)


async def _render_preview(renderer: Renderer, view: VaultView, typed: str) -> str:
    """Return the HTML of a text that somebody typed, without its properties."""
    from simplemem.note.header import read_header  # reads YAML, which no start of a server needs

    text = text_for_form(typed)
    body = text[read_header(text).body_start :]
    return await renderer.render(body, view.vault.prefix)
