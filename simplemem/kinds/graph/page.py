"""A note as a page of the graph: the entity it is, its observations and relations, and how they are changed. Pure.

Under `## Observations` every bullet is an observation, under `## Relations` a bullet is a relation: words, then a link.
Elsewhere the lists of other Markdown memories are understood where they lie: `- [category] text`, `- words [[Target]]`.
How they are found is `lists.py`.
A change touches the lines it is about and no other byte (DESIGN §1.2).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from simplemem.kinds.graph import spelling
from simplemem.kinds.graph.lists import BULLET, OPEN, Bond, Bullet, Section, read_lists
from simplemem.kinds.graph.values import Observation
from simplemem.note.header import read_header
from simplemem.note.names import base_name
from simplemem.note.properties import remove_property, render_header, set_property

FOLDER: Final = "graph"
TYPE: Final = "entity"
UNTOLD_TYPE: Final = "entity"  # of a person's note that says no type
NOTE_TYPE: Final = "note"
_LINK: Final = re.compile(r"\[\[([^\[\]\r\n]+)\]\]")
_OURS: Final = frozenset({"title", "type", "stub", "order", "created", "modified"})


class Page(NamedTuple):
    """One note, read as a page. `order` is None where no order is told."""

    path: str
    sha256: str
    name: str
    type: str
    is_entity: bool
    is_stub: bool
    order: int | None
    created: str
    modified: str
    bullets: tuple[Bullet, ...]
    observations: tuple[Observation, ...]  # of the bullets
    sections: Mapping[str, Section]
    problem: str

    @property
    def bonds(self) -> tuple[Bond, ...]:
        return tuple(bullet.says for bullet in self.bullets if isinstance(bullet.says, Bond))


def read_page(path: str, text: str, sha256: str, *, kind: str | None = None) -> Page:
    """The page a note is. `kind` is the type its header says, where that is known already."""
    header = read_header(text)
    properties = header.properties
    kind = _text(properties.get("type")) if kind is None else kind
    is_entity = is_entity_note(path, kind)
    bullets, sections = read_lists(text, header.body_start, everything=is_entity)
    told = _text(properties.get("entity_type"))
    if is_entity:
        shown = spelling.read(told) if told is not None else UNTOLD_TYPE
    else:
        shown = kind or NOTE_TYPE
        if not _observations(bullets) and (description := _text(properties.get("description"))):
            bullets = (Bullet(0, 0, Observation(description.strip())), *bullets)
    title, order = _text(properties.get("title")), properties.get("order")
    observations = _observations(bullets)
    return Page(
        path=path,
        sha256=sha256,
        name=spelling.read(title) if title is not None else base_name(path),
        type=shown,
        is_entity=is_entity,
        is_stub=is_entity and properties.get("stub") is True and told is None and not observations,
        order=order if isinstance(order, int) and not isinstance(order, bool) else None,
        created=_text(properties.get("created")) or "",
        modified=_text(properties.get("modified")) or "",
        bullets=bullets,
        observations=observations,
        sections=sections,
        problem=header.problem.message if header.problem is not None else "",
    )


def _observations(bullets: Sequence[Bullet]) -> tuple[Observation, ...]:
    return tuple(bullet.says for bullet in bullets if isinstance(bullet.says, Observation))


def is_entity_note(path: str, kind: str | None) -> bool:
    """Whether a note is an entity: its `type:` says so, or it lies in the folder and says nothing else."""
    if kind:
        return kind.casefold() == TYPE
    return path.startswith(f"{FOLDER}/")


def _text(value: Any) -> str | None:
    """A property as text, None for what is none."""
    if value is None or isinstance(value, (Mapping, list)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


# -- writing


def new_page(
    name: str,
    path: str,
    kind: str | None,
    order: int,
    now: str,
    *,
    observations: Sequence[Observation] = (),
    bonds: Sequence[str] = (),
) -> str:
    """The text of a new page. Without a kind it only holds a name that relations lead to."""
    properties: dict[str, Any] = {}
    if base_name(path) != name:
        properties["title"] = spelling.spell(name)
    properties["type"] = TYPE
    if kind is None:
        properties["stub"] = True
    else:
        properties["entity_type"] = spelling.spell(kind)
    properties |= {"order": order, "created": now, "modified": now}
    text = render_header(properties)
    if observations:
        text += "\n## Observations\n" + "".join(f"{line}\n" for line in map(observation_line, observations))
    if bonds:
        text += "\n## Relations\n" + "".join(f"{line}\n" for line in bonds)
    return text


def made_entity(text: str, kind: str, order: int) -> str:
    """The page of a stub, which becomes an entity."""
    text = remove_property(text, "stub")
    text = set_property(text, "entity_type", spelling.spell(kind))
    return set_property(text, "order", order)


def observation_line(said: Observation) -> str:
    """An observation as a bullet; one of several plain lines is indented below the first."""
    lines = said.text.split("\n")
    if len(lines) > 1 and all(map(spelling.is_plain, lines)):
        return "- " + "\n  ".join(lines) + spelling.spell_attributes(said.attributes)
    return "- " + spelling.spell(said.text) + spelling.spell_attributes(said.attributes)


def bond_line(kind: str, target: str, attributes: Mapping[str, Any]) -> str:
    """A relation as a bullet; `target` is a link or a literal."""
    return f"- {spelling.spell_type(kind)} {target}{spelling.spell_attributes(attributes)}"


def with_lines(text: str, page: Page, section: str, lines: Sequence[str]) -> str:
    """The page with bullets added at the end of a section, which is made when it is not there."""
    if not lines:
        return text
    newline = _newline(text)
    added = "".join(f"{line}\n" for line in lines).replace("\n", newline)
    there = page.sections.get(section)
    unclosed = page.sections.get(OPEN)
    if there is not None:
        at = there.end if unclosed is None else min(there.end, unclosed.end)
        gap = "" if at == 0 or text[at - 1] in "\r\n" else newline
        return text[:at] + gap + added + text[at:]
    heading = f"## {section.capitalize()}{newline}"
    other = page.sections.get("relations") if section == "observations" else None
    at = other.start if other is not None else len(text)
    if unclosed is not None:
        at = min(at, unclosed.end)
    before, after = text[:at], text[at:]
    gap = "" if not before or before.endswith(("\n", "\r")) else newline
    blank = "" if not before or before.endswith(newline * 2) else newline
    return before + gap + blank + heading + added + (newline if after else "") + after


def without_bullets(text: str, gone: Sequence[Bullet]) -> str:
    """The page without some of its bullets."""
    kept, at = [], 0
    for bullet in sorted(gone):
        kept.append(text[at : bullet.start])
        at = bullet.end
    return "".join([*kept, text[at:]])


def without_bonds(text: str, gone: Sequence[Bullet]) -> str:
    """The page without some of its relations. A bullet that says more than its relation keeps its words, and the link in
    it becomes the words that it showed."""
    kept, at = [], 0
    for bullet in sorted(gone, key=lambda each: each.start):
        kept += [text[at : bullet.start], _without_link(text[bullet.start : bullet.end])]
        at = bullet.end
    return "".join([*kept, text[at:]])


def _without_link(item: str) -> str:
    mark = BULLET.match(item)
    assert mark is not None
    said, _ = spelling.split_attributes(item[mark.end() :].rstrip())
    kind, end = spelling.literal_in(said)
    link = _LINK.search(said, 0 if kind is None else end)
    if link is None or link.end() == len(said):
        return ""
    ending = item[len(item.rstrip()) :]
    shown = link[1].rsplit("|", 1)[-1].strip()
    return f"{mark[0]}{said[: link.start()]}{shown}{said[link.end() :]}{ending}"


def with_attributes(text: str, bullet: Bullet, attributes: Mapping[str, Any]) -> str:
    """The page with other attributes behind a bullet, whose words stay as they are."""
    old = text[bullet.start : bullet.end]
    item = old.rstrip()
    said, _ = spelling.split_attributes(item)
    return text[: bullet.start] + said + spelling.spell_attributes(attributes) + old[len(item) :] + text[bullet.end :]


def is_bare(text: str) -> bool:
    """Whether a page says nothing but what `new_page` says of a name that only holds relations: no word of a person's."""
    header = read_header(text)
    if set(header.properties) - _OURS:
        return False
    bullets, _ = read_lists(text, header.body_start, everything=True)
    rest = without_bonds(text, [each for each in bullets if isinstance(each.says, Bond)])[header.body_start :]
    return rest.strip() in ("", "## Relations")


def _newline(text: str) -> str:
    found = re.search(r"\r\n|\n|\r", text)
    return found[0] if found else "\n"
