"""A note as a page of the graph: the entity it is, its observations and relations, and how they are changed. Pure.

Bullets under `## Observations` and `## Relations` count, and above the first heading below the title; there a relation
is `- word [[X]]`, of four plain words at most, to another note. What code and comments of several lines hide says
nothing. A change touches its lines and no other byte. What a line cannot carry is a JSON literal in
ASCII; `%% key=value %%` at its end are attributes."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from simplemem.features.graph.values import Entity, Graph, Observation, Relation
from simplemem.features.note_type import NoteType
from simplemem.note.header import read_header
from simplemem.note.names import base_name, name_of

FOLDER: Final = "graph"
_SECTIONS: Final = frozenset({"observations", "relations"})
_BETWEEN: Final = "\uffff\ufffe"  # texts that are searched together: no text says it
_UNNAMED: Final = "relates_to"  # a link without a word before it
_BULLET: Final = re.compile(r"[-*+][ \t]+")
_LINE: Final = re.compile(r"([^\r\n]*)(?:\r\n|\n|\r|$)")
_HEADING: Final = re.compile(r"(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$")
_LINK: Final = re.compile(
    r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)|\[\[(?P<target>[^\[\]\r\n]+)\]\]"
)  # or code before one
_WORDS: Final = re.compile(r"\w[\w'’-]*(?: \w[\w'’-]*){0,3}")
# Code and comments over several lines, up to the line that closes them. One that nobody closed has a second group.
_HIDDEN: Final = re.compile(
    r"^ {0,3}(?:(`{3,}(?!.*`)|~{3,})(?s:.*?)(?:\n {0,3}\1[`~]*[ \t]*\r?$|\Z())"
    r"|%%(?!.*%%)(?s:.*?)(?:%%.*|\Z())|<!--(?!.*-->)(?s:.*?)(?:-->.*|\Z()))",
    re.MULTILINE,
)
_DECODER: Final = json.JSONDecoder()
# What would begin a block of its own inside a list item.
_BLOCK: Final = re.compile(
    r"#{1,6}(?:\s|$)|```|~~~|[<>|]|[-+*](?:\s|$)|\d{1,9}[.)](?:\s|$)|[-_*](?:[ ]?[-_*]){2,}$|\$\$"
)
_ATTRIBUTE: Final = re.compile(r"\s*([A-Za-z][\w-]*)=(\"(?:[^\"\\]|\\.)*\"|[^\s%\"]\S*)")
_WORD: Final = re.compile(r"[^\s%\"{\[]\S*")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPage(Entity):
    """One note, read as a page: the entity it is, and what stands on it."""

    is_stub: bool  # it only holds relations
    order: int | None  # in which entities were made
    bullets: tuple[Bullet, ...]
    bonds: tuple[Bond, ...]
    sections: Mapping[str, tuple[int, int]]  # where the two lists begin and end
    opened: (
        int  # where code or a comment begins that nobody closed: behind it nothing is read or added
    )
    searched: str  # name, type and observations in lower case

    @property
    def is_own(self) -> bool:
        return not self.is_note


def read_page(path: str, text: str, sha256: str = "") -> GraphPage:
    """The page a note is."""
    header = read_header(text)
    said = {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in header.properties.items()
        if value is not None and not isinstance(value, (Mapping, list))
    }
    title, told, order = said.get("title"), said.get("entity_type"), header.properties.get("order")
    is_entity = ENTITY.includes(path, said.get("type"))
    bullets, sections, opened = _read_lists(
        text, header.body_start, name_of(path), everything=is_entity
    )
    observations = tuple(each.says for each in bullets if isinstance(each.says, Observation))
    own = said.get("type") or ("entity" if is_entity else "note")
    if is_entity and (told is not None or own.casefold() == ENTITY.type):
        own = unspelled(told) if told is not None else "entity"
    if not is_entity and not observations and (description := said.get("description")):
        observations = (Observation(description.strip()),)
    name = base_name(path) if title is None else unspelled(title)
    return GraphPage(
        path=path,
        sha256=sha256,
        name=name,
        type=own,
        is_note=not is_entity,
        owner=unicodedata.normalize("NFC", said.get("scope", "")),
        is_stub=is_entity
        and header.properties.get("stub") is True
        and told is None
        and not observations,
        order=order if isinstance(order, int) and not isinstance(order, bool) else None,
        created=said.get("created", ""),
        modified=said.get("modified", ""),
        bullets=tuple(bullets),
        observations=observations,
        bonds=tuple(each.says for each in bullets if isinstance(each.says, Bond)),
        sections=sections,
        opened=opened,
        searched=_BETWEEN.join([name, own, *(each.text for each in observations)]).lower(),
    )


# Pages stand in the order in which they were made, those that tell none behind.
ENTITY: Final[NoteType[GraphPage]] = NoteType(
    FOLDER,
    "entity",
    read=lambda read: read_page(read.path, read.text, read.sha256),
    sort_key=lambda page: (
        not page.is_own,
        page.order is None,
        page.order or 0,
        page.created,
        page.path,
    ),
    accepts_any_type=True,
)


class Tie(NamedTuple):
    """A bond with what it leads to: a page, or no more than a name."""

    bond: Bond
    path: str | None
    name: str


def graph_of_pages(
    pages: Iterable[GraphPage], ties: Mapping[str, Sequence[Tie]], items: Mapping[str, GraphPage]
) -> Graph:
    """The graph that some pages make, with the names of now. `ties` are by the pages' paths."""
    every = list(pages)
    relations = []
    for page in every:
        for bond, path, name in ties.get(page.path, ()):
            if path is not None:
                name = items[path].name if path in items else base_name(path)
            relations.append(Relation(page.name, bond.type, name, bond.attributes))
    return Graph(tuple(page for page in every if not page.is_stub), tuple(relations))


