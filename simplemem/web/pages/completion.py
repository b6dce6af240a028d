"""What the editor completes, as JSON: the names of notes in wikilinks, tags, and folders."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final, TypedDict

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from simplemem.note.names import name_of
from simplemem.web.pages.page_routes import PageRoutes
from simplemem.web.pages.responses import ask
from simplemem.web.problem_documents import Json
from simplemem.web.tokens import Grant
from simplemem.web.vault_view import VaultView

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

_MAX_CHOICES: Final = 20


def routes(page: PageRoutes) -> list[Route]:
    """Return the routes that the editor asks while somebody types."""
    return [
        page.get("/complete/notes", _complete_notes),
        page.get("/complete/tags", _complete_tags),
        page.get("/complete/folders", _complete_folders),
    ]


class NoteChoice(TypedDict):
    """A note that a wikilink may lead to.

    `label` is the name or alias that matches, `link` what to write between the brackets, and `name`
    the name of the note.
    """

    label: str
    link: str
    name: str


async def _complete_notes(request: Request, view: VaultView, _grant: Grant) -> Response:
    """Return the notes whose names match what was typed after `[[`."""
    typed = request.query_params.get("q", "")
    choices = await ask(view, lambda store: list_note_choices(store, typed))
    return Json(choices)


def list_note_choices(store: EnhancedStore, typed: str) -> list[NoteChoice]:
    """Return up to 20 notes for a wikilink; the last changed ones if nothing is typed yet."""
    if not typed.strip():
        recent = store.list(sort="modified", limit=_MAX_CHOICES).items
        return [_note_choice(store, note.name, note.name.rpartition("/")[2]) for note in recent]

    matches = store.find_names(typed, limit=_MAX_CHOICES)
    return [_note_choice(store, name_of(match.path), match.name) for match in matches]


def _note_choice(store: EnhancedStore, name: str, label: str) -> NoteChoice:
    """Return the shortest link to a note that leads to no other, with an alias if one matched."""
    file_name = name.rpartition("/")[2]
    link = name
    if len(store.extension.files_called(f"{file_name}.md")) == 1:
        link = file_name
    if label != file_name and not any(mark in label for mark in "[]|#^"):
        link = f"{link}|{label}"
    return NoteChoice(label=label, link=link, name=name)


async def _complete_tags(request: Request, view: VaultView, _grant: Grant) -> Response:
    """Return up to 20 tags that contain what was typed after `#`, the most used first."""
    typed = request.query_params.get("q", "").casefold()
    counts = await ask(view, lambda store: store.tags())
    matches = [tag for tag in counts if typed in tag.casefold()]
    matches.sort(key=lambda tag: not tag.casefold().startswith(typed))
    return Json(matches[:_MAX_CHOICES])


async def _complete_folders(request: Request, view: VaultView, _grant: Grant) -> Response:
    """Return up to 20 folders that contain what was typed."""
    typed = request.query_params.get("q", "")
    return Json(await ask(view, lambda store: list_folders(store, typed)))


def list_folders(store: EnhancedStore, typed: str = "") -> list[str]:
    """Return up to 20 folders that contain notes, sorted by name.

    With `typed`, only those whose path contains it, in any case, those that begin with it first.
    """
    wanted = typed.strip().casefold()
    folders = {name for name in _folders_of(store) if wanted in name.casefold()}

    def order(folder: str) -> tuple[bool, str]:
        return not folder.casefold().startswith(wanted), folder

    return heapq.nsmallest(_MAX_CHOICES, folders, key=order)


def _folders_of(store: EnhancedStore) -> set[str]:
    """Return the folders that contain notes, with all folders around them."""
    folders: set[str] = set()
    for path in store.extension.indexed():
        folder = name_of(path).rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return folders
