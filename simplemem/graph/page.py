"""A note as a page of the graph: the entity it is, its observations and relations, and how they are changed. Pure.

Under `## Observations` every bullet is an observation, under `## Relations` a bullet is a relation: words, then a link.
Elsewhere the lists of other Markdown memories are understood where they lie: `- [category] text`, `- words [[Target]]`.
A change touches the lines it is about and no other byte (DESIGN §1.2).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from simplemem.graph import spelling
from simplemem.graph.values import Observation
from simplemem.note.frontmatter import read_header, remove_property, render_header, set_property
from simplemem.note.names import base_name

FOLDER: Final = "graph"
TYPE: Final = "entity"
UNTOLD_TYPE: Final = "entity"  # of a person's note that says no type
NOTE_TYPE: Final = "note"
BARE: Final = "relates_to"  # a link without a word before it
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|$)")
_BULLET: Final = re.compile(r"[-*+][ \t]+")
_HEADING: Final = re.compile(r"(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_CATEGORY: Final = re.compile(r"\[[^\[\]|]{2,60}\] +\S")
_LINK: Final = re.compile(r"\[\[([^\[\]\r\n]+)\]\]")
_OURS: Final = frozenset({"title", "type", "stub", "order", "created", "modified"})
_OPEN: Final = "open"  # not a section: a block of code that nobody closed, behind which nothing is read
_SECTIONS: Final = frozenset({"observations", "relations"})


class Bond(NamedTuple):
    """A relation as it stands on its page: to a link's target, or to a name that is said exactly."""

    type: str
    link: str  # "" when the name is said
    name: str
    attributes: Mapping[str, Any]


class Bullet(NamedTuple):
    """One item of a list that says something, and its lines."""

    start: int
    end: int
    says: Observation | Bond


class Section(NamedTuple):
    """One of the two lists. `end` is behind its last bullet, or behind its heading."""

    end: int
    stop: int  # where the next heading begins


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
    sections: Mapping[str, Section]
    problem: str

    @property
    def observations(self) -> tuple[Observation, ...]:
        return tuple(bullet.says for bullet in self.bullets if isinstance(bullet.says, Observation))

    @property
    def bonds(self) -> tuple[Bond, ...]:
        return tuple(bullet.says for bullet in self.bullets if isinstance(bullet.says, Bond))


def read_page(path: str, text: str, sha256: str, *, kind: str | None = None) -> Page:
    """The page a note is. `kind` is the type its header says, where that is known already."""
    header = read_header(text)
    properties = header.properties
    kind = _text(properties.get("type")) if kind is None else kind
    is_entity = is_entity_note(path, kind)
    bullets, sections = _lists(text, header.body_start, everything=is_entity)
    told = _text(properties.get("entity_type"))
    if is_entity:
        shown = spelling.read(told) if told is not None else UNTOLD_TYPE
    else:
        shown = kind or NOTE_TYPE
        if not any(isinstance(bullet.says, Observation) for bullet in bullets) and (
            description := _text(properties.get("description"))
        ):
            bullets = (Bullet(0, 0, Observation(description.strip())), *bullets)
    title, order = _text(properties.get("title")), properties.get("order")
    observed = any(isinstance(bullet.says, Observation) for bullet in bullets)
    return Page(
        path=path,
        sha256=sha256,
        name=spelling.read(title) if title is not None else base_name(path),
        type=shown,
        is_entity=is_entity,
        is_stub=is_entity and properties.get("stub") is True and told is None and not observed,
        order=order if isinstance(order, int) and not isinstance(order, bool) else None,
        created=_text(properties.get("created")) or "",
        modified=_text(properties.get("modified")) or "",
        bullets=bullets,
        sections=sections,
        problem=header.problem.message if header.problem is not None else "",
    )


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


# -- reading the lists


