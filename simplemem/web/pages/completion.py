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
_SIGNS_OF_LINKS: Final = frozenset("[]|#^")  # which the label of a wikilink cannot contain


def routes(page: PageRoutes) -> list[Route]:
    """Return the routes that the editor requests while somebody types."""
    return [
        page.get("/complete/notes", _complete_notes),
        page.get("/complete/tags", _complete_tags),
        page.get("/complete/folders", _complete_folders),
    ]


class NoteChoice(TypedDict):
    """A note that the editor offers for a wikilink.

    `label` is the name or alias that matches, `link` is what to write between the brackets, and
    `name` is the full name of the note.
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
        recent_notes = store.list(sort="modified", limit=_MAX_CHOICES).items
        return [_note_choice(store, note.name, _file_name(note.name)) for note in recent_notes]

    matches = store.find_names(typed, limit=_MAX_CHOICES)
    return [_note_choice(store, name_of(match.path), match.name) for match in matches]


def _note_choice(store: EnhancedStore, name: str, label: str) -> NoteChoice:
    """Return the choice of a note. Its link is the shortest one that means no other note.

    A `label` that is not the name of the file, such as an alias, becomes the text of the link.
    """
    file_name = _file_name(name)
    link = name
    if len(store.extension.files_called(f"{file_name}.md")) == 1:
        link = file_name
    if label != file_name and _SIGNS_OF_LINKS.isdisjoint(label):
        link = f"{link}|{label}"
    return NoteChoice(label=label, link=link, name=name)


def _file_name(name: str) -> str:
    """Return the name of a note without its folder."""
    return name.rpartition("/")[2]


async def _complete_tags(request: Request, view: VaultView, _grant: Grant) -> Response:
    """Return up to 20 tags that contain what was typed after `#`.

    Those that begin with it are first. Apart from that, the most used ones are.
    """
    typed = request.query_params.get("q", "").casefold()
    tags_by_use = await ask(view, lambda store: store.tags())
    matches = [tag for tag in tags_by_use if typed in tag.casefold()]
    beginning = [tag for tag in matches if tag.casefold().startswith(typed)]
    others = [tag for tag in matches if not tag.casefold().startswith(typed)]
    return Json([*beginning, *others][:_MAX_CHOICES])


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
