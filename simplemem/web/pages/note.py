"""The page of a note: its text, links, backlinks, properties and latest versions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from simplemem.web.pages.page_routes import PageRoutes
from simplemem.web.pages.responses import ask, show_page
from simplemem.web.render import MAX_CHARACTERS
from simplemem.web.rendering import Renderer
from simplemem.web.tokens import Grant
from simplemem.web.vault_view import VaultView

if TYPE_CHECKING:
    from simplemem.models import Backlink, HistoryEntry, Memory
    from simplemem.store import EnhancedStore

_MAX_BACKLINKS: Final = 20
_MAX_RELATED_NOTES: Final = 6
_MAX_VERSIONS_OF_NOTE: Final = 5
_OWN_PROPERTIES: Final = ("title", "tags", "description")  # shown above the text of a note
# Possessive, so that the time stays linear in the text, however many brackets it has.
_WIKILINK: Final = re.compile(r"\[\[([^\[\]|#]{1,400}+)[^\[\]]*+\]\]")


def routes(page: PageRoutes, renderer: Renderer) -> list[Route]:
    """Return the route of a note. `renderer` makes the HTML of its text."""
    return [page.get("/note/{name:path}", partial(_show_note, renderer))]


@dataclass(frozen=True, slots=True)
class TextPart:
    """A part of a property. It links to the note `target`, if there is one."""

    text: str
    target: str = ""


async def _show_note(
    renderer: Renderer, request: Request, view: VaultView, grant: Grant
) -> Response:
    """Show a note, with its links, backlinks, properties and latest versions.

    Raises NotFound if there is none, Ambiguous if several have the name.
    """
    name = request.path_params["name"]

    def read_note(
        store: EnhancedStore,
    ) -> tuple[Memory, Sequence[Backlink], Sequence[HistoryEntry]]:
        note = store.read(name)
        backlinks = store.backlinks(note.name, limit=_MAX_BACKLINKS)
        versions = store.history(note.name, limit=_MAX_VERSIONS_OF_NOTE)
        return note, backlinks, versions

    note, backlinks, versions = await ask(view, read_note)
    body = _body_without_title(note)
    related = [link for link in backlinks if link.kind == "semantic"]
    properties = {
        str(key): split_property(value)
        for key, value in note.frontmatter.items()
        if key not in _OWN_PROPERTIES
    }
    return show_page(
        view,
        grant,
        "note.html",
        note.title,
        note=note,
        rendered_body=await renderer.render(body, view.vault.prefix),
        is_cut=len(body) > MAX_CHARACTERS,
        linking_notes=[link for link in backlinks if link.kind == "link"],
        link_targets=list(dict.fromkeys(link.target for link in note.links if link.resolved)),
        related_notes=related[:_MAX_RELATED_NOTES],
        properties=properties,
        versions=versions,
    )


def _body_without_title(note: Memory) -> str:
    """Return the text of a note, without a first heading that repeats its title in any case."""
    first_line, _, rest = note.content.lstrip().partition("\n")
    if first_line.strip().casefold() == f"# {note.title}".casefold():
        return rest
    return note.content


def split_property(value: object) -> list[TextPart]:
    """Return the value of a property as text, in which each wikilink is a part of its own.

    The items of a list, and the entries of a mapping, have commas between them.
    """
    if isinstance(value, Mapping):
        entries = [[TextPart(f"{key}: "), *split_property(entry)] for key, entry in value.items()]
        return _join_with_commas(entries)

    if isinstance(value, (list, tuple)):
        return _join_with_commas([split_property(item) for item in value])

    text = str(value)
    parts = []
    end = 0
    for link in _WIKILINK.finditer(text):
        target = link[1]
        parts.append(TextPart(text[end : link.start()]))
        parts.append(TextPart(target.rpartition("/")[2], target))
        end = link.end()
    parts.append(TextPart(text[end:]))
    return parts


def _join_with_commas(items: Sequence[Sequence[TextPart]]) -> list[TextPart]:
    """Return the parts of several texts as those of one text, with commas between the texts."""
    parts: list[TextPart] = []
    for item in items:
        if parts:
            parts.append(TextPart(", "))
        parts.extend(item)
    return parts
