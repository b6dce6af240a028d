"""A note as a page of the graph: the entity it is, its observations and relations, and how they are changed. Pure.

Under `## Observations` every bullet is an observation, under `## Relations` a bullet is a relation: words, then a link.
Elsewhere the lists of other Markdown memories are understood where they lie: `- [category] text`, `- words [[Target]]`.
Code and comments over several lines (`%% … %%`, `<!-- … -->`) say nothing. A change touches the lines it is about and no
other byte (DESIGN §1.2). Time grows with the length of the text, whatever stands there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from simplemem.kinds.graph import spelling
from simplemem.kinds.graph.values import Observation
from simplemem.kinds.kind import Kind
from simplemem.note.header import read_header
from simplemem.note.names import base_name
from simplemem.note.properties import remove_property, set_property

FOLDER: Final = "graph"
_UNTOLD_TYPE: Final = "entity"  # of a person's note that says no type
_NOTE_TYPE: Final = "note"
_ELSEWHERE: Final = "permalink"  # the property of notes of another Markdown memory, whose lists count as well
_OURS: Final = frozenset({"title", "type", "stub", "order", "created", "modified"})
_SECTIONS: Final = frozenset({"observations", "relations"})
_BARE: Final = "relates_to"  # a link without a word before it
_BULLET: Final = re.compile(r"[-*+][ \t]+")
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|$)")
_HEADING: Final = re.compile(r"(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$")
# Where code or a comment begins on a line: of its own, or set in a little.
_HIDING: Final = re.compile(r"(?:\A|(?<=[\r\n]))( {0,3})(`{3,}(?![^\r\n]*`)|~{3,}|%%|<!--)")
_FENCE: Final = re.compile(r"(?<=[\r\n]) {0,3}(`{3,}|~{3,})[ \t]*(?=[\r\n]|\Z)")  # one that closes
_CATEGORY: Final = re.compile(r"\[[^\[\]|]{2,60}\] +\S")
_LINK: Final = re.compile(r"\[\[([^\[\]\r\n]+)\]\]")


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


class GraphPage(NamedTuple):
    """One note, read as a page. `order` is None where no order is told. `sections` are where the two lists begin and end;
    nothing is read or added behind `opened`, where code or a comment begins that nobody closed."""

    path: str
    sha256: str
    name: str
    type: str
    is_entity: bool
    is_stub: bool
    is_own: bool  # an entity, or a note whose lists count by themselves
    order: int | None
    created: str
    modified: str
    bullets: tuple[Bullet, ...]
    observations: tuple[Observation, ...]
    bonds: tuple[Bond, ...]
    sections: Mapping[str, tuple[int, int]]
    opened: int
    problem: str
    searched: str  # name, type and observations in lower case, a line each


def read_page(path: str, text: str, sha256: str, problem: str = "") -> GraphPage:
    """The page a note is."""
    header = read_header(text)
    properties = header.properties
    kind = _text(properties.get("type"))
    is_entity = ENTITY.holds(path, kind)
    bullets, sections, opened = _read_lists(text, header.body_start, everything=is_entity)
    observations = tuple(each.says for each in bullets if isinstance(each.says, Observation))
    told = _text(properties.get("entity_type"))
    if is_entity:
        shown = spelling.read(told) if told is not None else _UNTOLD_TYPE
    else:
        shown = kind or _NOTE_TYPE
        if not observations and (description := _text(properties.get("description"))):
            observations = (Observation(description.strip()),)
    title, order = _text(properties.get("title")), properties.get("order")
    name = spelling.read(title) if title is not None else base_name(path)
    return GraphPage(
        path=path,
        sha256=sha256,
        name=name,
        type=shown,
        is_entity=is_entity,
        is_stub=is_entity and properties.get("stub") is True and told is None and not observations,
        is_own=is_entity or _ELSEWHERE in properties,
        order=order if isinstance(order, int) and not isinstance(order, bool) else None,
        created=_text(properties.get("created")) or "",
        modified=_text(properties.get("modified")) or "",
        bullets=bullets,
        observations=observations,
        bonds=tuple(each.says for each in bullets if isinstance(each.says, Bond)),
        sections=sections,
        opened=opened,
        problem=problem or (header.problem.message if header.problem is not None else ""),
        searched="\n".join([name, shown, *(each.text for each in observations)]).lower(),
    )


def place(page: GraphPage) -> tuple[bool, bool, int, str, str]:
    """Where a page stands among the others: in the order in which they were made, those that tell none behind."""
    return (not page.is_entity, page.order is None, page.order or 0, page.created, page.path)


ENTITY: Final[Kind[GraphPage]] = Kind(
    FOLDER,
    "entity",
    read=lambda read: read_page(read.path, read.text, read.sha256, read.problem),
    place=place,
    twin=lambda page: (
        page.order
    ),  # a copy has the place of its original; two entities called "Plan" and "Plan 2" do not
    having=_ELSEWHERE,
)


def _text(value: Any) -> str | None:
    """A property as text, None for what is none."""
    if value is None or isinstance(value, (Mapping, list)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


# -- the lists


def _read_lists(
    text: str, start: int, *, everything: bool
) -> tuple[tuple[Bullet, ...], dict[str, tuple[int, int]], int]:
    """The bullets that say something, where the two sections begin and end, and where something unclosed begins. Without
    `everything` a bullet outside of the sections must have the form of other memories to count."""
    hidden, opened = _hidden(text, start)
    bullets: list[Bullet] = []
    sections: dict[str, tuple[int, int]] = {}
    section, level = "", 0  # where we are, and how deep its heading is
    above = True  # before the first heading below the title
    in_item = False
    at = start
    while at < opened:
        begin, end = at, hidden.get(at, 0)
        if end:
            line = ""
        else:
            end = _line_end(text, at)
            line = text[at:end].rstrip("\r\n")
        at = end
        if line.startswith("#") and (heading := _HEADING.match(line)):
            depth, title, in_item = len(heading[1]), heading[2].strip().casefold(), False
            if title in _SECTIONS and title not in sections:
                section, level = title, depth
                sections[title] = (begin, end)
            elif depth <= level or not section:
                section, level, above = "", depth, above and depth == 1
        elif mark := _BULLET.match(line):
            more, at = _set_in(text, end, hidden)
            says = _said((line[mark.end() :] + more).rstrip(), section, everything=everything and above)
            if says is not None:
                bullets.append(Bullet(begin, at, says))
            in_item = True
            if section:
                sections[section] = (sections[section][0], at)
        elif begin in hidden or line.strip():
            # What follows an item at once, or is set in, is part of it: nothing is added in between.
            in_item = bool(section) and in_item and (begin == sections[section][1] or text[begin] in " \t")
            if in_item:
                sections[section] = (sections[section][0], end)
    return tuple(bullets), sections, opened


def _hidden(text: str, at: int) -> tuple[dict[int, int], int]:
    """Where code and comments over several lines begin and end, and where one begins that nobody closed."""
    spans: dict[int, int] = {}
    lacking: set[str] = set()  # looked for once, since many lines may begin what nobody closes
    while (found := _HIDING.search(text, at)) is not None:
        mark, at = found[2], _line_end(text, found.start())
        if mark[0] in "`~":
            closings = (each for each in _FENCE.finditer(text, found.end()) if each[1].startswith(mark))
            end = next((each.end() for each in closings), -1)
        else:
            # `<!-->` is a whole comment
            end = -1 if mark in lacking else text.find("-->" if mark == "<!--" else mark, found.start(2) + 2)
        if end >= 0:
            end = _line_end(text, end)
            if end > at:
                spans[found.start()] = at = end
        elif found[1] and mark[0] in "%<":
            lacking.add(mark)  # words of an item
        else:
            return spans, found.start()
    return spans, len(text)


def _line_end(text: str, at: int) -> int:
    found = _LINE.match(text, at)
    assert found is not None
    return found.end()


def _set_in(text: str, at: int, hidden: Mapping[int, int]) -> tuple[str, int]:
    """The lines of an item behind its first, which are set in, and where they end."""
    lines: list[str] = []
    while text.startswith((" ", "\t"), at) and at not in hidden:
        end = _line_end(text, at)
        line = text[at:end].rstrip("\r\n")
        if not line.strip():
            break
        lines.append("\n" + (line[2:] if line.startswith("  ") else line.lstrip(" \t")))
        at = end
    return "".join(lines), at


def _said(content: str, section: str, *, everything: bool) -> Observation | Bond | None:
    """What a bullet says, None for nothing to the graph."""
    said, attributes = spelling.split_attributes(content)
    bond = _bond(said, attributes) if section != "observations" else None
    if bond is not None or section == "relations":
        return bond
    if section or everything or _CATEGORY.match(content):
        return Observation(spelling.read(said), attributes)
    return None


def _bond(said: str, attributes: Mapping[str, Any]) -> Bond | None:
    """A relation: its type, then a link or an exact name."""
    kind: str | None = None
    if said.startswith('"'):
        kind, end = spelling.literal_in(said)
        if kind is not None:
            said = said[end:].lstrip()
    at = 0 if kind is not None else said.find(' "') + 1
    if said.endswith('"') and (at or kind is not None) and said.startswith('"', at):  # `knows "a name"`
        name, end = spelling.literal_in(said[at:])
        if name is not None and at + end == len(said):
            return Bond(said[: at - 1] if kind is None else kind, "", name, attributes)
    found = spelling.link_in(said)
    if found is None:
        return None
    before, link = found
    if before if kind is not None else before.startswith("[") or before.endswith("!"):
        return None
    return Bond(kind if kind is not None else before or _BARE, spelling.target_of(link), "", attributes)


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
    properties: dict[str, Any] = {"title": spelling.spell(name)} if base_name(path) != name else {}
    properties |= {"stub": True} if kind is None else {"entity_type": spelling.spell(kind)}
    lists = {"Observations": [*map(observation_line, observations)], "Relations": bonds}
    body = "\n".join(
        f"## {title}\n" + "".join(f"{line}\n" for line in lines) for title, lines in lists.items() if lines
    )
    return ENTITY.render(properties | {"order": order}, body, now)


def made_entity(text: str, kind: str, order: int) -> str:
    """The page of a stub, which becomes an entity."""
    text = set_property(remove_property(text, "stub"), "entity_type", spelling.spell(kind))
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


def with_lines(text: str, page: GraphPage, section: str, lines: Sequence[str]) -> str:
    """The page with bullets added at the end of a section, which is made when it is not there."""
    if not lines:
        return text
    newline = found[0] if (found := re.search(r"\r\n|\n|\r", text)) else "\n"
    added = "".join(f"{line}\n" for line in lines).replace("\n", newline)
    if section in page.sections:
        at = min(page.sections[section][1], page.opened)
        gap = "" if at == 0 or text[at - 1] in "\r\n" else newline
        return text[:at] + gap + added + text[at:]
    goes_before = section == "observations" and "relations" in page.sections
    at = min(page.sections["relations"][0] if goes_before else len(text), page.opened)
    before, after = text[:at], text[at:]
    gap = "" if not before or before.endswith(("\n", "\r")) else newline
    blank = "" if not before or before.endswith(newline * 2) else newline
    heading = f"## {section.capitalize()}{newline}"
    return before + gap + blank + heading + added + (newline if after else "") + after


def without(text: str, gone: Sequence[Bullet], left: Callable[[str], str] = lambda _: "") -> str:
    """The page without some of its bullets, but for what is `left` of each."""
    kept, at = [], 0
    for bullet in sorted(gone, key=lambda each: each.start):
        kept += [text[at : bullet.start], left(text[bullet.start : bullet.end])]
        at = bullet.end
    return "".join([*kept, text[at:]])


def without_bonds(text: str, gone: Sequence[Bullet]) -> str:
    """The page without some of its relations. A bullet that says more than its relation keeps its words, and the link in
    it becomes the words that it showed."""
    return without(text, gone, _without_link)


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
    bullets, _, _ = _read_lists(text, header.body_start, everything=True)
    rest = without_bonds(text, [each for each in bullets if isinstance(each.says, Bond)])[header.body_start :]
    return rest.strip() in ("", "## Relations")