def _read_lists(
    text: str, at: int, itself: str, *, everything: bool
) -> tuple[list[Bullet], dict[str, tuple[int, int]], int]:
    """The bullets that say something, with `everything` observations outside of sections too; sections; `opened`."""
    hidden = _HIDDEN.finditer(text, at)
    opened = next((each.start() for each in hidden if (each.lastindex or 0) > 1), len(text))
    masked = text[:at] + _HIDDEN.sub(lambda each: "\0" * len(each[0]), text[at:])
    items: list[
        tuple[int, str, list[str]]
    ] = []  # where each begins, the section it is in, its lines
    ends: list[int] = []
    sections: dict[str, tuple[int, int]] = {}
    section, level = "", 0  # where we are, and how deep its heading is
    above = True  # before the first heading below the title
    is_open = in_item = (
        False  # lines that are set in are its words; nothing is added before what comes
    )
    for each in _LINE.finditer(masked, at, opened):
        line, begin, end = each[1], each.start(), each.end()
        if heading := _HEADING.match(line):
            depth, title = len(heading[1]), heading[2].strip().casefold()
            is_open = in_item = False
            if title in _SECTIONS and title not in sections:
                section, level, sections[title] = title, depth, (begin, end)
            elif depth <= level or not section:
                section, level, above = "", depth, above and depth == 1
            continue
        if mark := _BULLET.match(line):
            items.append((begin, section or ("above" if above else ""), [line[mark.end() :]]))
            ends.append(end)
            is_open = in_item = True
        elif is_open and line.startswith((" ", "\t")) and line.strip() and "\0" not in line:
            items[-1][2].append(line[2:] if line.startswith("  ") else line[1:])
            ends[-1] = end
        else:
            is_open = False
            if not line.strip() or not section:
                continue
            in_item = in_item and (begin == sections[section][1] or text[begin] in " \t")
        if section and in_item:
            sections[section] = (sections[section][0], end)
    bullets = []
    for (begin, where, words), end in zip(items, ends, strict=True):
        says = _said("\n".join(words).rstrip(), where, itself) if where else None
        if says is not None and (where in _SECTIONS or everything or isinstance(says, Bond)):
            bullets.append(Bullet(begin, end, says))
    return bullets, sections, opened


def _said(content: str, section: str, itself: str) -> Observation | Bond | None:
    """What a bullet says, None for one under Relations that is none."""
    said, attributes = split_attributes(content)
    bond = _bond(said, attributes) if section != "observations" else None
    if bond is not None and section == "above":
        leads_back = f"/{itself}".casefold().endswith(
            f"/{bond.link}".removesuffix(".md").casefold()
        )
        is_plain_line = (
            said.endswith("]]")
            and said.startswith(f"{bond.type} [[")
            and _WORDS.fullmatch(bond.type)
        )
        bond = bond if is_plain_line and not leads_back else None
    return bond or (None if section == "relations" else Observation(unspelled(said), attributes))


def _bond(said: str, attributes: Mapping[str, Any]) -> Bond | None:
    """A relation: its type, then a link or an exact name."""
    kind, end = literal_in(said)
    rest = said[end:].lstrip() if kind is not None else said
    at = rest.find(' "') + 1 if kind is None else 0
    if rest.endswith('"') and (at or kind is not None):  # `knows "a name"`
        name, end = literal_in(rest[at:])
        if name is not None and at + end == len(rest):
            return Bond(rest[: at - 1] if kind is None else kind, "", name, attributes)
    link = next((each for each in _LINK.finditer(rest) if each["target"]), None)
    target = link["target"].split("|", 1)[0].split("#", 1)[0].strip() if link else ""
    if link is None or not target:  # `[[#Heading]]` leads to the note itself
        return None
    before = rest[: link.start()].rstrip()
    if "\n" in before or (
        before if kind is not None else before.startswith("[") or before.endswith("!")
    ):
        return None
    return Bond(kind if kind is not None else before or _UNNAMED, target, "", attributes)


