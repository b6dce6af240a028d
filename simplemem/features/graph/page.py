"""A note as a page of the graph: the entity it is, and the observations and relations on it. Pure.

Any note can be read as a page. It is an entity if its folder or its `type` says so. docs/graph.md
describes what counts on a page; `page_lists` and `bullets` implement it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from simplemem.features.graph.bullets import Bullet, RelationLine
from simplemem.features.graph.literals import parse_text
from simplemem.features.graph.page_lists import SectionSpan, read_lists
from simplemem.features.graph.values import Entity, Observation
from simplemem.features.note_type import NoteType
from simplemem.note.header import read_header
from simplemem.note.names import base_name, name_of
from simplemem.store import Read

FOLDER: Final = "graph"

# Stands between the texts that are searched as one. No text contains it.
_SEPARATOR: Final = "\uffff\ufffe"


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPage(Entity):
    """A note, read as a page: the entity that it is, and where its lists are in its text.

    Attributes:
        is_stub: Whether the page only holds relations whose source is no entity yet.
        order: The number by which entities are in the order of their creation, if it has one.
        bullets: The list items that are observations or relations, in the order of the page.
        relation_lines: The relations among them.
        sections: The spans of the sections that it has, by `observations` and `relations`.
        readable_end: Where a code block or comment begins that nothing closes, else the length of
            the text. Nothing is read or added after it.
        search_text: Its name, its type and its observations, in lower case.
    """

    is_stub: bool
    order: int | None
    bullets: tuple[Bullet, ...]
    relation_lines: tuple[RelationLine, ...]
    sections: Mapping[str, SectionSpan]
    readable_end: int
    search_text: str

    @property
    def is_own(self) -> bool:
        """Whether the note is an entity. Other notes are read if an entity relates to them."""
        return not self.is_note


def read_page(path: str, text: str, sha256: str = "") -> GraphPage:
    """Return a note as a page. Any text can be read; nothing is raised.

    A note that is no entity and has no observation in its lists has its `description` as one.
    `sha256` is the hash of the note, which the page only carries.
    """
    header = read_header(text)
    properties = _texts_of(header.properties)
    is_entity = ENTITY.includes(path, properties.get("type"))
    name = base_name(path)
    if "title" in properties:
        name = parse_text(properties["title"])
    page_type = _page_type(properties, is_entity=is_entity)

    lists = read_lists(text, header.body_start, name_of(path), is_entity=is_entity)
    contents = [bullet.content for bullet in lists.bullets]
    observations = [content for content in contents if isinstance(content, Observation)]
    relation_lines = [content for content in contents if isinstance(content, RelationLine)]
    is_stub = (
        is_entity
        and header.properties.get("stub") is True
        and "entity_type" not in properties
        and not observations
    )
    if not is_entity and not observations:
        observations = _description_of(properties)

    return GraphPage(
        path=path,
        sha256=sha256,
        name=name,
        type=page_type,
        is_note=not is_entity,
        owner=unicodedata.normalize("NFC", properties.get("scope", "")),
        is_stub=is_stub,
        order=_order_of(header.properties),
        created=properties.get("created", ""),
        modified=properties.get("modified", ""),
        bullets=lists.bullets,
        observations=tuple(observations),
        relation_lines=tuple(relation_lines),
        sections=lists.sections,
        readable_end=lists.readable_end,
        search_text=_search_text(name, page_type, observations),
    )


def _texts_of(properties: Mapping[str, Any]) -> dict[str, str]:
    """Return the properties that have one value, as texts. Lists and mappings are left out."""
    texts = {}
    for key, value in properties.items():
        if value is None or isinstance(value, (Mapping, list)):
            continue
        texts[key] = str(value)
        if isinstance(value, bool):
            texts[key] = texts[key].lower()  # as YAML writes it
    return texts


def _page_type(properties: Mapping[str, str], *, is_entity: bool) -> str:
    """Return the type of an entity, or the note type of another note.

    The property `entity_type` is the type of an entity. An entity without it may have a `type` of
    the user's own.
    """
    note_type = properties.get("type", "")
    if not is_entity:
        return note_type or "note"

    if "entity_type" in properties:
        return parse_text(properties["entity_type"])
    if not note_type or note_type.casefold() == ENTITY.type:
        return ENTITY.type
    return note_type


def _order_of(properties: Mapping[str, Any]) -> int | None:
    """Return the property `order` if it is a whole number, else None."""
    order = properties.get("order")
    if isinstance(order, int) and not isinstance(order, bool):
        return order
    return None


def _description_of(properties: Mapping[str, str]) -> list[Observation]:
    """Return the property `description` as one observation; [] if the note has none."""
    description = properties.get("description", "")
    if not description:
        return []
    return [Observation(description.strip())]


def _search_text(name: str, page_type: str, observations: Sequence[Observation]) -> str:
    """Return what a search for a text looks at, in lower case."""
    texts = [name, page_type]
    texts += [observation.text for observation in observations]
    return _SEPARATOR.join(texts).lower()


def _read_note(read: Read) -> GraphPage:
    """Return a note that was read from the vault as a page."""
    return read_page(read.path, read.text, read.sha256)


def _sort_key(page: GraphPage) -> tuple[bool, bool, int, str, str]:
    """Return what sorts pages by creation: entities first, and those without an order last."""
    return (not page.is_own, page.order is None, page.order or 0, page.created, page.path)


ENTITY: Final[NoteType[GraphPage]] = NoteType(
    FOLDER,
    "entity",
    read=_read_note,
    sort_key=_sort_key,
    accepts_any_type=True,
)
"""The type of the notes that are entities."""
