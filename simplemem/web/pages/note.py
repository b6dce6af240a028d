"""The page of a note: its text, properties, links, backlinks and latest versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from simplemem.errors import Hint, HintSentence, NotFound
from simplemem.note.names import path_of
from simplemem.web.long_notes import LongNotes, NoteBody
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
    from simplemem.features.review.inbox import OpenChange
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
        person: Who asks.
        part: The number of the part of a long note.
        has_authors: Whether to show who wrote each block.
        is_text_only: Whether the page has the other parts already, and only needs this text.
        can_create: Whether the reader may create notes.
    """

    person: str
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
    open_change: OpenChange | None = None


@dataclass(frozen=True, slots=True)
class _TextPart:
    """A part of the text of the note called `name`, with what its renderer needs."""

    name: str
    part: Part
    context: NoteContext


_long_notes: Final = LongNotes()


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
    wish = _read_wish(request, grant.name, can_create=can_write(view, grant))
    if wish.is_text_only:
        text_part = await ask(view, lambda store: _read_text_part(store, name, wish))
        html = await _render(renderer, prefix, text_part.part, text_part.context)
        return show_part(
            view,
            "note_text.html",
            note_name=text_part.name,
            part=text_part.part,
            has_authors=wish.has_authors,
            rendered_body=html,
        )

    try:
        page = await ask(view, lambda store: _read_note(store, name, prefix, wish))
    except NotFound as error:
        if not wish.can_create:
            raise
        return error_page(
            view.vault,
            grant,
            error,
            create_address=edit_url(prefix, name),
            deleted_note=name if _says_how_to_restore(error) else "",
        )

    related = [link for link in page.backlinks if link.kind == "semantic"]
    resolved = [link.target for link in page.note.links if link.resolved]
    return show_page(
        view,
        grant,
        "note.html",
        page.note.title,
        note=page.note,
        note_name=page.note.name,
        part=page.part,
        has_authors=wish.has_authors,
        rendered_body=await _render(renderer, prefix, page.part, page.context),
        linking_notes=[link for link in page.backlinks if link.kind == "link"],
        link_targets=list(dict.fromkeys(resolved)),
        related_notes=related[:_MAX_RELATED_NOTES],
        properties=page.properties,
        versions=page.versions,
        open_change=page.open_change,
        actions=actions_of(view, grant, page.note),
    )


def _says_how_to_restore(error: NotFound) -> bool:
    """Return whether the hint of an error names the version whose undo restores the note."""
    if not isinstance(error.hint, Hint):
        return False
    sentences = [part for part in error.hint.sentences if isinstance(part, HintSentence)]
    return any(sentence.key == "undo" for sentence in sentences)


async def _render(renderer: Renderer, prefix: str, part: Part, context: NoteContext) -> str:
    """Return the HTML of a part, with what other parts define."""
    text = part.text
    if part.definitions:
        text = f"{part.text}\n\n{part.definitions}"
    return await renderer.render(text, prefix, context)


def _read_wish(request: Request, person: str, *, can_create: bool) -> _Wish:
    """Return what a request by a person asks to see. A part that is no number is the first one."""
    query = request.query_params
    part = query.get("part", "")
    is_number = part.isascii() and part.isdigit() and len(part) < 10
    return _Wish(
        person=person,
        part=int(part) if is_number else 1,
        has_authors=query.get("blame") == "1",
        is_text_only=query.get("only") == "text",
        can_create=can_create,
    )


def _read_note(store: EnhancedStore, name: str, prefix: str, wish: _Wish) -> _NotePage:
    """Return what a request asks to see of a note. Runs in a thread."""
    from simplemem.features.review.service import review_of

    note = store.read(name)
    body = _read_body(note)
    part = part_of(body.text, wish.part)
    context = read_context(
        store,
        note.path,
        part.text,
        property_targets=link_targets(note.frontmatter),
        first_line=body.first_line + part.first_line,
        can_create=wish.can_create,
        blamed_lines=store.blame(note.name) if wish.has_authors else (),
    )
    backlinks = store.backlinks(note.name, limit=_MAX_BACKLINKS)
    versions = store.history(note.name, limit=_MAX_VERSIONS_OF_NOTE)
    properties = property_rows(note.frontmatter, context, prefix)
    open_change = review_of(store).latest_open_change(note.name, wish.person)
    return _NotePage(note, part, context, properties, backlinks, versions, open_change)


def _read_text_part(store: EnhancedStore, name: str, wish: _Wish) -> _TextPart:
    """Return a part of the text of a note. Runs in a thread.

    The text of a long note is kept from the first part on, until the note changes.
    """
    full_name = store.resolve(name)
    path = path_of(full_name)
    body = None
    for file in store.extension.read([path]):
        body = _long_notes.get(_key_of(path, file.sha256))
    if body is None:
        body = _read_body(store.read(full_name))

    part = part_of(body.text, wish.part)
    context = read_context(
        store,
        path,
        part.text,
        first_line=body.first_line + part.first_line,
        can_create=wish.can_create,
        blamed_lines=store.blame(full_name) if wish.has_authors else (),
    )
    return _TextPart(full_name, part, context)


def _read_body(note: Memory) -> NoteBody:
    """Return the text of a note without its title, and keep that of a long one."""
    text, first_line = _body_without_title(note)
    body = NoteBody(text, first_line)
    _long_notes.put(_key_of(note.path, note.sha256), body)
    return body


def _key_of(path: str, sha256: str) -> str:
    """Return the key by which the text of a note is kept. The title depends on its path."""
    return f"{sha256} {path}"


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
