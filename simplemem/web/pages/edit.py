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

from simplemem.errors import (
    Conflict,
    Invalid,
    NotFound,
    ReadOnly,
    SimplememError,
    TooLong,
    Unreadable,
)
from simplemem.note.header import read_header
from simplemem.note.line_ends import restore_line_ends, text_for_form
from simplemem.note.names import check_name, path_of
from simplemem.note.words import format_count
from simplemem.web.markdown.addresses import edit_url, link_of
from simplemem.web.markdown.context import NoteContext
from simplemem.web.markdown.parts import MAX_CHARACTERS
from simplemem.web.note_context import read_context
from simplemem.web.pages.completion import list_folders
from simplemem.web.pages.page_routes import PageRoutes
from simplemem.web.pages.responses import (
    ask,
    author_of,
    can_write,
    page_of_server,
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
    """The text that somebody typed for the note `name`, with the line ends of a form.

    `if_sha256` is the hash of the text of the note that the editing began with, and `way_back` the
    page of this server to show after saving; "" for the page of the note.
    """

    name: str
    typed: str
    if_sha256: str
    way_back: str = ""


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
    """Run a function that changes notes in a thread, and return its result.

    No other write runs at the same time. Raises ReadOnly for a read-only vault, and the errors of
    the function.
    """
    check_vault_is_writable(view)
    return await view.executor.run(lambda: change(view.executor.store()), writes=True)


def is_from_script(request: Request) -> bool:
    """Return whether the script of the page sent a request, which then asks for JSON."""
    return request.headers.get("accept", "").startswith("application/json")


def refusal_json(error: SimplememError) -> Response:
    """Return the answer to the script for a form that was refused."""
    return Json({"message": error.message, "hint": error.hint}, status_of(error))


def refusal_messages(result: str, error: SimplememError) -> tuple[str, ...]:
    """Return the messages of a page for a form that was refused.

    `result` begins the first one, such as "Not saved". The second one is the hint, if there is one.
    """
    message = f"{result}: {error.message}"
    if not error.hint:
        return (message,)
    return message, error.hint


# --- an existing note


async def _show_editor(request: Request, view: VaultView, grant: Grant) -> Response:
    """Show a note in the form that changes it. Raises NotFound, Ambiguous and ReadOnly."""
    check_vault_is_writable(view)
    name = request.path_params["name"]
    note = await ask(view, lambda store: store.read(name))

    way_back = page_of_server(view, request.query_params.get("return", ""))
    draft = Draft(note.name, text_for_form(note.text), note.sha256, way_back)
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
    """Save the text of a form, or show a preview of it.

    If the text cannot be saved, the page has it in the form again, and says why.
    """
    form = await read_form(request)
    name = request.path_params["name"]
    way_back = page_of_server(view, form.get("return", ""))
    draft = Draft(name, form.get("text", ""), form.get("if_sha256", ""), way_back)
    if form.get("action") == "preview":
        html = await _render_preview(renderer, view, grant, name, draft.typed)
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
    return _show_saved(view, grant, draft, saved)


def _show_saved(view: VaultView, grant: Grant, draft: Draft, saved: Saved) -> Response:
    """Redirect after a note was saved; if there are warnings, show them in its form."""
    if not saved.warnings:
        address = draft.way_back or link_of(view.vault.prefix, saved.name)
        return RedirectResponse(address, 303)

    draft = Draft(saved.name, draft.typed, saved.sha256, draft.way_back)
    return _editor_page(view, grant, draft, messages=("The note is saved.", *saved.warnings))


def save_draft(store: EnhancedStore, draft: Draft, author: AuthorArgs) -> Saved:
    """Write what somebody typed, unless the note has changed since the editing began.

    If nothing was changed in the form, the note stays as it is. Raises Conflict if the note has
    changed, Unreadable if it must not be rewritten, Invalid if the new text could not be edited
    here again, and what `EnhancedStore.write_text` raises.
    """
    note = store.read(draft.name)
    problem = _reason_not_to_rewrite(note)
    if problem:
        raise Unreadable(problem.removesuffix("."), hint="Repair it in a text editor.")

    base = _text_at(store, note, draft.if_sha256)
    text = restore_line_ends(base or note.text, draft.typed)
    _check_properties(text)
    if base is not None and text == base:
        # Another change since is no conflict then, and must stay.
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
    # Imported here, because it loads YAML, which would slow down the start of every server.
    from simplemem.note.note import read_note

    problem = read_note(text.encode("utf-8", "replace")).problem
    if problem:
        raise Invalid(f"the text is not saved: {problem}", hint="Correct the properties.")


async def _show_refusal(
    view: VaultView, grant: Grant, draft: Draft, error: SimplememError
) -> Response:
    """Return the page that has a draft which could not be saved, and says why."""
    if isinstance(error, NotFound):
        return await _show_missing(view, grant, draft, error)
    if isinstance(error, Conflict):
        return await _show_conflict(view, grant, draft)

    messages = refusal_messages("Not saved", error)
    return _editor_page(view, grant, draft, messages=messages, status=status_of(error))


async def _show_missing(
    view: VaultView, grant: Grant, draft: Draft, error: SimplememError
) -> Response:
    """Return the form that creates a note, with the draft of a note that no longer exists."""
    folder, _, title = draft.name.rpartition("/")
    new_note = NewNote(title=title, folder=folder, template="", typed=draft.typed)
    message = f"{error.message}. You can save your text as a new note."
    return await _new_page(view, grant, new_note, messages=(message,), status=status_of(error))


async def _show_conflict(view: VaultView, grant: Grant, draft: Draft) -> Response:
    """Return the page of a conflict: the draft, the note as it is now, and their merge."""
    race = await ask(view, lambda store: _read_lost_race(store, draft))
    return show_page(
        view,
        grant,
        "conflict.html",
        f"Conflict in {draft.name}",
        name=draft.name,
        race=race,
        way_back=draft.way_back,
        conflict_count=format_count(race.conflicts, "place"),
        status=409,
    )


def _read_lost_race(store: EnhancedStore, draft: Draft) -> LostRace:
    """Return the texts of a conflict.

    If the text that the editing began with is no longer kept, no line of the merge is deleted.
    """
    # Imported here, because it loads YAML, which would slow down the start of every server.
    from simplemem.note.merge import merge

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
        way_back=draft.way_back,
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
    new_note = NewNote(title=title, folder=folder, template="", typed="")
    return await _new_page(view, grant, new_note)


async def _take_new(
    renderer: Renderer, request: Request, view: VaultView, grant: Grant
) -> Response:
    """Create a note, or show a preview of its text.

    Redirects to the note, or to its form if a template was chosen. If the note cannot be created,
    the page has the form again, and says why.
    """
    form = await read_form(request)
    new_note = NewNote(
        title=form.get("title", ""),
        folder=form.get("folder", ""),
        template=form.get("template", ""),
        typed=form.get("text", ""),
    )
    if form.get("action") == "preview":
        html = await _render_preview(renderer, view, grant, new_note.name, new_note.typed)
        return await _new_page(view, grant, new_note, preview=html)

    author = author_of(request, grant)
    try:
        saved = await write(view, lambda store: create_note(store, new_note, author))
    except SimplememError as error:
        if is_from_script(request):
            return refusal_json(error)
        messages = refusal_messages("Not saved", error)
        return await _new_page(view, grant, new_note, messages=messages, status=status_of(error))

    address = link_of(view.vault.prefix, saved.name)
    if new_note.template:
        # A note from a template is not complete yet.
        address = edit_url(view.vault.prefix, saved.name)
    if is_from_script(request):
        return Json({"url": address})
    return RedirectResponse(address, 303)


def create_note(store: EnhancedStore, new_note: NewNote, author: AuthorArgs) -> Saved:
    """Create a note with the typed text, which follows that of the template if one is chosen.

    Raises Invalid without a title, and what `EnhancedStore.create` and `create_from` raise.
    """
    if not new_note.title.strip():
        raise Invalid("the note has no title", hint="Give it a title.")

    text = text_for_form(new_note.typed)
    if not new_note.template:
        return store.create(new_note.name, text, **author)

    saved = store.create_from(new_note.template, new_note.name, **author)
    if text.strip():
        saved = store.update(saved.name, append=text, **author)
    return saved


async def _new_page(
    view: VaultView,
    grant: Grant,
    new_note: NewNote,
    *,
    preview: str = "",
    messages: tuple[str, ...] = (),
    status: int = 200,
) -> Response:
    """Return the form that creates a note, with 20 folders and the templates of the vault."""

    folders, templates = await ask(
        view, lambda store: (list_folders(store), store.template_names())
    )
    return show_page(
        view,
        grant,
        "new.html",
        "New note",
        new_note=new_note,
        text=text_for_form(new_note.typed),
        folders=folders,
        templates=templates,
        preview=preview,
        messages=messages,
        status=status,
    )


# --- the preview


async def _show_preview(
    renderer: Renderer, request: Request, view: VaultView, grant: Grant
) -> Response:
    """Return the HTML of a text that is not saved, which the script shows below the editor."""
    form = await read_form(request)
    html = await _render_preview(renderer, view, grant, form.get("name", ""), form.get("text", ""))
    return show_part(view, "preview.html", html=html)


async def _render_preview(
    renderer: Renderer, view: VaultView, grant: Grant, name: str, typed: str
) -> str:
    """Return the HTML of a text that somebody typed for a note, without its properties.

    It has the links and embeds that the page of the note will have. There need not be such a note.
    Only the first 450,000 characters are shown.
    """
    text = text_for_form(typed)
    body = text[read_header(text).body_start :][:MAX_CHARACTERS]

    def read_links_and_embeds(store: EnhancedStore) -> NoteContext:
        store.extension.prepare(vectors=False)  # for links to notes that were just written
        path = _path_for_links(name)
        return read_context(store, path, body, can_create=can_write(view, grant))

    context = await ask(view, read_links_and_embeds)
    return await renderer.render(body, view.vault.prefix, context)


def _path_for_links(name: str) -> str:
    """Return the path of a note with a name: links prefer notes in its folder.

    Returns "", which stands for the top of the vault, if no note can have the name.
    """
    try:
        return path_of(check_name(name))
    except (Invalid, TooLong):
        return ""
