"""The header of a note, between `---` on line 1 and the next (obsidian.md §3.1): its properties as YAML 1.2 core values,
and where each stands in the text. Pure; it never raises and never stalls. libyaml parses it; size and depth are bounded,
anchors and aliases refused (durability.md §0.4, F42, F43). Plain headers are read by line, at a quarter of that."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, Literal, NamedTuple

HEADER_LIMIT: Final = 256 * 1024  # characters; real headers are under 2,000
DEPTH_LIMIT: Final = 16
VALUE_LIMIT: Final = 20_000  # scalars and collections
_DIGIT_LIMIT: Final = (
    3_000  # Python refuses to convert numbers of more than 4,300 digits; longer ones stay text
)
_OPENING: Final = re.compile(r"\ufeff?---[ \t]*(?:\r\n|\r|\n)")
_CLOSING: Final = re.compile(r"---[ \t]*(?:\r\n|\r|\n|\Z)")
LINE_END: Final = re.compile(r"\r\n?|\n")


class HeaderProblem(NamedTuple):
    """What is wrong with a header, and where in the file (both counted from 1)."""

    message: str
    line: int
    column: int


class RefusedError(Exception):
    """This YAML is no header we can stand behind: why, and at which character of the whole text."""

    def __init__(self, message: str, offset: int) -> None:
        self.message, self.offset = message, offset


class Node(NamedTuple):
    """One value as it stands in the text. Offsets count characters of the whole note."""

    style: str  # "" plain, "'", '"', "|", ">": a scalar; "-" and "[": a list; ":" and "{": a map
    value: Any
    start: int
    end: int  # a block scalar ends with its last line, without the line break
    children: tuple[Node, ...] = ()  # the items of a list; key, value, key, value ... of a map

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        nodes = iter(self.children)
        return zip(nodes, nodes, strict=True)


class Scalar(NamedTuple):
    """One text in a header, with its place: links in properties are found, and rewritten, through these."""

    path: tuple[str, ...]  # ("related", "0")
    value: str
    start: int  # with its quotes, in the whole text
    end: int
    verbatim: (
        int  # where `value` stands letter for letter, or -1 when escapes or folding changed it
    )
    flow: bool = False  # inside brackets or braces


@dataclass(frozen=True)
class Header:
    """A note's properties, in order. `problem` says why nothing may be rewritten."""

    style: Literal["none", "yaml", "broken"]
    properties: Mapping[str, Any]
    problem: HeaderProblem | None
    body_start: int
    end: int = 0  # where a property may be added
    text: str = ""  # of the whole note
    root: Node | None = None

    @cached_property
    def scalars(self) -> tuple[Scalar, ...]:
        return () if self.root is None else tuple(_scalars(self.text, self.root, ()))

    def get(self, key: str) -> Any:
        """A property's value whatever the case of its name (obsidian.md §3.1), None when there is none."""
        return find_value(self.properties, key)


def find_key(properties: Mapping[str, Any], key: str) -> str | None:
    """The property's name as the note spells it: the same letters first, then the same but for case."""
    if key in properties:
        return key
    folded = key.casefold()
    return next((spelled for spelled in properties if spelled.casefold() == folded), None)


def find_value(properties: Mapping[str, Any], key: str) -> Any:
    """A property's value, however the note spells its name."""
    return properties.get(find_key(properties, key) or key)


@lru_cache(
    maxsize=1
)  # one change of a note asks for the header of the very same text again and again
def read_header(text: str) -> Header:
    """The header of a note. Never raises and never stalls."""
    # Nothing but a BOM may stand before a header, and it has to be closed.
    opening = _OPENING.match(text)
    fences = _CLOSING.finditer(text, opening.end()) if opening else ()
    closing = next((found for found in fences if text[found.start() - 1] in "\r\n"), None)
    if opening is None or closing is None:
        return Header("none", {}, None, 0)
    start, end, body = opening.end(), closing.start(), closing.end()
    try:
        root, end = read_plain_yaml(text, start, end) or read_yaml(text, start, end)
        if root is not None and root.style not in (":", "{"):
            raise RefusedError("it is not a list of properties (name: value)", root.start)
    except RefusedError as refused:
        return Header("broken", {}, _problem(text, refused.message, refused.offset), body)
    problem = None
    if (
        root is not None and root.style == "{"
    ):  # JSON, as Obsidian reads it as well, is YAML in braces
        problem = _problem(
            text, "it is JSON or one pair of braces, which is read but not rewritten", root.start
        )
    return Header("yaml", {} if root is None else root.value, problem, body, end, text, root)


def content_start(text: str, header: Header) -> int:
    """Where the content begins that is shown and replaced: after the header and the blank lines below it."""
    at = header.body_start
    while at and text[at : at + 1] in ("\n", "\r"):
        at += 1
    return at


def _problem(text: str, message: str, offset: int) -> HeaderProblem:
    line_start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    return HeaderProblem(
        message, 1 + sum(1 for _ in LINE_END.finditer(text, 0, line_start)), offset - line_start + 1
    )