def _lists(text: str, start: int, *, everything: bool) -> tuple[tuple[Bullet, ...], dict[str, Section]]:
    """The bullets that say something, and the two sections. Without `everything` a bullet outside of them must have the
    form of other memories to count."""
    bullets: list[Bullet] = []
    sections: dict[str, Section] = {}
    section, level, fence, at, size = "", 0, "", start, len(text)
    above = True  # before the first heading below the title
    item, began = False, start  # whether what comes may belong to an item of the section, and where the code began
    while at < size:
        found = _LINE.match(text, at)
        assert found is not None
        end, line = found.end(), found[0].rstrip("\r\n")
        first = line[:1]
        belongs = bool(section and section in sections and item)
        if fence:
            if (closing := _FENCE.match(line)) and closing[1].startswith(fence) and not line[closing.end() :].strip():
                fence = ""
            if belongs:
                sections[section] = sections[section]._replace(end=end)
        elif first == "#" and (heading := _HEADING.match(line)):
            item = False
            depth, title = len(heading[1]), heading[2].strip().casefold()
            named = title if title in _SECTIONS else ""
            if section and section in sections:
                sections[section] = sections[section]._replace(stop=at) if depth <= level else sections[section]
            if named and named not in sections:
                section, level = named, depth
                sections[named] = Section(end, size)
            elif depth <= level or not section:
                section, level, above = "", depth, above and depth == 1
        elif first in "-*+" and first and (mark := _BULLET.match(line)):
            content = line[mark.end() :]
            while end < size and text[end] in " \t" and (more := _LINE.match(text, end)) and more[0].strip():
                content += "\n" + _dedented(more[0].rstrip("\r\n"))
                end = more.end()
            says = _said(content.rstrip(), section, everything=everything and above)
            if says is not None:
                bullets.append(Bullet(at, end, says))
            item = True
            if section:
                sections[section] = sections[section]._replace(end=end)
        elif not line.strip():
            at = end if end > at else size
            continue
        elif first in "`~ " and (opening := _FENCE.match(line)):
            fence, began = opening[1], at
            item = belongs = belongs and _goes_on(at, sections[section].end, first)
            if belongs:
                sections[section] = sections[section]._replace(end=end)
        elif belongs and _goes_on(at, sections[section].end, first):
            sections[section] = sections[section]._replace(end=end)  # what is added must not come between
        else:
            item = False
        at = end if end > at else size
    if fence:
        sections[_OPEN] = Section(began, size)
    return tuple(bullets), sections


def _goes_on(at: int, end: int, first: str) -> bool:
    """Whether a line belongs to the item that ends before it: it follows at once, or is indented."""
    return at == end or first in " \t"


def _dedented(line: str) -> str:
    return line[2:] if line.startswith("  ") else line.lstrip(" \t")


def _said(content: str, section: str, *, everything: bool) -> Observation | Bond | None:
    """What a bullet says, None for nothing to the graph."""
    if section == "observations":
        return _observation(content)
    bond = _bond(content)
    if section == "relations" or bond is not None:
        return bond
    return _observation(content) if everything or _CATEGORY.match(content) else None


def _observation(content: str) -> Observation:
    said, attributes = spelling.split_attributes(content)
    return Observation(spelling.read(said), attributes)


def _bond(content: str) -> Bond | None:
    """A relation: its type, a link or an exact name, and what stands behind in a comment."""
    said, attributes = spelling.split_attributes(content)
    kind: str | None = None
    if said.startswith('"'):
        kind, end = spelling.literal_in(said)
        if kind is not None:
            said = said[end:].lstrip()
    if kind is not None and said.startswith('"'):
        name, end = spelling.literal_in(said)
        return Bond(kind, "", name, attributes) if name is not None and end == len(said) else None
    if kind is None and (named := _named(said, attributes)) is not None:
        return named
    found = spelling.link_in(said)
    if found is None:
        return None
    before, link = found
    if kind is not None:
        return Bond(kind, _target(link), "", attributes) if not before else None
    if before.startswith("[") or before.endswith("!"):
        return None
    return Bond(before or BARE, _target(link), "", attributes)


def _named(said: str, attributes: Mapping[str, Any]) -> Bond | None:
    """`knows "a name"`: a relation to a name that no link can say."""
    at = said.find(' "')
    if at < 0 or not said.endswith('"'):
        return None
    name, end = spelling.literal_in(said[at + 1 :])
    return Bond(said[:at], "", name, attributes) if name is not None and at + 1 + end == len(said) else None


def _target(link: str) -> str:
    return link.split("|", 1)[0].split("#", 1)[0].strip()


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
    unclosed = page.sections.get(_OPEN)
    if there is not None:
        at = there.end if unclosed is None else min(there.end, unclosed.end)
        gap = "" if at == 0 or text[at - 1] in "\r\n" else newline
        return text[:at] + gap + added + text[at:]
    heading = f"## {section.capitalize()}{newline}"
    other = page.sections.get("relations") if section == "observations" else None
    at = _heading_before(text, other) if other is not None else len(text)
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
    mark = _BULLET.match(item)
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
    bullets, _ = _lists(text, header.body_start, everything=True)
    rest = without_bonds(text, [each for each in bullets if isinstance(each.says, Bond)])[header.body_start :]
    return rest.strip() in ("", "## Relations")


def _heading_before(text: str, section: Section) -> int:
    """Where the heading line of a section without bullets before it begins."""
    at = section.end
    while True:
        start = max(text.rfind("\n", 0, at - 1), text.rfind("\r", 0, at - 1)) + 1
        line = _HEADING.match(text[start:at].rstrip("\r\n"))
        if start == 0 or (line and line[2].strip().casefold() == "relations"):
            return start
        at = start


def _newline(text: str) -> str:
    found = re.search(r"\r\n|\n|\r", text)
    return found[0] if found else "\n"
