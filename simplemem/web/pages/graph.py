"""The graph of notes and links: the page that draws it, and the data of the drawing.

Without the script, the page is a list of the same notes. All choices are in its address.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from simplemem.errors import NotFound
from simplemem.note.names import path_of
from simplemem.web.pages.filter_options import FilterOptions, read_filter_options
from simplemem.web.pages.page_routes import PageRoutes
from simplemem.web.pages.responses import ask, show_page
from simplemem.web.tokens import Grant
from simplemem.web.vault_view import VaultView

if TYPE_CHECKING:
    from simplemem.features.graph.note_graph import GraphNote, GraphPart, NoteFilter, Show
    from simplemem.store import EnhancedStore

_MAX_LISTED_NOTES: Final = 200
_SHOWS: Final[dict[str, Show]] = {"linked": "linked", "recent": "recent", "all": "all"}
_DEPTHS: Final = ("1", "2", "3")
_COLOURS: Final = ("folder", "type", "tag")


def routes(page: PageRoutes) -> list[Route]:
    """Return the routes of the page of the graph and of its data."""
    return [
        page.get("/graph", _show_graph),
        page.get("/graph/data", _send_data),
    ]


@dataclass(frozen=True, slots=True)
class GraphChoices:
    """What a person chose to see of the graph, as it is in the address.

    `note` is the name of the note in the centre; without it, `show` says which notes are shown.
    """

    note: str
    depth: int
    show: Show
    folder: str
    tag: str
    type: str
    similar: bool
    colour: str

    @property
    def filter_count(self) -> int:
        """The number of filters that are set."""
        filters = (self.folder, self.tag, self.type)
        return len([value for value in filters if value])

    def conditions(self) -> NoteFilter:
        """Return the filter that the choices make."""
        # Imported here, because it would slow down the start of every server.
        from simplemem.features.graph.note_graph import NoteFilter

        return NoteFilter(folder=self.folder, tag=self.tag, type=self.type)


@dataclass(frozen=True, slots=True)
class ListedNote:
    """A note in the list beside the drawing. `distance` is 0 for the centre, and without one."""

    name: str
    title: str
    distance: int


def _read_choices(request: Request) -> GraphChoices:
    """Return the choices in an address. A choice that is missing or unknown has its default."""
    params = request.query_params
    depth = params.get("depth")
    if depth not in _DEPTHS:
        depth = "1"
    colour = params.get("colour")
    if colour not in _COLOURS:
        colour = "folder"

    return GraphChoices(
        note=params.get("note", "").strip(),
        depth=int(depth),
        show=_SHOWS.get(params.get("show", ""), "linked"),
        folder=params.get("folder", "").strip("/ "),
        tag=params.get("tag", "").strip("# "),
        type=params.get("type", "").strip(),
        similar=params.get("similar") == "1",
        colour=colour,
    )


async def _show_graph(request: Request, view: VaultView, grant: Grant) -> Response:
    """Show the notes around a note, or the most linked or most recent ones, or all.

    Raises NotFound if the note does not exist or is excluded from search, Ambiguous if several
    notes have the name.
    """
    choices = _read_choices(request)

    def read(store: EnhancedStore) -> tuple[GraphChoices, GraphPart, FilterOptions]:
        resolved = _resolve_note(store, choices)
        return resolved, _read_part(store, resolved), read_filter_options(store)

    choices, part, options = await ask(view, read)
    title = "Graph"
    if choices.note:
        centre = part.notes[0]
        title = f"Graph of {centre.title}"
    return show_page(
        view,
        grant,
        "graph.html",
        title,
        choices=choices,
        options=options,
        listed=_list_notes(part),
        shown=len(part.notes),
        matching=part.matching,
    )


async def _send_data(request: Request, view: VaultView, _grant: Grant) -> Response:
    """Return the notes and links of a part of the graph as JSON. Raises as the page does."""
    choices = _read_choices(request)

    def read(store: EnhancedStore) -> str:
        part = _read_part(store, _resolve_note(store, choices))
        return json.dumps(_columns_of(part), separators=(",", ":"))

    content = await ask(view, read)
    return Response(content, media_type="application/json")


def _resolve_note(store: EnhancedStore, choices: GraphChoices) -> GraphChoices:
    """Return the choices with the full name of their note, if they have one.

    Raises NotFound or Ambiguous if the name is not that of one note.
    """
    if not choices.note:
        return choices
    return replace(choices, note=store.resolve(choices.note))


def _read_part(store: EnhancedStore, choices: GraphChoices) -> GraphPart:
    """Return the part of the graph that was chosen. The centre is the first of its notes.

    Raises NotFound if the note in the centre is excluded from search.
    """
    from simplemem.features.graph.note_graph_service import note_graph_of

    graph_service = note_graph_of(store)
    conditions = choices.conditions()
    if not choices.note:
        return graph_service.graph().overview(choices.show, conditions)

    part = graph_service.around(
        path_of(choices.note), choices.depth, conditions, similar=choices.similar
    )
    if part is None:
        hint = "Notes that are excluded from search are not in the graph."
        raise NotFound(f"{choices.note} is not in the graph", hint=hint)
    return part


def _list_notes(part: GraphPart) -> list[ListedNote]:
    """Return the first 200 notes of a part, for the list beside the drawing."""
    distances = part.distances or [0] * len(part.notes)
    listed: list[ListedNote] = []
    for note, distance in zip(part.notes, distances, strict=True):
        if len(listed) == _MAX_LISTED_NOTES:
            break
        listed.append(ListedNote(note.name, note.title, distance))
    return listed


def _columns_of(part: GraphPart) -> dict[str, object]:
    """Return a part as JSON values, one list per property of the notes, so that it is short.

    `titles` has "" for a title that is the last part of the name. `type_of` and `tags_of` have the
    positions of a note's type and tags in `types` and `tags`. In `links` and `similar`, each pair
    of numbers is a link: the positions of its two notes in `names`.
    """
    types = _positions_of(note.type for note in part.notes)
    tags = _positions_of(chain.from_iterable(note.tags for note in part.notes))
    return {
        "names": [note.name for note in part.notes],
        "titles": [_title_unless_name(note) for note in part.notes],
        "types": list(types),
        "type_of": [types[note.type] for note in part.notes],
        "tags": list(tags),
        "tags_of": [[tags[tag] for tag in note.tags] for note in part.notes],
        "links": list(chain.from_iterable(part.links)),
        "similar": list(chain.from_iterable(part.similar)),
        "distances": part.distances,
        "matching": part.matching,
    }


def _positions_of(values: Iterable[str]) -> dict[str, int]:
    """Return the different values in the order in which they first occur, with their positions."""
    different = dict.fromkeys(values)
    return {value: position for position, value in enumerate(different)}


def _title_unless_name(note: GraphNote) -> str:
    """Return the title of a note, or "" if it is the last part of the name."""
    last_part = note.name.rpartition("/")[2]
    return "" if note.title == last_part else note.title