def _scalars(text: str, node: Node, path: tuple[str, ...], flow: bool = False) -> Iterator[Scalar]:
    style, value = node.style, node.value
    flow = flow or style in ("[", "{")
    if isinstance(value, dict):
        for key, inner in node.pairs():
            yield from _scalars(text, inner, (*path, key.value), flow)
    elif isinstance(value, list):
        for number, item in enumerate(node.children):
            yield from _scalars(text, item, (*path, str(number)), flow)
    elif isinstance(value, str):
        inset = 1 if style in ("'", '"') else 0
        start = node.start + inset
        stands_there = style not in ("|", ">") and text[start : node.end - inset] == value
        yield Scalar(path, value, node.start, node.end, start if stands_there else -1, flow)


_CORE_FIRST: Final = frozenset("~nNtTfF+-.0123456789")
_CORE_WORDS: Final[dict[str, Any]] = (
    dict.fromkeys(("~", "null", "Null", "NULL"))
    | dict.fromkeys(("true", "True", "TRUE"), True)
    | dict.fromkeys(("false", "False", "FALSE"), False)
    | {
        f"{sign}{word}": float(f"{sign}inf")
        for sign in ("", "+", "-")
        for word in (".inf", ".Inf", ".INF")
    }
    | dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan)
)
_NUMBER: Final = re.compile(
    r"([-+]?[0-9]+)|0o([0-7]+)|0x([0-9a-fA-F]+)|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
)


def core_value(text: str) -> Any:
    """What a plain scalar means in YAML 1.2 core (obsidian.md §0.6), where dates, yes and 12:30 are text."""
    if not text:
        return None
    if text[0] not in _CORE_FIRST:
        return text
    if text in _CORE_WORDS:
        return _CORE_WORDS[text]
    if len(text) > _DIGIT_LIMIT or not (number := _NUMBER.fullmatch(text)):
        return text
    kind = number.lastindex
    return int(number[kind], (10, 8, 16)[kind - 1]) if kind else float(text)


