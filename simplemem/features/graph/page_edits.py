"""New pages of the graph, and list items added to pages and removed from them. Pure.

An edit changes the lines that it is about and no other byte of the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from simplemem.features.graph.bullets import Bullet, format_observation
from simplemem.features.graph.literals import format_text
from simplemem.features.graph.page import ENTITY, GraphPage
from simplemem.features.graph.values import Entity
from simplemem.note.names import base_name


def render_page(
    path: str,
    entity: Entity,
    order: int,
    now: str,
    *,
    is_stub: bool = False,
    relation_items: Sequence[str] = (),
) -> str:
    """Return the text of a new page, with an entity and its relations as list items.

    `order` is the number of the entity in the order of creation, and `now` the time that the note
    has as its dates. `relation_items` are complete list items, as `format_relation` returns them. A
    stub has no type: it only holds relations whose source is no entity yet.
    """
    properties: dict[str, Any] = {}
    if base_name(path) != entity.name:
        properties["title"] = format_text(entity.name)
    if is_stub:
        properties["stub"] = True
    else:
        properties["entity_type"] = format_text(entity.type)
    if entity.owner:
        properties["scope"] = entity.owner
    properties["order"] = order

    observation_items = [format_observation(observation) for observation in entity.observations]
    sections = []
    if observation_items:
        sections.append(_render_section("observations", observation_items))
    if relation_items:
        sections.append(_render_section("relations", relation_items))
    return ENTITY.render(properties, "\n".join(sections), now)


def _render_section(section: str, items: Iterable[str]) -> str:
    """Return a section with its heading and list items."""
    lines = [_heading(section), *items, ""]
    return "\n".join(lines)


def _heading(section: str) -> str:
    """Return the heading of a section, without a line break."""
    return f"## {section.capitalize()}"


def add_items(
    text: str,
    page: GraphPage,
    section: str,
    items: Iterable[str],
) -> str:
    """Return the text of a page with list items added at the end of a section.

    `page` is what `read_page` returned for the text. `section` is `observations` or `relations`,
    and `items` are complete list items with their `- `. A section that the page does not have is
    added at its end; the observations are added before the relations.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    position = _insertion_point(page, section, len(text))
    head = text[:position]
    tail = text[position:]
    if head and not head.endswith(("\n", "\r")):
        head += newline

    lines = "".join(f"{item}\n" for item in items)
    added = lines.replace("\n", newline)
    if section in page.sections:
        return head + added + tail

    if head and not head.endswith(newline * 2):
        head += newline
    if tail:
        added += newline
    return f"{head}{_heading(section)}{newline}{added}{tail}"


def _insertion_point(page: GraphPage, section: str, length: int) -> int:
    """Return where list items of a section are added to a page whose text has this length."""
    position = length
    if section in page.sections:
        position = page.sections[section].end
    elif "relations" in page.sections:
        position = page.sections["relations"].start
    return min(position, page.readable_end)


def remove_bullets(text: str, bullets: Iterable[Bullet]) -> str:
    """Return the text of a page without some of its list items, which were read from this text."""
    # The last one first: the positions of the others stay valid.
    for bullet in sorted(bullets, key=lambda bullet: bullet.start, reverse=True):
        text = text[: bullet.start] + text[bullet.end :]
    return text