def new_page(
    path: str,
    entity: Entity,
    order: int,
    now: str,
    *,
    stub: bool = False,
    bonds: Sequence[str] = (),
) -> str:
    """The text of a new page. A stub only holds a name that relations begin at."""
    properties: dict[str, Any] = (
        {"title": spell(entity.name)} if base_name(path) != entity.name else {}
    )
    properties |= {"stub": True} if stub else {"entity_type": spell(entity.type)}
    if entity.owner:
        properties["scope"] = entity.owner
    lists = {
        "Observations": [observation_line(each) for each in entity.observations],
        "Relations": bonds,
    }
    parts = ["\n".join([f"## {title}", *lines, ""]) for title, lines in lists.items() if lines]
    return ENTITY.render(properties | {"order": order}, "\n".join(parts), now)


def observation_line(said: Observation) -> str:
    """An observation as a bullet; one of several plain lines is indented below the first."""
    lines = said.text.split("\n")
    spelled = "\n  ".join(lines) if all(map(is_plain, lines)) else literal(said.text)
    return f"- {spelled}{spell_attributes(said.attributes)}"


def bond_line(kind: str, target: str, attributes: Mapping[str, Any]) -> str:
    """A relation as a bullet; `target` is a link or a literal."""
    plain = (
        is_plain(kind)
        and "[[" not in kind
        and '"' not in kind
        and "`" not in kind
        and not kind.startswith("[")
    )
    return f"- {kind if plain else literal(kind)} {target}{spell_attributes(attributes)}"


def with_lines(text: str, page: GraphPage, section: str, lines: Sequence[str]) -> str:
    """The page with bullets added at the end of a section, which is made when it is not there."""
    newline = "\r\n" if "\r\n" in text else "\n"
    added = "".join(f"{line}\n" for line in lines).replace("\n", newline)
    has_it, relations = section in page.sections, page.sections.get("relations")
    at = min(
        page.opened,
        page.sections[section][1] if has_it else relations[0] if relations else len(text),
    )
    before, after = text[:at], text[at:]
    if before and not before.endswith(("\n", "\r")):
        before += newline
    if has_it:
        return before + added + after
    blank = "" if not before or before.endswith(newline * 2) else newline
    return (
        f"{before}{blank}## {section.capitalize()}{newline}{added}{newline if after else ''}{after}"
    )


def without(text: str, gone: Iterable[Bullet]) -> str:
    """The page without some of its bullets."""
    for bullet in sorted(gone, reverse=True):
        text = text[: bullet.start] + text[bullet.end :]
    return text


def spell(text: str) -> str:
    """A text on one line, as it is if that reads back as the same."""
    return text if is_plain(text) else literal(text)


def is_plain(text: str) -> bool:
    """Whether a text may stand on a line of a list as it is."""
    if not text or not text.isprintable() or text != text.strip():
        return False
    return text[0] != '"' and "%%" not in text and not _BLOCK.match(text)


def literal(text: str) -> str:
    """A text as a JSON string, all in ASCII."""
    return json.dumps(text).replace("%%", "\\u0025\\u0025")


def unspelled(line: str) -> str:
    """The text that a line says. A person's line that only looks like a literal is what it is."""
    text, end = literal_in(line)
    return text if text is not None and end == len(line) else line


def literal_in(line: str) -> tuple[str | None, int]:
    """The JSON string a line begins with, and where it ends; None when it begins with none."""
    try:
        return _DECODER.raw_decode(line) if line.startswith('"') else (None, 0)
    except ValueError:
        return None, 0


def spell_attributes(attributes: Mapping[str, Any]) -> str:
    """The comment that holds attributes, with the space before it: words and numbers as they are, all else as JSON."""
    said = ""
    for key, value in attributes.items():
        spelled = (
            json.dumps(value, separators=(",", ":")).replace(" ", "\\u0020").replace("%", "\\u0025")
        )
        if (
            isinstance(value, str)
            and _WORD.fullmatch(value)
            and value.isprintable()
            and _read_value(value) == value
        ):
            spelled = value
        said += f"{key}={spelled} "
    return f" %% {said}%%" if said else ""


def _read_value(value: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def split_attributes(line: str) -> tuple[str, dict[str, Any]]:
    """A line without the attributes between the last two marks of its end, and those."""
    at, end = line.rfind("%%", 0, -2) if line.endswith("%%") else -1, len(line) - 2
    if at < 0 or (at and not line[at - 1].isspace()):
        return line, {}
    found: dict[str, Any] = {}
    behind = at + 2
    while (told := _ATTRIBUTE.match(line, behind, end)) is not None:
        found[told[1]] = _read_value(told[2])
        behind = told.end()
    return (line[:at].rstrip(), found) if found and not line[behind:end].strip() else (line, {})