def same(one: Any, other: Any) -> bool:
    """Equal as YAML values: 1, 1.0 and true differ, .nan equals itself, the order of keys counts."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(map(same, one.values(), other.values()))
    return repr(one) == repr(other) if isinstance(one, float) else bool(one == other)


Document = tuple[
    Node | None, int
]  # the root, None of comments and blanks alone; where the content ends


def read_yaml(text: str, start: int, end: int) -> Document:
    """Read text[start:end] as one YAML document. Raises RefusedError, and nothing else."""
    import yaml  # `read_plain_yaml` reads nearly every header without it, and most commands read none

    if end - start > HEADER_LIMIT:
        raise RefusedError(f"it is longer than {HEADER_LIMIT // 1024} kB", start)
    reader = _YamlReader(text, start, end)
    events: Any = yaml.parse(reader.source, Loader=getattr(yaml, "CLoader", yaml.Loader))
    root: Node | None = None
    is_over = False
    try:
        for event in events:
            kind = type(event)
            if kind is yaml.DocumentStartEvent and is_over:
                raise RefusedError("a second YAML document begins", start + event.start_mark.index)
            if kind is yaml.DocumentEndEvent:
                is_over = True
                end = start + event.start_mark.index if event.explicit else end
            elif kind not in (yaml.StreamStartEvent, yaml.StreamEndEvent, yaml.DocumentStartEvent):
                root = reader.node(event, events, DEPTH_LIMIT)
    except (yaml.YAMLError, UnicodeError) as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        said = getattr(error, "problem", None) or str(error).split("\n", 1)[0]
        raise RefusedError(said, start + (mark.index if mark else 0)) from None
    finally:
        events.close()
    return root, end


# libyaml follows YAML 1.1: NEL, LS and PS end a line for it, and controls are errors. For YAML 1.2 and for Obsidian
# they are ordinary characters. Each is replaced, one for one so that offsets stay, by one that the text lacks.
_STRANGE: Final = re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_IMPOSSIBLE: Final = re.compile("[\x00\ud800-\udfff]")
_COLON: Final = re.compile(r"[ \t]*+:")
_BLANKS: Final = re.compile(r"(?:[ \t\r\n]+|(?<![^ \t\r\n])#[^\r\n]*)*+")


def skip_blanks(text: str, at: int, end: int) -> int:
    """The first place from `at` on, below `end`, that is neither white space nor comment."""
    return _BLANKS.match(text, at, end).end()  # type: ignore[union-attr]


class _YamlReader:
    """One pass over the events of one header."""

    def __init__(self, text: str, base: int, end: int) -> None:
        self.text, self.base = text, base
        self.source = text[base:end]
        self.originals: dict[int, str] = {}  # by what stands in their place
        self.values = 0
        if impossible := _IMPOSSIBLE.search(self.source):
            raise RefusedError(
                f"it contains the character U+{ord(impossible[0]):04X}", base + impossible.start()
            )
        if strange := set(_STRANGE.findall(self.source)):
            lowered = self.source.lower()
            spare = (
                c
                for c in range(0xF0000, 0xFFFFE)
                if chr(c) not in lowered and f"{c:08x}" not in lowered
            )
            stand_ins = {ord(character): next(spare) for character in strange}
            self.source = self.source.translate(stand_ins)
            self.originals = {new: chr(old) for old, new in stand_ins.items()}

    def node(self, event: Any, events: Iterator[Any], levels: int) -> Node:
        import yaml

        kind, start = type(event), self.base + event.start_mark.index
        self.values += 1
        if self.values > VALUE_LIMIT:
            raise RefusedError(f"it has more than {VALUE_LIMIT:,} values", start)
        if event.anchor is not None or event.tag is not None:
            raise RefusedError("anchors (&), aliases (*) and tags (!) are not supported", start)
        if kind is yaml.ScalarEvent:
            style, value = event.style or "", event.value.translate(self.originals)
            end = self.base + event.end_mark.index
            if style == "":
                value = core_value(value)
            elif style in "|>":  # blank lines below it stay when it changes
                end = start + len(self.text[start:end].rstrip(" \t\r\n"))
            elif style == '"' and re.search("[\ud800-\udfff]", value):
                raise RefusedError("it contains a lone surrogate", start)
            return Node(style, value, start, end)
        if levels == 0:
            raise RefusedError(f"it is nested more than {DEPTH_LIMIT} levels deep", start)
        if kind is yaml.MappingStartEvent:
            return self._map(event, events, levels, start)
        items: list[Node] = []
        for inner in events:
            if type(inner) is yaml.SequenceEndEvent:
                break
            items.append(self.node(inner, events, levels - 1))
        style, end = (
            ("[", self.base + inner.end_mark.index) if event.flow_style else ("-", items[-1].end)
        )
        return Node(style, [item.value for item in items], start, end, tuple(items))

    def _map(self, event: Any, events: Iterator[Any], levels: int, start: int) -> Node:
        import yaml

        nodes, found = list[Node](), dict[str, Any]()
        for inner in events:
            if type(inner) is yaml.MappingEndEvent:
                break
            at = self.base + inner.start_mark.index
            if type(inner) is not yaml.ScalarEvent or inner.anchor is not None:
                raise RefusedError(
                    "a key that is not plain text (a {{placeholder}} needs quotes)", at
                )
            key = inner.value.translate(self.originals)
            if (
                key in found
            ):  # obsidian.md §3.1: no properties at all; unnamed, since this is said among our own words
                raise RefusedError("a key occurs twice", at)
            name = self.node(inner, events, levels - 1)._replace(value=key)
            value = self.node(next(events), events, levels - 1)
            if not event.flow_style and not _COLON.match(self.text, name.end):
                raise RefusedError("a key with a question mark before it", at)
            nodes += [name, value]
            found[key] = value.value
        if event.flow_style and self.text[start] != "{":  # `[a: b]`
            raise RefusedError("a name in a list without braces", start)
        end = self.base + inner.end_mark.index if event.flow_style else nodes[-1].end
        return Node("{" if event.flow_style else ":", found, start, end, tuple(nodes))


_MOST_CHARACTERS: Final = 8_000
# Nothing that begins or ends something in YAML: no tabs, no hash, a colon only where it is part of a word.
_INSIDE: Final = r"\w ./+(),&!?=;@\[\]{}|%~^$*<>\-"
_PLAIN: Final = rf"\w(?:[{_INSIDE}'\"]|:(?=\S))*+"
_VALUE: Final = rf"(?:(\"[{_INSIDE}':#]*+\"|'[{_INSIDE}\":#]*+') *|({_PLAIN}))"
_ENTRY: Final = re.compile(rf"(\w(?:[\w-]| (?=[\w-])){{0,99}}):(?: *| +{_VALUE})\n")
_ITEM: Final = re.compile(rf"( *)(-) +{_VALUE}\n")


def read_plain_yaml(text: str, start: int, end: int) -> Document | None:
    """text[start:end] as one block map of texts and lists of texts, None where it may be more than that."""
    if end - start > _MOST_CHARACTERS:
        return None
    nodes, properties, at = list[Node](), dict[str, Any](), start
    while at < end:
        found = _ENTRY.match(text, at, end)
        if (
            found is None or found[1] in properties
        ):  # a key that is there twice: the full reader says where
            return None
        nodes.append(Node("", found[1], at, found.end(1)))
        at = found.end()
        if found.lastindex != 1:
            value = _plain_scalar(found)
        elif item := _ITEM.match(text, at, end):
            dash, indent, items = item.start(2), item[1], []
            while item is not None and item[1] == indent:
                items.append(_plain_scalar(item))
                at = item.end()
                item = _ITEM.match(text, at, end)
            value = Node("-", [each.value for each in items], dash, items[-1].end, tuple(items))
        else:
            value = Node("", None, found.end(1) + 1, found.end(1) + 1)
        nodes.append(value)
        properties[found[1]] = value.value
    return (Node(":", properties, start, nodes[-1].end, tuple(nodes)), end) if nodes else None


def _plain_scalar(found: re.Match[str]) -> Node:
    group = found.lastindex or 0
    start, end = found.span(group)
    written = found[group]
    if written[0] in "\"'":
        return Node(written[0], written[1:-1], start, end)
    plain = written.rstrip(" ")
    return Node("", core_value(plain), start, start + len(plain))
