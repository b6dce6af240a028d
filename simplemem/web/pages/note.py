"""The page of a note: its text, properties, links, backlinks and latest versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from simplemem.errors import NotFound
from simplemem.web.markdown.addresses import edit_url
from simplemem.web.markdown.context import NoteContext
from simplemem.web.markdown.parts import Part, part_of
from simplemem.web.note_context import read_context
from simplemem.web.pages.note_actions import actions_of
from simplemem.web.pages.page_routes import PageRoutes
from simplemem.web.pages.responses import ask, can_write, error_page, show_page, show_part
from simplemem.web.property_values import PropertyValue, link_targets, property_rows
from simplemem.web.rendering import Renderer
from simplemem.web.tokens import Grant
from simplemem.web.vault_view import VaultView

if TYPE_CHECKING:
    from simplemem.models import Backlink, HistoryEntry, Memory
    from simplemem.store import EnhancedStore

_MAX_BACKLINKS: Final = 20
_MAX_RELATED_NOTES: Final = 6
_MAX_VERSIONS_OF_NOTE: Final = 5


def routes(page: PageRoutes, renderer: Renderer) -> list[Route]:
    """Return the route of a note. `renderer` makes the HTML of its text."""
    return [page.get("/note/{name:path}", partial(_show_note, renderer))]


@dataclass(frozen=True, slots=True)
class _Wish:
    """What a request asks to see of a note.

    Attributes:
        part: The number of the part of a long note.
        has_authors: Whether to show who wrote each block.
        is_text_only: Whether the page has the other parts already, and only needs this text.
        can_create: Whether the reader may create notes.
    """

    part: int
    has_authors: bool
    is_text_only: bool
    can_create: bool


@dataclass(frozen=True, slots=True)
class _NotePage:
    """What the store knows of a note for its page."""

    note: Memory
    part: Part
    context: NoteContext
    properties: Mapping[str, Sequence[PropertyValue]]
    backlinks: Sequence[Backlink] = ()
    versions: Sequence[HistoryEntry] = ()


async def _show_note(
    renderer: Renderer, request: Request, view: VaultView, grant: Grant
) -> Response:
    """Show a note, with its properties, links, backlinks and latest versions.

    `?part=2` shows the second part of a long note, `?only=text` nothing but the text, and
    `?blame=1` who wrote it. If there is no such note, says so, and leads whoever may write to the
    editor. Raises NotFound for everybody else, Ambiguous if several notes have the name.
    """
    name = request.path_params["name"]
    prefix = view.vault.prefix
    wish = _read_wish(request, can_create=can_write(view, grant))
    try:
        page = await ask(view, lambda store: _read_note(store, name, prefix, wish))
    except NotFound as error:
        if not wish.can_create:
            raise
        return error_page(view.vault, grant, error, create_address=edit_url(prefix, name))

    part = page.part
    text = f"{part.text}\n\n{part.definitions}" if part.definitions else part.text
    html = await renderer.render(text, prefix, page.context)
    shown: dict[str, Any] = {
        "note": page.note,
        "part": part,
        "has_authors": wish.has_authors,
        "rendered_body": html,
    }
    if wish.is_text_only:
        return show_part(view, "note_text.html", **shown)

    related = [link for link in page.backlinks if link.kind == "semantic"]
    resolved = [link.target for link in page.note.links if link.resolved]
    return show_page(
        view,
        grant,
        "note.html",
        page.note.title,
        **shown,
        linking_notes=[link for link in page.backlinks if link.kind == "link"],
        link_targets=list(dict.fromkeys(resolved)),
        related_notes=related[:_MAX_RELATED_NOTES],
        properties=page.properties,
        versions=page.versions,
        actions=actions_of(view, grant, page.note),
    )


def _read_wish(request: Request, *, can_create: bool) -> _Wish:
    """Return what a request asks to see. A part that is no number is the first one."""
    query = request.query_params
    part = query.get("part", "")
    is_number = part.isascii() and part.isdigit() and len(part) < 10
    return _Wish(
        part=int(part) if is_number else 1,
        has_authors=query.get("blame") == "1",
        is_text_only=query.get("only") == "text",
        can_create=can_create,
    )


def _read_note(store: EnhancedStore, name: str, prefix: str, wish: _Wish) -> _NotePage:
    """Return what a request asks to see of a note. Runs in a thread."""
    note = store.read(name)
    body, first_line = _body_without_title(note)
    part = part_of(body, wish.part)
    context = read_context(
        store,
        note.path,
        part.text,
        property_targets=link_targets(note.frontmatter),
        first_line=first_line + part.first_line,
        can_create=wish.can_create,
        blamed_lines=store.blame(note.name) if wish.has_authors else (),
    )
    page = _NotePage(note, part, context, property_rows(note.frontmatter, context, prefix))
    if wish.is_text_only:
        return page

    backlinks = store.backlinks(note.name, limit=_MAX_BACKLINKS)
    versions = store.history(note.name, limit=_MAX_VERSIONS_OF_NOTE)
    return _NotePage(note, part, context, page.properties, backlinks, versions)


def _body_without_title(note: Memory) -> tuple[str, int]:
    """Return the text of a note and the line of the file at which it begins.

    A first heading that repeats the title, in any case, is left out.
    """
    content = note.content.lstrip()
    blank_lines = note.content[: len(note.content) - len(content)].count("\n")
    first_line, _, rest = content.partition("\n")
    if first_line.strip().casefold() == f"# {note.title}".casefold():
        return rest, note.content_line + blank_lines + 1
    return note.content, note.content_line
